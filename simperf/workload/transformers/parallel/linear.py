"""Matrices that tensor-parallel ranks share, by their outputs or their inputs, as in Megatron-LM.

Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism", 2019; with the
tokens shared between matrices Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
MLSys 2023. The order of collectives is that of Megatron-Core and Transformer Engine: backward, the input is gathered
again beside the input's gradient, whose reduction runs beside the weight's gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from simperf.workload.kinds.dense import linear, matmul
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.precision import SINGLE
from simperf.workload.transformers.dimensions import Weight
from simperf.workload.transformers.parallel.adapter import Adapter, made_whole
from simperf.workload.transformers.parallel.casts import Casts
from simperf.workload.transformers.parallel.operations import each, weight_product
from simperf.workload.transformers.parallel.parts import ProductParts
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.parallel.tensor_exchanges import TensorExchanges
from simperf.workload.transformers.passes import Kept
from simperf.workload.tuning import BASES

__all__ = ["Linear", "accumulated", "adds_in_product", "frozen_weights", "gradient_width", "placeholders_of"]


@dataclass(frozen=True, slots=True)
class Linear:
    """A rank's part of a matrix.

    Parameters
    ----------
    name : str
    fan_in, fan_out : int
        Of this rank.
    sizes : RankSizes
    kernels : LayerKernels
    row : bool
        Whether ranks share its inputs, and add up what each makes; otherwise they share its outputs.
    bias : bool
        Whether it has a bias that is added to what it makes: a row's is added later.
    divided : bool
        Whether ranks share it; otherwise each has all of it, for its own tokens.
    parts : tuple of int
        Outputs of each matrix, where it is several.
    wide : bool
        Whether its operands are never cast to a narrower precision.
    shared : bool
        Whether something else reads its input backward, too: a narrow copy is kept beside it then, not in its place.
    """

    name: str
    fan_in: int
    fan_out: int
    sizes: RankSizes
    kernels: LayerKernels
    row: bool = False
    bias: bool = False
    divided: bool = True
    parts: tuple[int, ...] = ()
    wide: bool = False
    shared: bool = False

    @property
    def tokens(self) -> int:
        """Rows of the product."""
        return self.sizes.tokens if self.divided else self.sizes.local_tokens

    @property
    def input(self) -> float:
        """Bytes that the product reads beside the weight [B]."""
        return self.sizes.width * self.tokens * self.fan_in

    @property
    def output(self) -> float:
        """Bytes of its output [B]."""
        return self.sizes.width * self.tokens * self.fan_out

    @property
    def casts(self) -> Casts | None:
        """Casts of its operands; None if they are as wide as weights."""
        recipe, sizes = self.sizes.recipe, self.sizes
        if recipe is None or self.wide:
            return None
        ranks = sizes.tp if self._gathers else 1
        return Casts(recipe, self.name, self.fan_in, self.fan_out, self.tokens, sizes.precision, ranks, self.row)

    @property
    def narrow(self) -> tuple[str, ...]:
        """The narrow copy of its input that is kept beside it."""
        recipe = self.sizes.recipe
        own = self.shared and not self.wide and recipe is not None and recipe.keeps_narrow
        return (f"{self.name}.narrow",) if own else ()

    @property
    def _quantized(self) -> bool:
        """Whether it is kept in fewer bits than its product reads: matrices of blocks may be, the head is not."""
        return self.sizes.frozen and self.name != "head"

    @property
    def ends(self) -> list[tuple[str, int]]:
        """Ends of the names of its products, and outputs of each."""
        if self.kernels.projections == "joined" or len(self.parts) < 2:
            return [("", self.fan_out)]
        return [(f".{number}", width) for number, width in enumerate(self.parts)]

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """Those that are trained in its place; none where it is trained itself, or has none."""
        sizes, targets = self.sizes, self.sizes.trained.adapters.targets
        if not sizes.frozen:
            return ()
        parts = [(self.name, self.fan_out)] if self.name in targets else []
        if self.name == "qkv":
            parts += [(part, width) for part, width in zip("qkv", self.parts, strict=True) if part in targets]
        return tuple(Adapter(name, self.fan_in, width, self.tokens, sizes, self.row) for name, width in parts)

    @property
    def reads_input(self) -> bool:
        """Whether its backward pass reads what it has read."""
        return not self.sizes.frozen or bool(self.adapters)

    @property
    def holds_input(self) -> bool:
        """Whether what it has read stays up to its backward pass, be it read there or not.

        bitsandbytes before 0.43.3 keeps the input of a matrix in 4 bits (bitsandbytes/autograd/_functions.py,
        `MatMul4Bit`: ``ctx.tensors = (A, B)``; pull request 1270 calls it a useless buffered activation).
        """
        narrow = self._quantized and self.sizes.trained.adapters.base in BASES
        return self.reads_input or (narrow and self.kernels.quantized_inputs == "kept")

    @property
    def _gathers(self) -> bool:
        return self.divided and self.sizes.sequence_parallel

    @property
    def placeholders(self) -> tuple[Kept, ...]:
        """Memory in place of its gradient, named by its shape."""
        return placeholders_of(self.fan_out, self.fan_in, self.kernels, self.sizes)

    def forward(self, record: PassRecord, x: str) -> str:
        """Collectives and the product; the name of what it makes, with all tokens, or of a row with this rank's.

        Parameters
        ----------
        record : PassRecord
        x : str
            What it reads.
        """
        name, sizes, made = self.name, self.sizes, f"{self.name}.output"
        gathers = self._gathers and not self.row
        keeps = gathers and self.kernels.gathered_inputs == "kept" and self.reads_input
        casts, share = self.casts, 1.0
        if casts is not None and (casts.before_gather or not gathers):
            casts.forward(record)
            self._keep(record, x)
            share = casts.input_share
        row_reduces = self.row and sizes.tp > 1 and sizes.sequence_parallel
        label = f"{name}.reduce" if row_reduces else f"{name}.gather"
        parts = self._parts(record, label, cut=gathers or row_reduces)
        if gathers:
            parts.gather(self.input * share)
            narrow = casts is not None and casts.recipe.keeps_narrow
            record.hold(f"{name}.gathered", self.input * (share if narrow else 1.0))
        if casts is not None and gathers and not casts.before_gather:
            parts.arrive_all()
            casts.forward(record)
        whole = made_whole(record, name, self.fan_in * self.fan_out, sizes) if self._quantized else ""
        record.hold(made, self.output)
        for part in range(parts.count):
            if gathers:
                parts.arrive(part)
            self.products(record, parts, part)
            if row_reduces:
                parts.reduce(self.output, part)
        record.free(*([whole] if whole else []))
        for one in self.adapters:
            one.forward(record)
        record.free(*((f"{name}.gathered",) if gathers and not keeps else ()), *((x,) if keeps else ()))
        made = self.with_bias(record, made)
        return self._exchanges(self.fan_out).add_up(record, parts, made) if self.row else made

    def products(self, record: PassRecord, parts: ProductParts, part: int) -> None:
        """The products of a part of the tokens, with a bias that they add."""
        casts, fused = self.casts, self.bias and self.kernels.bias == "fused"
        for end, outputs in self.ends:
            rows = parts.rows(self.tokens)
            op = linear(rows, self.fan_in, fan_out=outputs, bias=fused, dtype=self.sizes.precision)
            product = parts.product(casts.product(op, "forward") if casts else op)
            record.op(product, parts.name(f"{self.name}{end}", part))

    def with_bias(self, record: PassRecord, made: str) -> str:
        """Name of what it has made, with a bias that a kernel of its own adds."""
        if not self.bias or self.kernels.bias == "fused":
            return made
        elements, width = self.tokens * self.fan_out, self.sizes.width
        added = each("add", elements, read=width, written=width, dtype=self.sizes.precision)
        record.hold(f"{self.name}.sum", self.output)
        record.op(added, f"{self.name}.bias", frees=(made,))
        return f"{self.name}.sum"

    def backward(self, record: PassRecord, gradient: str, x: str, *, last: bool = True, frees: bool = True) -> str:
        """Gradients of what it reads, and of the weight; the name of the former.

        Parameters
        ----------
        record : PassRecord
        gradient : str
            Of what it makes; of a row with this rank's tokens.
        x : str
            What it read.
        last, frees : bool
            Whether nothing behind it reads `gradient`, and `x`.
        """
        name, sizes, found = self.name, self.sizes, f"{self.name}.input.gradient"
        exchanges, gathers = self._exchanges(self.fan_in), self._gathers
        keeps = gathers and not self.row and self.kernels.gathered_inputs == "kept" and self.reads_input
        behind, casts = [*([x] if frees and not keeps and x in record.tensors else []), *self.narrow], self.casts
        reads, whole = (*self.narrow, x)[0], gradient
        early = casts is not None and casts.recipe.keeps == "narrow"
        if casts is not None and early:
            whole = casts.gradient(record) or gradient
            behind += [whole] if whole != gradient else []
        row = gathers and self.row
        label = f"{name}.gradient.gather" if row else f"{name}.reduce.back"
        parts = self._parts(record, label, cut=gathers)
        if row:
            share = casts.gradient_share if casts else 1.0
            parts.gather(self.output * share)
            record.hold(f"{name}.gradient.gathered", self.output * share)
            whole = f"{name}.gradient.gathered"
            behind.append(whole)
        elif gathers and self.reads_input:
            if not keeps:
                share = casts.input_share if casts and casts.recipe.keeps_narrow else 1.0
                exchanges.gather_again(record, reads, share=share)
            reads = f"{name}.gathered"
            behind.append(reads)
        if casts is not None:
            parts.arrive_all()
        if casts is not None and early:
            casts.gathered_gradient(record)
        elif casts is not None:
            casts.gradient(record)
        weight = made_whole(record, f"{name}.back", self.fan_in * self.fan_out, sizes) if self._quantized else ""
        record.hold(found, self.input)
        self._input(record, parts)
        record.free(*([weight] if weight else []))
        record.wait(f"{name}.gather.back", weights=True)
        for one in self.adapters:
            one.backward(record, reads)
            for matrix in one.weights:
                accumulated(record, matrix.name, matrix.elements, self.kernels, sizes, adapter=True)
        reduces = sizes.tp > 1 and not self.row and self.divided
        if reduces:
            behind += [found] if gathers else []
            found = exchanges.reduce_gradient(record, parts, found)
        if not sizes.frozen:
            self.weight_gradient(record, reads, whole)
        if self.bias:
            self.bias_gradient(record, self.tokens, whole, fused=self.kernels.bias == "fused")
        exchanges.finish_gradient(record, parts, reduces=reduces)
        record.free(*behind, *((gradient,) if last else ()))
        return found

    def _input(self, record: PassRecord, parts: ProductParts) -> None:
        """The gradient of its input, part by part: what a row needs is gathered before, what others make added up."""
        for part in range(parts.count):
            if self._gathers and self.row:
                parts.arrive(part)
            for end, outputs in self.ends:
                self.input_gradient(record, parts, part, end, outputs)
            for end, _ in self.ends[1:]:
                self.input_sum(record, parts, part, end)
            if self._gathers and not self.row:
                parts.reduce(self.input, part)

    def input_gradient(self, record: PassRecord, parts: ProductParts, part: int, end: str, outputs: int) -> None:
        """A part of the gradient of its input, from one of its products."""
        casts = self.casts
        op = matmul(parts.rows(self.tokens), self.fan_in, k=outputs, dtype=self.sizes.precision)
        product = parts.product(casts.product(op, "input") if casts else op)
        record.op(product, parts.name(f"{self.name}{end}.input.gradient", part))

    def input_sum(self, record: PassRecord, parts: ProductParts, part: int, end: str) -> None:
        """Add that part to what products before it gave."""
        elements, width = parts.rows(self.tokens) * self.fan_in, self.sizes.width
        added = each("add", elements, read=2 * width, written=width, dtype=self.sizes.precision)
        record.op(added, parts.name(f"{self.name}{end}.input.gradient.add", part))

    def _exchanges(self, columns: int) -> TensorExchanges:
        """Exchanges of what it reads or makes, of so many columns."""
        return TensorExchanges(self.name, columns, self.sizes, self.kernels)

    def _parts(self, record: PassRecord, label: str, *, cut: bool) -> ProductParts:
        """Parts of a product beside which something travels."""
        return ProductParts(record, label, self.kernels, self.sizes, cut=cut and self._gathers)

    def bias_gradient(self, record: PassRecord, tokens: int, gradient: str, *, fused: bool = False) -> None:
        """The gradient of its bias: a sum over tokens of the gradient of what it makes, or a part of the product."""
        if not (fused or self.sizes.frozen):
            size, width = tokens * self.fan_out, self.sizes.width
            total = each("sum", size, read=width, written=0.0, dtype=self.sizes.precision, family="reduction")
            record.op(total, f"{self.name}.bias.gradient", weights=True, reads=(gradient,))
        accumulated(record, f"{self.name}.bias", self.fan_out, self.kernels, self.sizes)

    def weight_gradient(self, record: PassRecord, x: str, gradient: str) -> None:
        """The gradient of the weight, of its input and the gradient of its output, added up over micro-batches."""
        name, sizes = f"{self.name}.weight", self.sizes
        fused = adds_in_product(self.kernels, sizes)
        into = gradient_width(self.kernels, sizes) if fused else sizes.width
        tokens, precision, elements, casts = self.tokens, sizes.precision, self.fan_in * self.fan_out, self.casts
        if casts is not None:
            casts.weight_gradient(record)
        if not fused:
            record.hold(f"{name}.gradient", sizes.width * elements, weights=True)
        for end, outputs in self.ends:
            op = weight_product(outputs, self.fan_in, k=tokens, dtype=precision, into=into, adds=fused)
            product, made = casts.product(op, "weight") if casts else op, f"{self.name}{end}.weight.gradient"
            record.op(product, made, weights=True, reads=(x, gradient))
        if not fused:
            accumulated(record, name, elements, self.kernels, sizes)

    def keep_again(self, record: PassRecord, x: str) -> None:
        """The narrow copy of its input alone, where the product is not computed again."""
        if (casts := self.casts) is not None and casts.recipe.keeps_narrow:
            casts.input(record, copies=casts.recipe.copies)
            self._keep(record, x)

    def _keep(self, record: PassRecord, x: str) -> None:
        """Keep the narrow copy of its input, if that is what the recipe keeps."""
        casts = self.casts
        if casts is None or not casts.recipe.keeps_narrow:
            return
        if self.shared:
            record.hold(self.narrow[0], casts.narrow_input)
        else:
            record.resize(x, casts.narrow_input)


def accumulated(
    record: PassRecord, name: str, elements: int, kernels: LayerKernels, sizes: RankSizes, *, adapter: bool = False
) -> None:
    """Add a gradient to that of the micro-batches before, or keep it to the end of the layer's pass.

    There is none of weights that are frozen: `adapter` says that it is one of an adapter.
    """
    if sizes.frozen and not adapter:
        return
    gradient = f"{name}.gradient"
    if sizes.fresh_gradients:
        if gradient not in record.tensors:
            record.hold(gradient, sizes.width * elements, weights=True)
        record.own(gradient)
        return
    into = gradient_width(kernels, sizes)
    op = each("add", elements, read=sizes.width + into, written=into, dtype="fp32" if into == 4 else sizes.precision)
    record.op(op, f"{name}.accumulate", weights=True)
    if gradient in record.tensors:
        record.free(gradient)


def frozen_weights(weights: Iterable[Weight], sizes: RankSizes, *, matrices: bool = False) -> tuple[Kept, ...]:
    """Memory of weights that are not trained; those of a block's `matrices` may be kept in fewer bits."""
    narrow = sizes.trained.adapters.width(sizes.width) if matrices else sizes.width
    return tuple(Kept(one.name, one.elements * (narrow if len(one.shape) == 2 else sizes.width)) for one in weights)


def placeholders_of(fan_out: int, fan_in: int, kernels: LayerKernels, sizes: RankSizes) -> tuple[Kept, ...]:
    """Memory in place of a matrix's gradient, which is added to its buffer inside of the product; by its shape."""
    if kernels.placeholders == "none" or not adds_in_product(kernels, sizes) or sizes.frozen:
        return ()
    return (Kept(f"gradient {fan_out} x {fan_in}", sizes.width * fan_in * fan_out),)


def adds_in_product(kernels: LayerKernels, sizes: RankSizes) -> bool:
    """Whether the product that makes a weight's gradient adds it to that of the micro-batches before."""
    return kernels.gradient_accumulation == "fused" and not sizes.fresh_gradients


def gradient_width(kernels: LayerKernels, sizes: RankSizes) -> float:
    """Bytes of an element of the buffer that gradients are added up in."""
    return SINGLE if kernels.gradients == "fp32" else sizes.width
