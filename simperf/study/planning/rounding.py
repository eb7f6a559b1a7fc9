"""Times and costs of a plan in three significant digits: to the nearest for tables, upwards for what is proposed."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal

__all__ = ["dollars", "dollars_above", "hours", "hours_above", "three_digits"]

#: units of a time with their size [s]: each is used for less than so many of it
_UNITS = ((1.0, "s", 60.0), (60.0, "min", 60.0), (3600.0, "h", 72.0), (86400.0, "d", math.inf))
#: a number that is read may be less than the one that was written, by rounding errors
_MARGIN = 1 + 1e-12


def hours(seconds: float) -> str:
    """A time of planning, in the unit of its size up to days.

    Examples
    --------
    >>> hours(5400), hours(10 * 86400.0), hours(30), hours(12.34 * 3600), hours(1000 * 86400)
    ('1.50 h', '10.0 d', '30.0 s', '12.3 h', '1000 d')
    >>> hours(9.996), hours(59.99)
    ('10.0 s', '1.00 min')
    """
    return _time(seconds, ROUND_HALF_EVEN)


def hours_above(seconds: float) -> str:
    """The least time of three digits that is above a time.

    Examples
    --------
    >>> hours(12.341 * 3600), hours_above(12.341 * 3600)
    ('12.3 h', '12.4 h')
    """
    return _time(seconds * _MARGIN, ROUND_CEILING)


def dollars(cost: float) -> str:
    """A cost in cents, or in three digits if it is below 1 USD; of NaN, that there is no price.

    Examples
    --------
    >>> dollars(125.356), dollars(0.001234), dollars(math.nan)
    ('125.36 USD', '0.00123 USD', 'no price')
    """
    if math.isnan(cost):
        return "no price"
    return f"{cost:.2f} USD" if cost >= 1 else f"{three_digits(cost)} USD"


def dollars_above(cost: float) -> str:
    """The least cost of three digits that is above a cost.

    Examples
    --------
    >>> dollars_above(125.356), dollars_above(0.001234)
    ('126 USD', '0.00124 USD')
    """
    return f"{_rounded(cost * _MARGIN, ROUND_CEILING)} USD"


def three_digits(value: float) -> str:
    """A number in three significant digits, without an exponent.

    Examples
    --------
    >>> three_digits(9.996), three_digits(0.5), three_digits(1234.5)
    ('10.0', '0.500', '1230')
    """
    return _rounded(value, ROUND_HALF_EVEN)


def _time(seconds: float, rounding: str) -> str:
    for size, name, most in _UNITS:
        text = _rounded(seconds / size, rounding)
        if float(text) < most:
            return f"{text} {name}"
    return "without end"


def _rounded(value: float, rounding: str) -> str:
    found = Context(prec=3, rounding=rounding).create_decimal(Decimal(value))
    return f"{found:.{max(0, 2 - found.adjusted())}f}"
