"""Looking up any number of a result by name, and holding it against what was expected."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simperf.analysis.breakdown import breakdown
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["Check", "check", "lookup"]


@dataclass(frozen=True, slots=True)
class Check:
    """One number of a result and the range in which it was expected.

    Parameters
    ----------
    key : str
        Such as ``"time"`` or ``"metrics.throughput"``.
    value : float
        What the run gave, in the SI unit `unit`.
    unit : str
    low, high : float
        The range that is accepted, ends included; infinite where there is no limit.
    source : str
        Where the expectation comes from.
    kind : str
        ``"regression"``, ``"closed form"`` or ``"published"``, where it is known.
    """

    key: str
    value: float
    unit: str
    low: float = -math.inf
    high: float = math.inf
    source: str = ""
    kind: str = ""

    @property
    def origin(self) -> str:
        """Kind and source in brackets, as they follow the verdict; empty if neither is known."""
        text = ": ".join(part for part in (self.kind, self.source) if part)
        return f" ({text})" if text else ""

    @property
    def ok(self) -> bool:
        """Whether the number lies in the range."""
        return self.low <= self.value <= self.high

    @property
    def expected(self) -> str:
        """The range in words."""
        low, high = (format_quantity(end, self.unit) for end in (self.low, self.high))
        if low == high:
            return low
        if self.low == -math.inf:
            return f"at most {high}"
        return f"at least {low}" if self.high == math.inf else f"{low} to {high}"

    def __str__(self) -> str:
        verdict = "is as expected" if self.ok else "is not as expected"
        digits = 4
        text, expected = format_quantity(self.value, self.unit), self.expected
        while not self.ok and text == expected and digits < 17:  # a miss must be seen
            digits += 4
            text = format_quantity(self.value, self.unit, digits=digits)
            expected = format_quantity(self.low if self.value < self.low else self.high, self.unit, digits=digits)
        return f"{self.key} {verdict}: {text}, expected {expected}"


def lookup(result: Result, key: str) -> tuple[float, str]:
    """Value and SI unit of one number of a result.

    Parameters
    ----------
    result : Result
    key : str
        ``"time"``, ``"metrics.NAME"``, ``"breakdown.CATEGORY"``, ``"floor.NAME"`` (``"floor"``
        is the highest), or ``"utilisation.RESOURCE"``.

    Raises
    ------
    UnknownNameError
        The result has no such number.
    """
    group, _, name = key.partition(".")
    if key == "time":
        return result.time, "s"
    if key == "floor":
        return result.floor[1], "s"
    if group == "metrics" and name in result.metrics:
        return result.metrics[name].value, result.metrics[name].unit
    if group == "floor" and name in result.floors:
        return result.floors[name], "s"
    if group == "utilisation" and name in result.resources:
        return result.resources[name].utilisation(result.time), "1"
    parts = breakdown(result)
    if group == "breakdown" and name in parts:
        return parts[name], "s"
    known = ["time", "floor", *(f"metrics.{n}" for n in result.metrics), *(f"floor.{n}" for n in result.floors)]
    known += [*(f"breakdown.{n}" for n in parts), *(f"utilisation.{n}" for n in result.resources)]
    raise UnknownNameError("number of the result", key, known)


def check(
    result: Result,
    key: str,
    *,
    value: float | None = None,
    rtol: float = 1e-6,
    atol: float = 0.0,
    low: float = -math.inf,
    high: float = math.inf,
    source: str = "",
    kind: str = "",
) -> Check:
    """Hold the number `key` of `result` against `value` within tolerances, or against a range.

    Parameters
    ----------
    result : Result
    key : str
        As in `lookup`.
    value : float, optional
        What is expected, in the number's SI unit; widens to ``value ± max(rtol |value|, atol)``.
    rtol, atol : float
        Relative [1] and absolute tolerance, in the number's unit.
    low, high : float
        The range, if no value is given.
    source, kind : str
        Where the expectation comes from.

    Raises
    ------
    UnknownNameError
        The result has no such number.
    InputError
        The range is empty.

    Examples
    --------
    >>> str(check(Result("r", 0.06), "time", value=0.08))
    'time is not as expected: 60.00 ms, expected 80.00 ms'
    """
    if value is not None:
        slack = max(rtol * abs(value), atol)
        low, high = value - slack, value + slack
    if not low <= high:
        raise InputError(
            Problem(
                "the expected range is empty",
                key=key,
                value=f"{low:g} to {high:g}",
                expected="a least value that is at most the largest",
            )
        )
    found, unit = lookup(result, key)
    return Check(key, found, unit, low, high, source, kind)
