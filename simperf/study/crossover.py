"""Crossover of the regime: the value of a parameter at which something else starts to limit a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from simperf.answer import Answer
from simperf.errors import InputError, Problem, SimperfError
from simperf.scenario import Scenario
from simperf.study.axes import OPTION, Axis, make_axes
from simperf.study.executors import using
from simperf.study.limits import FASTER, limiting, speed_tasks
from simperf.study.points import Task, make_tasks, point_scenario, refuse_unused_in, spawn_seed
from simperf.study.sweep import answer_of, check_axes, run_tasks
from simperf.study.virtual import resources

__all__ = ["BY", "By", "Flip", "FlipSearch", "flip_search", "flips"]

By = Literal["resource", "regime", "busiest"]
#: what is asked of a run: what would help it most, its regime, or what rests least
BY: tuple[By, ...] = ("resource", "regime", "busiest")


@dataclass(frozen=True, slots=True)
class Flip:
    """A value at which what limits changes.

    Parameters
    ----------
    key : str
    value : float
        In the unit of the range; a whole number where the key takes only those: the first with the new limit.
    text : str
        As a file would say it.
    before, after : str
        What limits below the value and above it.
    width : float
        Between the last value with the one limit and the first with the other, in the same unit.
    """

    key: str
    value: float
    text: str
    before: str
    after: str
    width: float

    def __str__(self) -> str:
        return f"{self.key} = {self.text}: from {self.before or 'nothing'} to {self.after or 'nothing'}"


@dataclass(frozen=True, slots=True)
class FlipSearch:
    """A search for crossovers whose range was checked; `flip_search` makes it, and the parameters are those of `flips`.

    Parameters
    ----------
    scenario : Scenario
    axis : Axis
        The range.
    by : {"resource", "regime", "busiest"}
    faster : float
        [1].
    scan : int
    tolerance : float
        [1].
    """

    scenario: Scenario
    axis: Axis
    by: By
    faster: float
    scan: int
    tolerance: float

    def play(self, *, engine: str | Executor = "serial", cache: bool = True) -> list[Flip]:
        """Run it; the parameters are those of `flips`."""
        axis = self.axis
        values = list(dict.fromkeys(_number(axis, axis.at(index / (self.scan - 1))) for index in range(self.scan)))
        with using(engine) as pool:
            work = partial(run_tasks, engine=pool, cache=cache)
            asked = _Asked(self.scenario, axis, self.by, self.faster, work)
            labels = asked(values)
            return [
                _bisect(asked, axis, (low, high), (before, after), self.tolerance)
                for low, high, before, after in zip(values, values[1:], labels, labels[1:], strict=False)
                if before != after
            ]


def flips(
    scenario: Scenario,
    vary: str,
    *,
    by: By = "resource",
    faster: float = FASTER,
    scan: int = 9,
    tolerance: float = 1e-6,
    engine: str | Executor = "serial",
    cache: bool = True,
) -> list[Flip]:
    """Find every crossover over a range: first on a coarse scan, then by bisection between neighbours that differ.

    Parameters
    ----------
    scenario : Scenario
    vary : str
        A range, such as ``"program.nbytes=1..1000 MB"``; ``:log`` halves in the logarithm.
    by : {"resource", "regime", "busiest"}
        What limits: the resource whose speed-up helps most, the run's regime, or its busiest resource.
    faster : float
        How many times as fast a resource is made to see whether it helps [1].
    scan : int
        Values of the coarse scan; a limit that comes and goes between two of them is not seen.
    tolerance : float
        Relative width at which bisection ends [1].
    engine, cache
        As in `simperf.study.sweep.sweep`; bisection continues between several neighbours at a time.

    Raises
    ------
    InputError
        No range, or a point of it cannot be run.
    """
    search = flip_search(scenario, vary, by=by, faster=faster, scan=scan, tolerance=tolerance)
    return search.play(engine=engine, cache=cache)


def flip_search(
    scenario: Scenario,
    vary: str,
    *,
    by: By = "resource",
    faster: float = FASTER,
    scan: int = 9,
    tolerance: float = 1e-6,
) -> FlipSearch:
    """Make the search of `flips`, and refuse what is wrong with its range before anything is run.

    Raises
    ------
    InputError
        No range, or what is wrong with its ends.
    """
    with _called("--crossover"):
        (axis,) = make_axes([vary])
    problems = []
    if not axis.is_range:
        problems.append(
            Problem("a range is expected", file="--crossover", key=axis.key, expected='"program.nbytes=1..1000 MB"')
        )
    if by not in BY:
        problems.append(Problem("no such answer", key="--by", value=str(by), expected=" or ".join(BY)))
    if scan < 2 or not 0 < tolerance < 1:
        problems.append(Problem("2 values or more, and a tolerance between 0 and 1, are expected", key="--crossover"))
    if problems:
        raise InputError(problems)
    ends = make_tasks(scenario, [{axis.key: axis.at(0.0)}, {axis.key: axis.at(1.0)}], record=False)
    with _called("--crossover"):
        check_axes(scenario, [axis], ends)
    return FlipSearch(scenario, axis, by, faster, scan, tolerance)


@contextmanager
def _called(option: str) -> Iterator[None]:
    """Problems of an axis are those of `option`, where it was given."""
    try:
        yield
    except InputError as error:
        problems = [replace(one, file=option) if one.file == OPTION else one for one in error.problems]
        raise InputError(problems) from None


class _Asked:
    """Asks what limits at values of the axis."""

    def __init__(self, scenario: Scenario, axis: Axis, by: By, faster: float, work: Callable[..., Any]) -> None:
        self.scenario, self.axis, self.by, self.faster, self.work = scenario, axis, by, faster, work

    def __call__(self, values: list[float]) -> list[str]:
        points = [
            {self.axis.key: self.axis.write(value), "run.seed": spawn_seed(self.scenario.seed, 0)} for value in values
        ]
        if self.by != "resource":
            rows = self.work(make_tasks(self.scenario, points))
            self._check(rows)
            return [str(row["regime" if self.by == "regime" else "limited_by"]) for row in rows]
        tasks: list[Task] = []
        places = []
        for point in points:
            (base,) = make_tasks(self.scenario, [point], record=False)
            found = resources(point_scenario(base))
            places.append((len(tasks), found))
            tasks += [base, *speed_tasks(self.scenario, found, self.faster, point=point)]
        rows = self.work([{**task, "point": number} for number, task in enumerate(tasks)])
        self._check([rows[start] for start, _ in places])
        labels = []
        for start, found in places:
            answer = answer_of(self.scenario, rows[start : start + 1]) or Answer()
            labels.append(limiting(rows[start + 1 : start + 1 + len(found)], found, rows[start], answer))
        return labels

    def _check(self, rows: list[Any]) -> None:
        for row in rows:
            if row["error"] is not None:
                raise SimperfError(f"{self.axis.key} = {row['set'][self.axis.key]}: {row['error']}")
        if len(rows) > 1:  # one point of a search may do without a profile that others use
            refuse_unused_in(rows)


def _number(axis: Axis, written: Any) -> float:
    return float(str(written).split()[0]) if isinstance(written, str) else float(written)


def _bisect(asked: _Asked, axis: Axis, ends: tuple[float, float], labels: tuple[str, str], tolerance: float) -> Flip:
    """Halve until the ends are close; what is neither label counts as the second."""
    (low, high), (before, after) = ends, labels
    while high - low > (1 if axis.whole else tolerance * max(abs(low), abs(high))):
        middle = math.sqrt(low * high) if axis.log else (low + high) / 2
        middle = float(math.floor(middle)) if axis.whole else middle
        if not low < middle < high:
            break
        (label,) = asked([middle])
        if label == before:
            low = middle
        else:
            high, after = middle, label
    value = high if axis.whole else (low + high) / 2
    text = f"{value:.6g} {axis.unit}".strip()
    return Flip(axis.key, value, text, before, after, high - low)
