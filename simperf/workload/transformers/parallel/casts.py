"""Casts around the products of one matrix, as a recipe of low-precision training has them.

Tensor-parallel ranks that gather tokens cast their own first. With a factor for the tensor all of them need the same
one, so that its largest element is reduced before the cast. What comes in the order of rows and is needed in that of
columns is copied by a kernel of its own, as in Transformer Engine (fp8_transpose).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simperf.workload.kinds.scaling import amax, quantize
from simperf.workload.op import Op
from simperf.workload.precision import SINGLE, element_size
from simperf.workload.product_recipe import ProductRecipe
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord

__all__ = ["Casts", "cast_kernels", "narrowed", "turned"]


def cast_kernels(
    recipe: ProductRecipe, elements: float, name: str, dtype: str, *, copies: int = 1, find: bool = True
) -> list[Op]:
    """Kernels that cast a tensor: its largest element, if one has to be found before, and the cast.

    Parameters
    ----------
    recipe : ProductRecipe
    elements : float
    name : str
    dtype : str
        Before the cast.
    copies : int
        Written, as rows and as columns.
    find : bool
        Whether the largest element is not known yet.
    """
    found, width = list[Op](), element_size(dtype)
    if find and recipe.largest == "before":
        largest = each("max", elements, read=width, written=0.0, dtype=dtype, family="reduction")
        if recipe.casts == "library":
            largest = amax(round(elements), dtype=dtype)
        found.append(replace(largest, name=f"{name}.largest"))
    cast = each("copy", elements, read=width, written=copies * recipe.width, dtype=dtype, family="copy")
    if recipe.casts == "library":
        cast = quantize(round(elements), dtype=dtype, to=recipe.dtype, scaling=recipe.scaling)
        cast = replace(cast, nbytes_written=copies * recipe.width * elements)
    return [*found, replace(cast, name=f"{name}.cast")]


def turned(recipe: ProductRecipe, elements: float, name: str) -> Op:
    """A copy of a narrow operand in the other order of its elements."""
    width = recipe.width
    copy = each("copy", elements, flops=0.0, read=width, written=width, dtype="bf16", family="copy")
    return replace(copy, name=f"{name}.turned")


def narrowed(op: Op, recipe: ProductRecipe) -> Op:
    """A product whose operands are narrow, and whose result is as wide as before."""
    added = op.nbytes_written if op.holds == 0.0 else 0.0  # what is read of the result, to be added to
    share = recipe.width / element_size(op.dtype)
    kind = "block_scaled_matmul" if recipe.way.block else op.kind
    return replace(op, kind=kind, dtype=recipe.dtype, nbytes_read=(op.nbytes_read - added) * share + added)


@dataclass(frozen=True, slots=True)
class Casts:
    """Casts of the operands of a matrix's products.

    Parameters
    ----------
    recipe : ProductRecipe
    name : str
        Of the matrix.
    fan_in, fan_out, tokens : int
        Of the products on this rank.
    dtype : str
        Before the casts.
    ranks : int
        That gather its tokens; 1 for none.
    row : bool
        Whether these gather the gradient of what it makes, not what it reads.
    matrices : int
        Of this size, whose rows `tokens` are.
    """

    recipe: ProductRecipe
    name: str
    fan_in: int
    fan_out: int
    tokens: int
    dtype: str
    ranks: int = 1
    row: bool = False
    matrices: int = 1

    @property
    def weights(self) -> int:
        """Weights of all matrices."""
        return self.fan_in * self.fan_out * self.matrices

    @property
    def before_gather(self) -> bool:
        """Whether a rank casts its own tokens, which are gathered then."""
        return self.recipe.gathers_inputs and self.ranks > 1 and not self.row

    @property
    def gradient_before_gather(self) -> bool:
        """The same of gradients."""
        return self.recipe.keeps == "narrow" and self.ranks > 1 and self.row

    @property
    def input_share(self) -> float:
        """Bytes of the input as it is gathered, over those before the cast."""
        return self.recipe.width / element_size(self.dtype) if self.before_gather else 1.0

    @property
    def gradient_share(self) -> float:
        """The same of the gradient: rows, and columns where these have factors of their own."""
        if not self.gradient_before_gather:
            return 1.0
        both = self.recipe.columns == "always" and "weight" in self.recipe.products
        return (2 if both else 1) * self.recipe.width / element_size(self.dtype)

    @property
    def narrow_input(self) -> float:
        """Bytes that are kept of this rank's input [B]."""
        return self.recipe.width * self._own_inputs

    def forward(self, record: PassRecord) -> None:
        """Casts of the input and the weight before the product."""
        whole = self.before_gather and self.recipe.columns == "by-units"  # columns are made of what is gathered
        copies = self.recipe.copies if self.recipe.keeps_narrow and not whole else 1
        self.input(record, copies=copies)
        if self.recipe.weights == "pass":
            self._cast(record, "weight", self.weights)

    def input(self, record: PassRecord, *, copies: int = 1) -> None:
        """The cast of the input."""
        self._cast(record, "input", self._own_inputs, copies=copies, shared=self.before_gather)

    def gradient(self, record: PassRecord) -> str:
        """The cast of the gradient of what the matrix makes, and that of the weight.

        The name of the narrow copy that the gradient of the weight reads too; empty where each product has its own.
        """
        recipe = self.recipe
        elements = self.tokens * self.fan_out // (self.ranks if self.gradient_before_gather else 1)
        if recipe.columns == "cast":
            both = "weight" in recipe.products
            once = both and recipe.way.tensor
            self._cast(record, "gradient", elements, copies=2 if once else 1)
            if both and not once:
                self._cast(record, "gradient.columns", elements)
        else:
            whole = self.gradient_before_gather and recipe.columns == "by-units"
            copies = 1 if whole or "weight" not in recipe.products else recipe.copies
            self._cast(record, "gradient", elements, copies=copies, shared=whole)
        if recipe.weights == "pass":
            self._cast(record, "weight.back", self.weights, find=False)
        elif recipe.weights == "gathered-each" and recipe.turns:
            self._turned(record, "weight.back", self.weights)
        if recipe.keeps != "narrow":
            return ""
        record.hold(f"{self.name}.gradient.narrow", recipe.copies * recipe.width * elements)
        return f"{self.name}.gradient.narrow"

    def gathered_gradient(self, record: PassRecord) -> None:
        """Columns of a gradient that was gathered as rows."""
        if self.gradient_before_gather and self.recipe.keeps_narrow and self._turns_rows:
            self._turned(record, "gradient", self.tokens * self.fan_out)

    def weight_gradient(self, record: PassRecord) -> None:
        """Columns of the input, for the gradient of the weight."""
        if "weight" not in self.recipe.products:
            return
        if not self.recipe.keeps_narrow:
            find = self.recipe.largest == "within"
            self._cast(record, "input.back", self.tokens * self.fan_in, find=find, weights=True)
        elif self.before_gather and self._turns_rows:
            self._turned(record, "input", self.tokens * self.fan_in, weights=True)

    def product(self, op: Op, which: str) -> Op:
        """A product, in the recipe's precision if that one runs so."""
        return narrowed(op, self.recipe) if which in self.recipe.products else op

    @property
    def _turns_rows(self) -> bool:
        """Whether what was gathered as rows is copied as columns."""
        return self.recipe.columns == "by-units" and self.recipe.copies == 2

    @property
    def _own_inputs(self) -> int:
        return self.tokens * self.fan_in // (self.ranks if self.before_gather else 1)

    def _cast(
        self,
        record: PassRecord,
        what: str,
        elements: int,
        *,
        copies: int = 1,
        find: bool = True,
        shared: bool = False,
        weights: bool = False,
    ) -> None:
        name = f"{self.name}.{what}"
        for op in cast_kernels(self.recipe, elements, name, self.dtype, copies=copies, find=find):
            record.op(op, op.name, weights=weights)
            if shared and op.name.endswith(".largest"):
                record.sync("all-reduce", SINGLE, f"{name}.largest.reduce")

    def _turned(self, record: PassRecord, what: str, elements: int, *, weights: bool = False) -> None:
        op = turned(self.recipe, elements, f"{self.name}.{what}")
        record.op(op, op.name, weights=weights)
