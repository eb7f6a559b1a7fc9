"""Precision of a rank's numbers: of weights and activations, and of the products of its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simperf.errors import Problem
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.product_recipe import ProductRecipe, product_recipe

__all__ = ["RankPrecision"]


@dataclass(frozen=True, slots=True)
class RankPrecision:
    """Precision of a rank's numbers.

    Parameters
    ----------
    weights : str
        Of weights and activations: ``"bf16"``, ``"fp16"`` or ``"fp32"``.
    recipe : ProductRecipe, optional
        Of the blocks' products, if they are in 8 or 4 bits.
    pure : bool
        Whether the optimizer updates weights as they are, with states as wide; otherwise states are in fp32, and
        narrower weights have a copy in fp32.
    """

    weights: str = "bf16"
    recipe: ProductRecipe | None = None
    pure: bool = False

    @classmethod
    def of(cls, weights: str, kernels: LayerKernels, architecture: str = "", *, pure: bool = False) -> RankPrecision:
        """Precision of a rank with these kernels, on GPUs of an architecture."""
        recipe = None if kernels.products == "as-weights" else product_recipe(kernels.products).on(architecture)
        return cls(weights, recipe, pure)

    def problems(self, kernels: LayerKernels, recompute: str) -> Iterator[Problem]:
        """Problems of choices that the recipe does not go together with."""
        if self.recipe is None or not self.recipe.keeps_narrow:
            return
        name = self.recipe.name
        if recompute == "selective-op":
            message = f"{name} keeps inputs in the narrow precision, and this keeps results in the wide one"
            yield Problem(message, key="recompute", value=recompute, expected="none, selective or full")
        if kernels.gathered_inputs == "kept":
            message = f"{name} keeps inputs in the narrow precision, before they are gathered"
            yield Problem(message, key="gathered_inputs", value="kept", expected="again")
