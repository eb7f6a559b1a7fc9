"""The loss that PyTorch makes of logits by the logarithm of their softmax: kernels, collectives, and tensors.

Three programs do the same. `torch.nn.functional.cross_entropy` of logits in fp32 has one kernel for the logarithms.
Where tensor-parallel ranks share the vocabulary, `torch.distributed.tensor.parallel.loss_parallel` writes every step
of it as an operation with a tensor of its own, and three all-reduces (torch/distributed/tensor/parallel/loss.py,
`_log_softmax` and `_nll_loss_and_log_softmax_backward`). Compiled, logits are read as they are: TorchInductor fuses
what is done to each element with reductions over rows, and AOTAutograd keeps what it need not write, the logits
themselves and two numbers of each row (torch/_functorch/partitioners.py, `min_cut_rematerialization_partition`).
"""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.precision import SINGLE
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes

__all__ = ["SoftmaxLoss", "logits_kernel", "logits_reduce"]

#: kinds of kernels of the loss that are not named by their arithmetic
_KINDS = {"exp": "cross_entropy", "logits.gradient": "cross_entropy_backward"}


def logits_kernel(
    record: PassRecord,
    sizes: RankSizes,
    name: str,
    flops: float,
    *,
    read: float,
    written: float = 0.0,
    family: str = "elementwise",
) -> None:
    """Add a kernel over all logits of this rank.

    Parameters
    ----------
    record : PassRecord
    sizes : RankSizes
    name : str
        Unique in the pass.
    flops : float
        For each logit [FLOP].
    read, written : float
        For each logit [B].
    family : str
        As of `Op`.
    """
    elements, row = sizes.tokens * sizes.vocabulary, float(sizes.vocabulary)
    kind = _KINDS.get(name, name.partition(".")[0])
    op = each(kind, elements, flops=flops, read=read, written=written, dtype="fp32", family=family, row=row)
    record.op(op, f"loss.{name}")


def logits_reduce(record: PassRecord, sizes: RankSizes, nbytes: float, name: str) -> None:
    """Add an all-reduce of so many bytes over the ranks that share the vocabulary; none for a rank alone."""
    if sizes.tp > 1:
        record.sync("all-reduce", nbytes, f"loss.{name}.reduce")


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """Cross-entropy by the logarithm of the softmax, from ``head.output`` to the gradient of the logits.

    Parameters
    ----------
    sizes : RankSizes
    compiled : bool
        Whether TorchInductor fuses it; else PyTorch's kernels in fp32.
    """

    sizes: RankSizes
    compiled: bool = False

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that stay for the backward pass."""
        return ("head.output", "loss.statistics") if self.compiled else ("softmax",)

    def forward(self, record: PassRecord) -> None:
        """Operations from the logits, which are freed unless they are kept."""
        if self.compiled:
            self._fused(record)
            return
        sizes = self.sizes
        cast = ("wide",) if sizes.width != SINGLE else ()
        if cast:
            record.hold("wide", self._wide)
            self._each(record, "cast", 0.0, read=sizes.width, written=SINGLE)
        if sizes.tp > 1:
            self._shared(record)
        else:
            record.hold("softmax", self._wide)
            flops = 3.0 + arithmetic.EXPONENTIAL
            self._each(record, "exp", flops, read=SINGLE, written=SINGLE, family="normalization")
        record.free("head.output", *cast)

    def backward(self, record: PassRecord, gradient: str) -> None:
        """Operations to the gradient of the logits, which gets this name."""
        sizes, width = self.sizes, self.sizes.width
        flops = 2.0 + arithmetic.EXPONENTIAL
        if self.compiled:
            record.hold(gradient, width * self._logits)
            self._each(record, "logits.gradient", flops, read=width, written=width)
            record.free(*self.kept, "targets")
            return
        record.hold("targets.gradient", self._wide)
        self._each(record, "zero", 0.0, read=0.0, written=SINGLE)
        if sizes.tp > 1:
            self._shared_back(record)
        else:
            record.hold("wide.gradient", self._wide)
            self._each(record, "logits.gradient", flops, read=2 * SINGLE, written=SINGLE, family="normalization")
            record.free("targets.gradient")
        record.free("softmax", "targets")
        record.hold(gradient, width * self._logits)
        if width != SINGLE:
            self._each(record, "cast.back", 0.0, read=SINGLE, written=width)
        record.free("wide.gradient")

    def _fused(self, record: PassRecord) -> None:
        """Reductions over rows; a rank that has all of the vocabulary reads a row once."""
        sizes, width = self.sizes, self.sizes.width
        record.hold("loss.statistics", 2 * self._rows)
        flops = 2.0 + arithmetic.EXPONENTIAL
        if sizes.tp > 1:
            self._each(record, "max", 1.0, read=width, family="reduction")
            logits_reduce(record, sizes, self._rows, "max")
        self._each(record, "exp", flops, read=width, family="normalization")
        for name in ("sum", "target"):
            logits_reduce(record, sizes, self._rows, name)

    def _shared(self, record: PassRecord) -> None:
        """An operation at a time over logits in fp32 that ranks share: shifted, exponents, and logarithms."""
        self._each(record, "max", 1.0, read=SINGLE, family="reduction")
        logits_reduce(record, self.sizes, self._rows, "max")
        record.hold("shifted", self._wide)
        self._each(record, "sub", 1.0, read=SINGLE, written=SINGLE)
        record.hold("exponents", self._wide)
        self._each(record, "exp", arithmetic.EXPONENTIAL, read=SINGLE, written=SINGLE)
        self._each(record, "sum", 1.0, read=SINGLE, family="reduction")
        record.free("exponents")
        logits_reduce(record, self.sizes, self._rows, "sum")
        record.hold("softmax", self._wide)
        self._each(record, "sub.logarithm", 1.0, read=SINGLE, written=SINGLE)
        record.free("shifted")
        logits_reduce(record, self.sizes, self._rows, "target")

    def _shared_back(self, record: PassRecord) -> None:
        """Exponents, their sum with what the targets have, and its product with the gradient of the loss."""
        record.hold("exponents", self._wide)
        self._each(record, "exp.back", arithmetic.EXPONENTIAL, read=SINGLE, written=SINGLE)
        record.hold("differences", self._wide)
        self._each(record, "add", 1.0, read=2 * SINGLE, written=SINGLE)
        record.free("exponents")
        record.hold("wide.gradient", self._wide)
        self._each(record, "mul", 1.0, read=SINGLE, written=SINGLE)
        record.free("differences", "targets.gradient")

    def _each(
        self, record: PassRecord, name: str, flops: float, *, read: float, written: float = 0.0, family: str = ""
    ) -> None:
        logits_kernel(record, self.sizes, name, flops, read=read, written=written, family=family or "elementwise")

    @property
    def _logits(self) -> int:
        return self.sizes.tokens * self.sizes.vocabulary

    @property
    def _wide(self) -> float:
        """All logits of this rank in fp32 [B]."""
        return SINGLE * self._logits

    @property
    def _rows(self) -> float:
        """A number in fp32 for each token [B]."""
        return SINGLE * self.sizes.tokens
