"""A low-rank adapter beside a frozen matrix, on one rank.

Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022. To what a matrix makes is added a multiple
of B A x: A makes a few numbers of each row, and B the outputs of these. Where tensor-parallel ranks share the outputs
of the matrix they share those of B, and each has all of A; where they share its inputs they share those of A, and each
has all of B. Of what each has as a whole, ranks know parts of the gradient, which are added up once a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simperf.workload.kinds.dense import linear, matmul
from simperf.workload.op import Op
from simperf.workload.transformers.dimensions import Weight
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept
from simperf.workload.tuning import BASES

__all__ = ["Adapter", "made_whole"]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A rank's part of an adapter: two matrices.

    Parameters
    ----------
    name : str
    fan_in, fan_out : int
        Of this rank.
    tokens : int
        Rows of its products.
    sizes : RankSizes
    row : bool
        Whether tensor-parallel ranks share its inputs; otherwise its outputs.
    """

    name: str
    fan_in: int
    fan_out: int
    tokens: int
    sizes: RankSizes
    row: bool = False

    @property
    def rank(self) -> int:
        """Numbers that the first matrix makes of a row."""
        return self.sizes.trained.adapters.rank

    @property
    def weights(self) -> tuple[Weight, Weight]:
        """Its first and its last matrix."""
        return (
            Weight(f"{self.name}.lora.a", (self.rank, self.fan_in)),
            Weight(f"{self.name}.lora.b", (self.fan_out, self.rank)),
        )

    @property
    def whole(self) -> tuple[Weight, ...]:
        """Those of which each tensor-parallel rank has all."""
        first, last = self.weights
        return () if self.sizes.tp == 1 else (last,) if self.row else (first,)

    @property
    def kept(self) -> str:
        """The output of the first matrix, which the backward pass reads."""
        return f"{self.name}.lora.inner"

    def forward(self, record: PassRecord) -> None:
        """Two products, the scale, and the sum with what the frozen matrix has made."""
        name, dtype, width = f"{self.name}.lora", self.sizes.precision, self.sizes.width
        made = self.tokens * self.fan_out
        self.again(record)
        up = linear(self.tokens, self.rank, fan_out=self.fan_out, bias=False, dtype=dtype)
        record.op(up, f"{name}.b", makes=[Kept(f"{name}.made", width * made)])
        record.op(self._pass("mul", made), f"{name}.scale")
        record.op(self._pass("add", made, reads=2), f"{name}.add", frees=(f"{name}.made",))

    def again(self, record: PassRecord) -> None:
        """The first product alone, whose result the backward pass reads."""
        op = linear(self.tokens, self.fan_in, fan_out=self.rank, bias=False, dtype=self.sizes.precision)
        made = [Kept(self.kept, self.sizes.width * self.tokens * self.rank)]
        record.op(op, f"{self.name}.lora.a", makes=made)

    def backward(self, record: PassRecord, x: str) -> None:
        """Gradients of both matrices, and of the input, which is added to that of the frozen matrix.

        Parameters
        ----------
        record : PassRecord
        x : str
            What it has read.
        """
        name, dtype, width = f"{self.name}.lora", self.sizes.precision, self.sizes.width
        inner, made, read = self.tokens * self.rank, self.tokens * self.fan_out, self.tokens * self.fan_in
        scaled, between = Kept(f"{name}.gradient", width * made), Kept(f"{name}.inner.gradient", width * inner)
        record.op(self._pass("mul", made), f"{name}.scale.back", makes=[scaled])
        last = matmul(self.fan_out, self.rank, k=self.tokens, dtype=dtype)
        record.op(last, f"{name}.b.weight.gradient", weights=True, reads=(scaled.name, self.kept))
        record.op(matmul(self.tokens, self.rank, k=self.fan_out, dtype=dtype), f"{name}.b.gradient", makes=[between])
        first = matmul(self.rank, self.fan_in, k=self.tokens, dtype=dtype)
        reads = between.name, x
        record.op(first, f"{name}.a.weight.gradient", weights=True, reads=reads, frees=(scaled.name,))
        found = Kept(f"{name}.input.gradient", width * read)
        record.op(matmul(self.tokens, self.fan_in, k=self.rank, dtype=dtype), f"{name}.a.gradient", makes=[found])
        frees = (found.name, between.name, self.kept)
        record.op(self._pass("add", read, reads=2), f"{name}.input.add", frees=frees)

    def _pass(self, kind: str, elements: int, *, reads: int = 1) -> Op:
        width = self.sizes.width
        return each(kind, elements, read=reads * width, written=width, dtype=self.sizes.precision)


def made_whole(record: PassRecord, name: str, elements: int, sizes: RankSizes) -> str:
    """A frozen matrix as products read it, of one in 4 bits; its name, or none where it is so already.

    bitsandbytes (`MatMul4Bit`) makes it in one kernel before each product, forward and backward; scales that are
    quantized too are made by one before that.
    """
    base = sizes.trained.adapters.base
    if base not in BASES:
        return ""
    scales, whole = elements / 64, f"{name}.whole"
    if base == "nf4-double":
        op = each("dequantize", scales, read=1 + 4 / 256, written=4.0, dtype="fp32")
        record.op(replace(op, flops=2.0 * scales), f"{name}.scales")
    made = [Kept(whole, sizes.width * elements)]
    op = each("dequantize", elements, read=BASES["nf4"], written=sizes.width, dtype=sizes.precision)
    record.op(op, f"{name}.dequantize", makes=made)
    return whole
