"""The validation table: predictions beside what others measured.

Every scenario file may carry a ``[measured]`` table with figures from a public source. The validation table has the
signed error of each figure. Nothing is left out: a file that cannot be run is a row too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simperf.accuracy.baselines import ScalingBaselines, scaling_baselines
from simperf.accuracy.figure_class import FigureBasis, FigureClass, figure_class
from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.questions import COLLECTIVES, payload_of, question_of
from simperf.analysis.check import Check
from simperf.errors import InputError, Problem, SimperfError
from simperf.run import Attempt, run_variants
from simperf.scenario import Scenario, load_scenario
from simperf.scenario.checking import check_measurements

__all__ = ["Track", "ValidationRow", "untracked", "validation_rows", "validation_table"]


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """One measured figure and its prediction.

    Parameters
    ----------
    title, variant, quantity : str
        Scenario, variant, and name of the number, such as ``"time"``.
    unit : str
        SI unit of `low`, `high` and `predicted`.
    low, high : float
        What was measured; equal unless the source gives a range.
    predicted : float
        What the simulator gives; NaN if it failed.
    case, source, fitted : str
        The case, where it was published, and what was fitted to anything, in words.
    failure : str
        Why there is no prediction.
    kind : {"fitted", "nearly linear", "predicted"}
        Its class (`simperf.accuracy.figure_class`).
    linear, ring : float
        The same quantity by two baselines (`simperf.accuracy.baselines`); NaN where they are not defined.
    rests_on : str
        Choices that were made after the figure was seen.
    simple : float
        The same quantity by the simple model of a question that is not scaling; NaN where it is not defined.
    question : str
        Which question it answers (`simperf.accuracy.questions`).
    nbytes : float
        Payload of a collective [B]; NaN where the figure is of none, and where nothing could be simulated.
    """

    title: str
    variant: str
    quantity: str
    unit: str
    low: float
    high: float
    predicted: float
    case: str = ""
    source: str = ""
    fitted: str = ""
    failure: str = ""
    kind: FigureClass = "predicted"
    linear: float = math.nan
    ring: float = math.nan
    rests_on: str = ""
    question: str = ""
    nbytes: float = math.nan
    simple: float = math.nan

    @property
    def error(self) -> float:
        """Signed relative error: predicted over measured, less 1; zero inside a measured range.

        Examples
        --------
        >>> round(ValidationRow("t", "v", "time", "s", 2.0, 2.0, 1.5).error, 3)
        -0.25
        >>> ValidationRow("t", "v", "time", "s", 2.0, 4.0, 3.0).error
        0.0
        """
        return self.error_of(self.predicted)

    @property
    def is_time(self) -> bool:
        """Whether the quantity is a time, or a ratio of times: less of it is faster.

        Examples
        --------
        >>> ValidationRow("t", "v", "metrics.time ratio", "1", 2.0, 2.0, 1.5).is_time
        True
        """
        return self.unit == "s" or self.quantity.removeprefix("metrics.").startswith("time")

    def error_of(self, value: float) -> float:
        """Signed relative error of another value for the same figure, such as a baseline; NaN of NaN."""
        if math.isnan(value):
            return math.nan
        nearest = min(max(value, self.low), self.high)
        return value / nearest - 1 if nearest else 0.0


#: takes a list and what is done with it, and passes the list's items on: so that a caller can show how far it is
Track = Callable[[Sequence[Any], str], Iterable[Any]]


def untracked(items: Sequence[Any], what: str) -> Iterable[Any]:
    """Items as they are: a `Track` that shows nothing."""
    return items


def validation_table(paths: Iterable[str], *, track: Track = untracked) -> list[ValidationRow]:
    """Run measured scenarios and hold them against their figures.

    Parameters
    ----------
    paths : iterable of str
        Files, or names of shipped scenarios; files without measurements add no row.
    track : callable
        Is given the scenarios, and passes them on one by one.

    Raises
    ------
    InputError
        A file is wrong or named twice, or a measurement names a number that its program does not report.
    """
    scenarios: dict[Path, Scenario] = {}
    for path in paths:
        scenario = load_scenario(path)
        if (file := Path(scenario.path).resolve()) in scenarios:  # its figures would count twice
            raise InputError(Problem("the scenario is named twice", file=path, expected="each scenario once"))
        scenarios[file] = scenario
    rows: list[ValidationRow] = []
    for scenario in track(list(scenarios.values()), "scenarios"):
        if scenario.measurements or any(variant.measurements for variant in scenario.variants):
            rows += validation_rows(scenario, run_variants(scenario, record=False))
    return rows


def validation_rows(scenario: Scenario, attempts: Iterable[Attempt]) -> list[ValidationRow]:
    """Rows of one scenario whose variants were run."""
    rows = []
    for attempt in attempts:
        bare = ValidationRow(
            scenario.title,
            "" if attempt.name == scenario.title else attempt.name,
            "",
            "1",
            *(math.nan, math.nan, math.nan),
            case=scenario.case,
            source=scenario.source,
            fitted=scenario.fitted,
        )
        if attempt.result is None:
            failure = str(attempt.error if isinstance(attempt.error, SimperfError) else "")
            rows += [
                replace(bare, quantity=one.key, failure=failure, question=question_of(attempt.scenario, None))
                for one in attempt.scenario.measurements
            ]
            continue
        scaling = scaling_baselines(attempt.scenario, attempt.result)
        question = question_of(attempt.scenario, scaling)
        nbytes = payload_of(attempt.scenario, attempt.result) if question == COLLECTIVES else math.nan
        own = replace(bare, question=question, nbytes=nbytes)
        rows += [
            _graded(own, attempt.scenario, check, scaling)
            for check in check_measurements(attempt.scenario, attempt.result)
        ]
    return rows


def _graded(bare: ValidationRow, scenario: Scenario, check: Check, scaling: ScalingBaselines | None) -> ValidationRow:
    """The row of one figure that was predicted, with its class and its baselines."""
    # a single value is read with the tolerance of an expectation; its middle is the value
    exact = check.high - check.low <= 1e-5 * abs(check.high)
    low, high = ((check.low + check.high) / 2,) * 2 if exact else (check.low, check.high)
    linear = scaling.linear(check.key) if scaling else math.nan
    workers = 0 if scaling is None or math.isnan(linear) else scaling.workers
    return replace(
        bare,
        quantity=check.key,
        unit=check.unit,
        low=low,
        high=high,
        predicted=check.value,
        kind=figure_class(FigureBasis(low, high, linear, workers, constants_behind(scenario.case, scenario))),
        linear=linear,
        ring=scaling.ring(check.key) if scaling else math.nan,
        rests_on=", ".join(constants_behind(scenario.case, scenario, choice=True)),
    )
