"""A fitted constant with its unit, for people."""

from __future__ import annotations

from simperf.units import DIMENSIONS, format_quantity

__all__ = ["quantity"]


def quantity(value: float, unit: str) -> str:
    """A value with its unit, for people.

    Examples
    --------
    >>> quantity(5.25e-6, "s"), quantity(8.1e-11, "s/B"), quantity(0.5, "1")
    ('5.250 us', '8.1e-11 s/B', '0.5')
    """
    if unit == "1":
        return f"{value:.4g}"
    return format_quantity(value, unit) if unit in DIMENSIONS else f"{value:.4g} {unit}"
