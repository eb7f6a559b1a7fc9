"""Axes of a sweep: keys of a scenario, their values, and how values make points."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simperf.errors import InputError, Problem
from simperf.files import shown
from simperf.scenario.overrides import parse_path, parse_value, plain_value
from simperf.study.preflight import MOST_POINTS, refuse_points

__all__ = ["OPTION", "Axis", "Design", "LatinHypercube", "make_axes", "make_points", "parse_axis"]


@dataclass(frozen=True, slots=True)
class LatinHypercube:
    """Points spread over ranges (McKay, Beckman and Conover, Technometrics 21, 1979).

    Parameters
    ----------
    points : int
        Each range has so many parts, each of which is met once; ten a key if 0.

    Raises
    ------
    InputError
        It is no whole number, or negative.
    """

    points: int = 0

    def __post_init__(self) -> None:
        """Refuse a number of points that is not valid."""
        if isinstance(self.points, bool) or not isinstance(self.points, int) or self.points < 0:
            message = "a Latin hypercube has a whole number of points"
            raise InputError(Problem(message, key="points", value=repr(self.points), expected="1 or more"))


Design = Literal["grid", "list", "lhs"] | LatinHypercube
#: every combination; the values side by side; a Latin hypercube of ten points a key
_DESIGNS = ("grid", "list", "lhs")

#: the option that gives axes on the command line, which their problems name
OPTION = "--vary"
#: values that a range may have
MOST_OF_RANGE = 1_000_000
_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(
    rf"^\s*({_NUMBER})\s*([^\s\d.][^.:]*?)?\s*\.\.\s*({_NUMBER})\s*([^\s\d:][^:]*?)?\s*(?::\s*(\d+)\s*(?::\s*(log))?)?\s*$"
)
#: characters of a range
_LONGEST_RANGE = 200
_BEGIN_OF_RANGE = re.compile(r"\s*[+-]?\.?\d[^\"',\[\]{}]*\.\.")
_WRITTEN = '"program.n=1,2,4", "machine.link[0].bandwidth=10..100 GB/s:5" or "program.nbytes=1..1000 MB:4:log"'


@dataclass(frozen=True, slots=True)
class Axis:
    """One key and the values that it takes.

    Parameters
    ----------
    key : str
        Of the scenario, such as ``"program.gpus"``.
    values : tuple
        As a file would say them; empty for a range without a number of points.
    low, high : float
        Ends of a range, in its unit; not a number where the values are a list.
    unit : str
        Of the range's ends, such as ``"GB/s"``.
    log : bool
        Points of the range are spread evenly in the logarithm.
    whole : bool
        The range is one of whole numbers.
    """

    key: str
    values: tuple[Any, ...] = ()
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    log: bool = False
    whole: bool = False

    @property
    def is_range(self) -> bool:
        """Whether any value between `low` and `high` has a meaning."""
        return not math.isnan(self.low)

    def at(self, share: float) -> Any:
        """Value at `share` [1] of the range, or of the list, in the form of a file."""
        if not self.is_range:
            return self.values[min(int(share * len(self.values)), len(self.values) - 1)]
        if self.log:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        return self.write(value)

    def write(self, value: float) -> Any:
        """`value`, in the range's unit, in the form of a file."""
        value = min(max(value, min(self.low, self.high)), max(self.low, self.high))
        if self.whole:
            return round(value)
        value = float(f"{value:.12g}")  # the same on every computer, and readable
        return f"{value!r} {self.unit}" if self.unit else value


def parse_axis(text: str) -> Axis:
    """Read ``program.gpus=8,16,32`` or ``machine.link[0].bandwidth=10..100 GB/s:5``.

    A range is ``LOW..HIGH UNIT:POINTS``; ``:log`` behind it spreads the points evenly in the logarithm.
    Whole numbers stay whole, and need no number of points. A list's values are TOML, or texts where they are not.

    Raises
    ------
    InputError
        It is neither.

    Examples
    --------
    >>> parse_axis("program.gpus=8,16,32").values
    (8, 16, 32)
    >>> parse_axis("program.nbytes=1..1000 MB:4:log").values
    ('1.0 MB', '10.0 MB', '100.0 MB', '1000.0 MB')
    >>> parse_axis("program.n=1..3").values
    (1, 2, 3)
    """
    key, equals, written = text.partition("=")
    if not equals or not written.strip():
        raise _wrong(f"{shown(text)} does not say which values a key takes")
    _check_key(key.strip())
    if len(written) > _LONGEST_RANGE:  # patterns with several numbers in a row take their time
        if _BEGIN_OF_RANGE.match(written):
            raise _wrong(f"{key.strip()}: a range of more than {_LONGEST_RANGE} characters", value=written)
        match = None
    else:
        match = _RANGE.match(written)
    return _range(key.strip(), match) if match else Axis(key.strip(), tuple(_list(key.strip(), written)))


def make_axes(vary: Mapping[str, Any] | Sequence[str]) -> list[Axis]:
    """Axes of texts as the command line takes them, or of a mapping from key to values (or to a range as a text).

    Raises
    ------
    InputError
        All that cannot be read, and keys that come twice.
    """
    problems: list[Problem] = []
    axes: list[Axis] = []
    given = [vary] if isinstance(vary, str) else vary
    if not isinstance(given, Mapping | Sequence):
        message = f"a mapping of keys to values is expected, not {type(vary).__name__}"
        raise InputError(Problem(message, key="vary", value=repr(vary), expected='{"program.n": [1, 2, 4]}'))
    for item in given.items() if isinstance(given, Mapping) else given:
        try:
            axes.append(parse_axis(item) if isinstance(item, str) else _of_pair(*_pair(item)))
        except InputError as error:
            problems += error.problems
    keys = [axis.key for axis in axes]
    problems += [
        Problem("this key is varied twice", file=OPTION, key=key, expected="all its values in one range")
        for key in dict.fromkeys(keys)
        if keys.count(key) > 1
    ]
    if problems:
        raise InputError(problems)
    return axes


def make_points(
    axes: Sequence[Axis], design: Design = "grid", *, seed: int = 0, force: bool = False
) -> list[dict[str, Any]]:
    """The values of each point, by key.

    Parameters
    ----------
    axes : sequence of Axis
    design : {"grid", "list", "lhs"} or LatinHypercube
        Every combination, the last key fastest; the first values of all, then the second ones; or a Latin
        hypercube, of ten points a key if its name is given.
    seed : int
        Of a Latin hypercube.
    force : bool
        Make as many as it takes.

    Raises
    ------
    InputError
        A design that the axes do not fit, or too many points.
    """
    hypercube = LatinHypercube() if design == "lhs" else design if isinstance(design, LatinHypercube) else None
    if hypercube is None and design not in _DESIGNS:
        raise InputError(
            Problem("no such design", key="--design", value=str(design), expected="one of " + ", ".join(_DESIGNS))
        )
    problems = [
        Problem(
            "how many points of the range?",
            file=OPTION,
            key=axis.key,
            expected=f"{axis.low:g}..{axis.high:g} {axis.unit}:5",
        )
        for axis in axes
        if hypercube is None and not axis.values
    ]
    if design == "list" and len({len(axis.values) for axis in axes}) > 1:
        sizes = ", ".join(f"{axis.key} {len(axis.values)}" for axis in axes)
        problems.append(
            Problem("the keys have lists of different lengths", key="--design", value=sizes, expected="--design grid")
        )
    if problems:
        raise InputError(problems)
    keys = [axis.key for axis in axes]
    if design == "grid":
        count = math.prod(float(len(axis.values)) for axis in axes)
        refuse_points(count, force=force, expected="fewer values, or --design lhs with --points N")
        return [dict(zip(keys, row, strict=True)) for row in itertools.product(*(axis.values for axis in axes))]
    if hypercube is None:
        return [dict(zip(keys, row, strict=True)) for row in zip(*(axis.values for axis in axes), strict=True)]
    count = hypercube.points or 10 * len(axes)
    refuse_points(count, force=force, expected=f"{MOST_POINTS:,} at most", option="--points")
    random = np.random.default_rng(np.random.SeedSequence(seed))
    columns = [(random.permutation(count) + random.random(count)) / count for _ in axes]
    return [
        {axis.key: axis.at(float(column[row])) for axis, column in zip(axes, columns, strict=True)}
        for row in range(count)
    ]


def _pair(item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str):
        return item[0], item[1]
    raise _wrong(f"{shown(item)} is no key with its values")


def _of_pair(key: str, values: Any) -> Axis:
    _check_key(key)
    if isinstance(values, str):
        return parse_axis(f"{key}={values}")
    try:
        listed = tuple(_read(key, value, plain_value) for value in values)
    except TypeError:
        listed = (_read(key, values, plain_value),)
    if not listed:
        raise _wrong(f"{key} has no values")
    return Axis(key, listed)


def _check_key(key: str) -> None:
    try:
        path = parse_path(key)
    except ValueError as error:
        raise _wrong(str(error)) from None
    if len(path) < 2:
        raise _wrong(f"{shown(key)} is a table, not a value")


def _range(key: str, match: re.Match[str]) -> Axis:
    first, unit_low, last, unit, count, log = match.groups()
    low, high = float(first.replace("_", "")), float(last.replace("_", ""))
    unit = (unit or "").strip()
    if unit_low and unit_low.strip() != unit:
        raise _wrong(f"the ends of the range of {key} have different units", value=match.group(0).strip())
    if not math.isfinite(high - low) or not math.isfinite(high) or not math.isfinite(low):
        raise _wrong(f"{key}: the ends of a range are finite numbers", value=match.group(0).strip())
    if not low < high or (log and low <= 0):
        message = "a range goes up" + (", from above 0 in the logarithm" if log else "")
        raise _wrong(f"{key}: {message}", value=match.group(0).strip())
    whole = not unit and all(re.fullmatch(r"[+-]?[\d_]+", end) for end in (first, last))
    axis = Axis(key, (), low, high, unit, bool(log), whole)
    number = int(count) if count else int(high - low) + 1 if whole and high - low < 1000 else 0
    if count and number < 2:
        raise _wrong(f"{key}: a range has two points or more", value=match.group(0).strip())
    if number > MOST_OF_RANGE:
        message = f"{key}: {number:,} values of a range are more than {MOST_OF_RANGE:,}"
        raise _wrong(message, value=match.group(0).strip())
    values = tuple(dict.fromkeys(axis.at(index / (number - 1)) for index in range(number))) if number else ()
    return Axis(key, values, low, high, unit, bool(log), whole)


def _read(key: str, value: Any, reader: Callable[[Any], Any]) -> Any:
    """What `reader` makes of a value of `key`."""
    try:
        return reader(value)
    except ValueError as error:
        raise _wrong(f"{key}: {error}", value=shown(value)) from None


def _list(key: str, written: str) -> list[Any]:
    """Values between commas that are in no brackets and no quotes, each TOML or a text."""
    whole = _read(key, f"[{written}]", parse_value)
    if isinstance(whole, list):
        return whole
    parts, depth, quote, start = [], 0, "", 0
    for index, letter in enumerate(written):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(written[start:index])
            start = index + 1
    parts.append(written[start:])
    if not all(part.strip() for part in parts):
        raise _wrong("a value is missing between two commas", value=written)
    return [_read(key, part.strip(), parse_value) for part in parts]


def _wrong(message: str, *, value: str = "") -> InputError:
    told = value if len(value) <= _LONGEST_RANGE else f"{value[:_LONGEST_RANGE]}..."
    return InputError(Problem(message, file=OPTION, value=told, expected=_WRITTEN))
