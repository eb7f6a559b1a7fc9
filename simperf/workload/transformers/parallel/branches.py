"""Matrices of a block whose attention and feed-forward network stand side by side, on one rank.

Wang and Komatsuzaki, GPT-J, 2021; Chowdhery et al., PaLM, 2022, section 2: ``y = x + attention(norm(x)) +
network(norm(x))``. Tensor-parallel ranks gather the norm's output once for the first matrices of both, and add up once
what the last matrices of both make; with the tokens shared as Jiang et al., MegaScale, NSDI 2024, figure 3. Backward
likewise. The second of the last products adds to what the first has made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from simperf.errors import Problem
from simperf.workload.kinds.dense import linear, matmul
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.flops import Recomputation
from simperf.workload.transformers.parallel.linear import Linear
from simperf.workload.transformers.parallel.parts import ProductParts
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.parallel.tensor_exchanges import TensorExchanges

__all__ = ["FirstMatrices", "LastMatrices", "unplayed_beside"]


def unplayed_beside(model: Transformer, recompute: Recomputation, *, narrow: bool, frozen: bool) -> Iterator[Problem]:
    """Problems of what is not simulated with attention and feed-forward network side by side.

    Parameters
    ----------
    model : Transformer
    recompute : str
    narrow : bool
        Whether products have another precision than weights.
    frozen : bool
        Whether weights are frozen beside adapters.
    """
    if not model.parallel_block:
        return
    others = {"experts": model.experts, "kv_rank": model.kv_rank, "mtp": model.mtp}
    for key, value in others.items():
        if value:
            yield Problem(
                "is not simulated with attention and network side by side", key=key, value=str(value), expected="0"
            )
    message = "is not simulated with attention and network side by side (parallel_block)"
    if recompute == "selective-op":
        yield Problem(message, key="recompute", value=recompute, expected="none, selective or full")
    if narrow:
        yield Problem(message, key="product_precision", value="of fewer bits than weights", expected="as-weights")
    if frozen:
        yield Problem(message, key="lora_rank", value="an adapter", expected="0")


@dataclass(frozen=True, slots=True)
class FirstMatrices:
    """Matrices that read the norm's output: that of queries, keys and values, and the network's first.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    matrices : tuple of Linear
    """

    sizes: RankSizes
    kernels: LayerKernels
    matrices: tuple[Linear, ...]

    @property
    def _keeps(self) -> bool:
        return self.sizes.sequence_parallel and self.kernels.gathered_inputs == "kept"

    def forward(self, record: PassRecord, x: str) -> tuple[str, ...]:
        """From the norm's output `x` to the output of each matrix, with all tokens; their names."""
        sizes, gathers, whole = self.sizes, self.sizes.sequence_parallel, self.sizes.whole
        parts = ProductParts(record, "branches.gather", self.kernels, sizes, cut=gathers)
        if gathers:
            parts.gather(whole)
            record.hold("branches.gathered", whole)
        for one in self.matrices:
            record.hold(f"{one.name}.output", one.output)
        for part in range(parts.count):
            if gathers:
                parts.arrive(part)
            for one in self.matrices:
                one.products(record, parts, part)
        record.free(*(["branches.gathered"] if gathers and not self._keeps else []), *([x] if self._keeps else []))
        return tuple(one.with_bias(record, f"{one.name}.output") for one in self.matrices)

    def backward(self, record: PassRecord, gradients: tuple[str, ...], x: str) -> str:
        """From the gradient of each output to that of the norm's output `x`, which is freed; its name."""
        sizes, gathers, whole = self.sizes, self.sizes.sequence_parallel, self.sizes.whole
        exchanges, found = TensorExchanges("branches", sizes.hidden, sizes, self.kernels), "branches.input.gradient"
        reads, behind = x, [*gradients, *([] if self._keeps else [x])]
        parts = ProductParts(record, "branches.reduce.back", self.kernels, sizes, cut=gathers)
        if gathers:
            if not self._keeps:
                exchanges.gather_again(record, x)
            reads = "branches.gathered"
            behind.append(reads)
        record.hold(found, whole)
        products = [(one, *end) for one in self.matrices for end in one.ends]
        for part in range(parts.count):
            for number, (one, end, outputs) in enumerate(products):
                one.input_gradient(record, parts, part, end, outputs)
                if number:
                    one.input_sum(record, parts, part, end)
            if gathers:
                parts.reduce(whole, part)
        record.wait("branches.gather.back", weights=True)
        if sizes.tp > 1:
            behind += [found] if gathers else []
            found = exchanges.reduce_gradient(record, parts, found)
        for one, gradient in zip(self.matrices, gradients, strict=True):
            one.weight_gradient(record, reads, gradient)
            if one.bias:
                one.bias_gradient(record, sizes.tokens, gradient, fused=self.kernels.bias == "fused")
        exchanges.finish_gradient(record, parts, reduces=sizes.tp > 1)
        record.free(*behind)
        return found


@dataclass(frozen=True, slots=True)
class LastMatrices:
    """Matrices whose outputs are added up: attention's projection, and the network's last.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    matrices : tuple of Linear
        Rows.
    """

    sizes: RankSizes
    kernels: LayerKernels
    matrices: tuple[Linear, ...]

    def forward(self, record: PassRecord) -> str:
        """From attention's output and the activation to the sum of both branches; its name."""
        sizes, shares, whole = self.sizes, self.sizes.sequence_parallel, self.sizes.whole
        parts = ProductParts(record, "branches.reduce", self.kernels, sizes, cut=shares)
        record.hold("branches.output", whole)
        for part in range(parts.count):
            for number, one in enumerate(self.matrices):
                rows = parts.rows(sizes.tokens)
                op = linear(rows, one.fan_in, fan_out=one.fan_out, bias=False, dtype=sizes.precision)
                if number:  # it adds to what is there
                    op = replace(op, nbytes_read=op.nbytes_read + op.nbytes_written)
                record.op(parts.product(op), parts.name(one.name, part))
            if shares:
                parts.reduce(whole, part)
        exchanges = TensorExchanges("branches", sizes.hidden, sizes, self.kernels)
        return exchanges.add_up(record, parts, "branches.output")

    def backward(
        self, record: PassRecord, gradient: str, inputs: tuple[str, ...], *, last: bool, frees: tuple[str, ...]
    ) -> tuple[str, ...]:
        """From the gradient of the sum, of this rank's tokens, to that of each matrix's input; their names.

        Parameters
        ----------
        record : PassRecord
        gradient : str
        inputs : tuple of str
            What each matrix read.
        last : bool
            Whether nothing behind it reads `gradient`.
        frees : tuple of str
            What nothing behind it reads.
        """
        sizes, shares, whole = self.sizes, self.sizes.sequence_parallel, gradient
        found = tuple(f"{one.name}.input.gradient" for one in self.matrices)
        parts = ProductParts(record, "branches.gradient.gather", self.kernels, sizes, cut=shares)
        if shares:
            parts.gather(sizes.whole)
            whole = "branches.gradient.gathered"
            record.hold(whole, sizes.whole)
        for one, name in zip(self.matrices, found, strict=True):
            record.hold(name, one.input)
        for part in range(parts.count):
            if shares:
                parts.arrive(part)
            for one in self.matrices:
                product = matmul(parts.rows(sizes.tokens), one.fan_in, k=one.fan_out, dtype=sizes.precision)
                record.op(parts.product(product), parts.name(f"{one.name}.input.gradient", part))
        for one, x in zip(self.matrices, inputs, strict=True):
            one.weight_gradient(record, x, whole)
        record.free(*frees, *([whole] if shares else []), *([gradient] if last else []))
        return found
