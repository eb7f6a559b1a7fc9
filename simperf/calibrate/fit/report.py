"""The report of a fit, in the order and shape that lmfit's users know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from simperf.calibrate.fit.solve import Fit

__all__ = ["fit_text", "quantity"]


def quantity(value: float, unit: str) -> str:
    """A value with its unit, for people.

    Examples
    --------
    >>> quantity(5.25e-6, "s"), quantity(8.1e-11, "s/B"), quantity(0.5, "1")
    ('5.250 us', '8.1e-11 s/B', '0.5')
    """
    from simperf.units import DIMENSIONS, format_quantity

    if unit == "1":
        return f"{value:.4g}"
    return format_quantity(value, unit) if unit in DIMENSIONS else f"{value:.4g} {unit}"


def fit_text(found: Fit) -> str:
    """Statistics, variables with 90 % intervals, correlations, warnings."""
    errors = found.errors()
    size = np.abs(errors)
    median, worst = np.median(size), errors[size.argmax()]
    lines = [
        f"[[Model]] {found.model.name}",
        f"    {found.model.title}",
        "[[Fit Statistics]]",
        "    # method           = least_squares, loss soft_l1, log residuals",
        f"    # function evals   = {found.evaluations}",
        f"    # data points      = {len(found.data)}",
        f"    # variables        = {len(found.constants)}",
        f"    mean error         = {size.mean():.2%} (median {median:.2%}, worst {worst:+.2%})",
        f"    scatter            = {found.scatter:.2%}",
        "[[Variables]]",
    ]
    width = max(len(name) for name in found.constants)
    for name, one in found.constants.items():
        share = f" ({one.stderr / abs(one.value):.2%})" if one.value and not one.note else ""
        low, high = quantity(one.low, one.unit), quantity(one.high, one.unit)
        text = (
            f"    {name + ':':<{width + 1}} {quantity(one.value, one.unit)} +/- {quantity(one.stderr, one.unit)}{share}"
        )
        lines.append(f"{text}, 90 %: {low} to {high}")
    strong = sorted(found.correlations.items(), key=lambda row: -abs(row[1]))
    if strong:
        lines.append("[[Correlations]] (unreported correlations are < 0.100)")
        lines += [f"    C({b}, {a}) = {value:+.4f}" for (a, b), value in strong]
    lines += [f"    ## warning: {text}" for text in found.warnings]
    return "\n".join(lines)
