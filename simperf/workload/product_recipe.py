"""Recipes of low-precision training: which products run in 8 or 4 bits, what casts their operands, and what is kept.

A recipe is a file of data below ``recipes/``, with the source of each choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, nearest
from simperf.files import read_toml
from simperf.workload.kinds.scaling import SCALINGS, Scaling
from simperf.workload.layer_kernels import PRODUCT_PRECISIONS
from simperf.workload.precision import element_size

__all__ = ["RECIPES", "ProductRecipe", "product_recipe"]

#: recipes that there are
RECIPES = PRODUCT_PRECISIONS[1:]
#: products of a matrix: its own, and the gradients of its input and of its weight
_PRODUCTS = ("forward", "input", "weight")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "scaling": tuple(SCALINGS),
    "largest": ("before", "beside", "within"),
    "casts": ("library", "compiled"),
    "columns": ("by-units", "always", "cast"),
    "weights": ("step", "pass", "gathered", "gathered-each", "frozen"),
    "keeps": ("narrow", "wide"),
}
#: architectures whose 8-bit units multiply operands in either order of their elements
_EITHER_ORDER = ("blackwell",)
#: every dimension of an operand is a multiple of this (NVIDIA/TransformerEngine, transformer_engine/pytorch/utils.py,
#: assert_dim_for_fp8_exec)
_MULTIPLE = 16
_DATA = Path(__file__).parent / "recipes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRecipe:
    """A recipe of products whose operands are cast to 8 or 4 bits.

    Parameters
    ----------
    name : str
    dtype : str
        Of the operands: ``"fp8"`` or ``"fp4"``.
    scaling : str
        One of `simperf.workload.kinds.scaling.SCALINGS`.
    largest : str
        How the factor of a tensor is found: by a kernel ``"before"`` the cast, which reads all of it; ``"beside"`` the
        cast, for the next step; or ``"within"`` it, of each block or row.
    casts : str
        Kernels of a library (`amax`, `quantize`), or ``"compiled"`` ones.
    columns : str
        How operands come in the order of the two gradients: written by the same cast where the units need it
        (``"by-units"``); ``"always"``, as blocks along that order have factors of their own; by another ``"cast"``.
    weights : str
        Weights are cast once a ``"step"``, and kept; or in each ``"pass"``; or come narrow from the ranks that share
        them, once a step (``"gathered"``) or for each pass (``"gathered-each"``); or are never changed (``"frozen"``).
    keeps : str
        What the forward pass keeps of an input: the ``"narrow"`` copy, or the ``"wide"`` tensor, which is cast again.
    products : tuple of str
        What runs so: ``"forward"``, the gradient of the ``"input"``, that of the ``"weight"``.
    gathers_inputs : bool
        Whether tensor-parallel ranks gather tokens after the cast.
    gathers_weights : bool
        Whether weights may travel in the narrow precision.
    both_orders : bool
        Whether the units multiply operands in either order of their elements.
    """

    name: str
    dtype: str
    scaling: str
    largest: str
    casts: str
    columns: str
    weights: str
    keeps: str
    products: tuple[str, ...] = _PRODUCTS
    gathers_inputs: bool = True
    gathers_weights: bool = False
    both_orders: bool = False

    def __post_init__(self) -> None:
        problems = [
            Problem(f"no such choice{nearest(value, known)}", key=key, value=repr(value), expected=", ".join(known))
            for key, known in _CHOICES.items()
            if (value := getattr(self, key)) not in known
        ]
        if self.scaling in SCALINGS and self.dtype not in SCALINGS[self.scaling].dtypes:
            expected = ", ".join(SCALINGS[self.scaling].dtypes)
            problems.append(Problem("is not scaled so", key="dtype", value=repr(self.dtype), expected=expected))
        if not self.products or set(self.products) - set(_PRODUCTS) or "forward" not in self.products:
            told, expected = repr(list(self.products)), "forward, and of input and weight what runs so"
            problems.append(Problem("are not products of a matrix", key="products", value=told, expected=expected))
        if problems:
            raise InputError(problems)

    @property
    def way(self) -> Scaling:
        """Factors of its operands."""
        return SCALINGS[self.scaling]

    @property
    def width(self) -> float:
        """Bytes of an element of an operand, with its share of factors."""
        return element_size(self.dtype) + (self.way.factor / self.way.block if self.way.block else 0.0)

    @property
    def multiple(self) -> int:
        """Number that divides every dimension of an operand."""
        return max(_MULTIPLE, min(self.way.block, 32))

    @property
    def keeps_narrow(self) -> bool:
        """Whether the forward pass keeps narrow copies of inputs."""
        return self.keeps == "narrow" and "weight" in self.products

    @property
    def copies(self) -> int:
        """Copies of an operand that a cast writes for products in both orders."""
        return 2 if self.columns == "always" or (self.columns == "by-units" and not self.both_orders) else 1

    @property
    def turns(self) -> bool:
        """Whether a narrow weight has to be copied in the other order for the gradient of the input."""
        return self.columns == "cast" or self.copies == 2

    @property
    def units(self) -> str:
        """Precision whose units a GPU needs: those of 4 bits apply factors of small blocks."""
        return "fp4" if self.scaling in ("mx", "nvfp4") else self.dtype

    def of_frozen(self) -> ProductRecipe:
        """The recipe of weights that are not trained: cast before the first step, if they are not in each pass."""
        products = tuple(one for one in self.products if one != "weight")
        return replace(self, products=products, weights="frozen" if self.weights == "step" else self.weights)

    def on(self, architecture: str) -> ProductRecipe:
        """The recipe on GPUs of an architecture.

        Examples
        --------
        >>> [product_recipe("fp8-current").on(one).copies for one in ("hopper", "blackwell")]
        [2, 1]
        """
        return replace(self, both_orders=architecture in _EITHER_ORDER)


@cache
def product_recipe(name: str) -> ProductRecipe:
    """The recipe of a name.

    Parameters
    ----------
    name : str
        One of `RECIPES`.

    Raises
    ------
    InputError
        There is none, or its file has what no recipe has.

    Examples
    --------
    >>> product_recipe("mxfp8").width, product_recipe("nvfp4").width
    (1.03125, 0.5625)
    """
    if name not in RECIPES:
        message = f"no such recipe of products{nearest(name, RECIPES)}"
        raise InputError(Problem(message, key="products", value=repr(name), expected=", ".join(RECIPES)))
    read: Mapping[str, Any] = read_toml(_DATA / f"{name}.toml").data["recipe"]
    known = {one.name for one in fields(ProductRecipe)} - {"name", "both_orders"}
    if unknown := sorted(set(read) - known):
        raise InputError(Problem("no such option of a recipe", key=unknown[0], expected=", ".join(sorted(known))))
    given: dict[str, Any] = {key: tuple(value) if key == "products" else value for key, value in read.items()}
    return ProductRecipe(name=name, **given)
