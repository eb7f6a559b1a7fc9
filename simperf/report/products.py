"""Grades of matrix products, attention and experts by shape, as markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simperf.accuracy.kernel_grades import KernelGrade
    from simperf.accuracy.products import ProductGrade

__all__ = ["kernels_markdown", "product_lines", "products_markdown"]

#: type of a table's layer in words
_LAYER_TITLES: Mapping[str, str] = {"bfloat16": "bf16", "fp8": "fp8, one factor", "fp8_block": "fp8, blocks"}
_HEAD = (
    "## Matrix products by shape\n\n"
    "Median absolute errors on the half of a GPU's shapes that nothing was fitted to: by the catalogue's constants, "
    "with the GPU's profile, by one rate, and by the larger of arithmetic and traffic with three constants of its own. "
    "*Left out*: by constants that were fitted without the GPU, on all of its shapes, with the median signed error."
)
_KERNELS_HEAD = (
    "## Attention and experts by shape\n\n"
    "Median absolute errors on the half of a GPU's shapes that nothing was fitted to, by the catalogue's constants and "
    "with the GPU's profile, and in brackets the 90th percentile. GPUs that were left out, "
    "and published figures: [attention](explanation/attention.md), [experts](explanation/experts.md)."
)


def product_lines(grades: Iterable[ProductGrade]) -> Iterator[str]:
    """A table of grades, line by line."""
    yield "| GPU | layer | M | shapes | catalogue | with profile | left out | one rate | three constants |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for one in grades:
        size = "1,024 and more" if one.large else "fewer"
        errors = (one.catalogue, one.profile, one.left_out, one.bias, one.constant, one.roofline)
        text = "{:.1f} % | {:.1f} % | {:.1f} % ({:+.1f}) | {:.0f} % | {:.1f} %".format(*(100 * each for each in errors))
        yield f"| {one.gpu} | {_LAYER_TITLES[one.layer]} | {size} | {one.graded} | {text} |"


def products_markdown(grades: Iterable[ProductGrade]) -> str:
    """The section of the page of accuracy."""
    return "\n".join([_HEAD, "", *product_lines(grades)]) + "\n"


def _kernel_lines(grades: Iterable[KernelGrade]) -> Iterator[str]:
    """A table of grades of attention and experts, line by line."""
    yield "| GPU | kernels | shapes | catalogue | with profile |"
    yield "|---|---|--:|--:|--:|"
    for one in grades:
        errors = (one.catalogue, one.catalogue_most, one.profile, one.profile_most)
        text = "{:.1f} % ({:.0f}) | {:.1f} % ({:.0f})".format(*(100 * each for each in errors))
        yield f"| {one.gpu} | {one.title} | {one.graded} | {text} |"


def kernels_markdown(grades: Iterable[KernelGrade]) -> str:
    """The section of the page of accuracy on attention and experts."""
    return "\n".join([_KERNELS_HEAD, "", *_kernel_lines(grades)]) + "\n"
