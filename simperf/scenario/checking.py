"""Holding results against what their scenarios say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from simperf.analysis.check import Check, check, lookup
from simperf.analysis.regime import regime
from simperf.errors import InputError, SimperfError, UnitError, UnknownNameError, nearest
from simperf.results import Result
from simperf.scenario.expectation import Expectation
from simperf.scenario.settings import Scenario
from simperf.units import parse

__all__ = ["WordCheck", "check_comparison", "check_error", "check_expectations", "check_measurements"]


@dataclass(frozen=True, slots=True)
class WordCheck(Check):
    """A word of a result, such as its regime, and the one that was expected."""

    found: str = ""
    wanted: str = ""

    @property
    def ok(self) -> bool:
        """Whether the word is the expected one, or holds it."""
        return self.wanted in self.found

    @property
    def expected(self) -> str:
        """The word that was expected."""
        return self.wanted

    def __str__(self) -> str:
        if self.ok:
            return f"{self.key} is as expected: {self.found}"
        return f"{self.key} is not as expected: {self.found}, expected {self.wanted}"


def check_expectations(scenario: Scenario, result: Result) -> list[Check]:
    """Hold a result against its scenario's ``[expect]``; `Check.ok` says how it went.

    Raises
    ------
    InputError
        An expectation names a number that the result does not have, or gives it the wrong unit: all such.
    """
    found: list[Check] = []
    problems = []
    for expectation in scenario.expectations:
        if expectation.key.startswith("compare."):
            continue
        if expectation.key == "error":
            text = f"no error, a time of {result.time:g} s"
            found.append(_word(expectation, math.nan, text))
        elif expectation.key == "regime":
            name, share = regime(result)
            found.append(_word(expectation, share, name))
        else:
            try:
                found.append(_check(expectation, result))
            except (UnknownNameError, UnitError) as error:
                problems.append(expectation.problem(str(error)))
    if problems:
        raise InputError(problems)
    return found


def check_measurements(scenario: Scenario, result: Result) -> list[Check]:
    """Hold a result against its scenario's ``[measured]``: the range of each `Check` is what others measured.

    Raises
    ------
    InputError
        A measurement names a number that the result does not have, or gives it the wrong unit: all such.
    """
    return check_expectations(replace(scenario, expectations=scenario.measurements), result)


def check_error(scenario: Scenario, error: SimperfError) -> list[Check]:
    """Hold the error with which a run ended against ``error`` of its scenario's ``[expect]``; empty if it has none."""
    return [_word(one, math.nan, str(error)) for one in scenario.expectations if one.key == "error"]


def _word(expectation: Expectation, value: float, found: str) -> WordCheck:
    source, kind = expectation.source, expectation.kind
    return WordCheck(expectation.key, value, "1", source=source, kind=kind, found=found, wanted=expectation.text)


def check_comparison(scenario: Scenario, results: Mapping[str, Result]) -> list[Check]:
    """Hold the times of variants against each other: the ``[expect.compare]`` table, such as ``"sharded/central"``.

    Parameters
    ----------
    scenario : Scenario
    results : mapping of str to Result
        By the variants' names.

    Raises
    ------
    InputError
        A key does not name two variants.
    """
    found: list[Check] = []
    problems = []
    for expectation in scenario.expectations:
        group, _, pair = expectation.key.partition(".")
        if group != "compare":
            continue
        ends = next(((a, b) for a, b in _splits(pair) if a in results and b in results), None)
        if ends is None:
            wrong = [name for name in next(_splits(pair), (pair,)) if name not in results]
            hint = "".join(f"; {name!r} is no variant that ran{nearest(name, results)}" for name in wrong)
            problems.append(expectation.problem(f'two variants are expected, as in "A/B"{hint}'))
            continue
        bottom = results[ends[1]].time
        ratio = results[ends[0]].time / bottom if bottom > 0 else math.inf
        low, high = _range(expectation, "1")
        name = f"time of {ends[0]} / {ends[1]}"
        found.append(Check(name, ratio, "1", low, high, expectation.source, expectation.kind))
    if problems:
        raise InputError(problems)
    return found


def _splits(pair: str) -> Iterator[tuple[str, str]]:
    """Every way to read ``A/B``, as names may hold a slash of their own."""
    for index, letter in enumerate(pair):
        if letter == "/":
            yield pair[:index].strip(), pair[index + 1 :].strip()


def _range(expectation: Expectation, unit: str) -> tuple[float, float]:
    if expectation.value is not None:
        value = _read(expectation.value, unit)
        atol = 0.0 if expectation.atol is None else _read(expectation.atol, unit)
        slack = max(expectation.rtol * abs(value), atol)
        return value - slack, value + slack
    low, high = expectation.low, expectation.high
    return (-math.inf if low is None else _read(low, unit)), (math.inf if high is None else _read(high, unit))


def _check(expectation: Expectation, result: Result) -> Check:
    _, unit = lookup(result, expectation.key)
    low, high = _range(expectation, unit)
    return check(result, expectation.key, low=low, high=high, source=expectation.source, kind=expectation.kind)


def _read(value: str | float, unit: str) -> float:
    return parse(value, unit)
