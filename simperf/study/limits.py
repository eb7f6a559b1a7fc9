"""Limits of a run: each resource made a little faster, and the run simulated again.

A resource that is busy need not matter, and one that looks idle may (a latency is used by nobody). So
nothing is inferred here: the run is repeated with one resource at a time x times as fast, and
the change of the number that the scenario asks for is the answer: of the time, if it does not say.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from simperf.analysis.chance import interval
from simperf.analysis.critical import CriticalPath, critical_path
from simperf.answer import Answer
from simperf.errors import InputError, Problem, SimperfError
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.results import Result
from simperf.run import run
from simperf.scenario import Scenario, load_scenario
from simperf.study.executors import check_engine
from simperf.study.points import Task, make_tasks
from simperf.study.sweep import Progress, run_tasks
from simperf.study.virtual import Resource, resources
from simperf.units import format_quantity

__all__ = ["FASTER", "Limits", "SpeedUp", "limits", "percent", "speed_tasks"]

#: how many times as fast a resource is made unless somebody says otherwise [1]
FASTER = 1.1
#: relative change that is none [1]
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """Gain of a faster resource.

    Parameters
    ----------
    resource : Resource
    factor : float
        How many times as fast it was made [1].
    time : float
        Of the run then [s].
    value : float
        Of the number that is asked for then, in its unit.
    change : float
        Its relative change [1].
    whole : float
        Its relative change if everything is made as much faster [1]; 0 for a number that only depends on proportions.
    low, high : float or None
        Interval of the change where the constants were drawn [1].
    error : str
        Why there is no time, if there is none.
    """

    resource: Resource
    factor: float
    time: float
    value: float
    change: float
    whole: float = 0.0
    low: float | None = None
    high: float | None = None
    error: str = ""

    @property
    def share(self) -> float | None:
        """Share of the change of everything at once that this resource makes [1]; None where that changes nothing."""
        return self.change / self.whole if abs(self.whole) > _NOTHING else None


@dataclass(frozen=True)
class Limits:
    """Limits of a run: what its time is made of, and what would make it shorter.

    Parameters
    ----------
    result : Result
        The run itself.
    path : CriticalPath
        The chain of events that set its time.
    speed_ups : tuple of SpeedUp
        A resource each, what helps most first.
    together : SpeedUp
        All resources at once; its time is that of the run over the factor.
    """

    result: Result
    path: CriticalPath
    speed_ups: tuple[SpeedUp, ...]
    together: SpeedUp

    @property
    def answer(self) -> Answer:
        """The number whose changes are ranked."""
        return self.result.answer or Answer()

    @property
    def limiting(self) -> SpeedUp | None:
        """Speed-up that helps most, None if nothing does."""
        first = self.speed_ups[0] if self.speed_ups else None
        return first if first is not None and _gain(first, self.answer) > 0 else None

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the ranking, for people."""
        name, number = self.result.headline
        rows = [_row(one, number.unit) for one in (*self.speed_ups, self.together)]
        return ["resource", "kind", "faster by", name, "change", "share"], rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in SI units."""
        number = self.result.headline[1]
        return {
            "name": self.result.name,
            "time": self.result.time,
            "answer": {**self.answer.to_dict(), "value": number.value, "unit": number.unit},
            "critical_path": [part._asdict() for part in self.path.parts],
            "speed_ups": [_plain(one) for one in self.speed_ups],
            "together": _plain(self.together),
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw what each resource would bring, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("limits").draw_limits(self), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: what each resource would bring, and the run in detail.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        write_page(path, lambda pages: pages.limits_report(self, machine=pages.machine_of(self.result)))

    def to_pandas(self) -> Any:
        """A row a resource, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        rows = [_plain(one) for one in (*self.speed_ups, self.together)]
        return data_frame(rows, list(rows[0]))

    def __repr__(self) -> str:
        first = self.limiting
        what = f"{first.resource.name} limits" if first else "nothing limits"
        return f"<Limits of {self.result.name!r}: {self._told()}, {what}>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=f"{self.result.name}: {self._told()}")

    def _told(self) -> str:
        name, number = self.result.headline
        return str(number) if self.answer.is_time else f"{name} {number}"


def percent(share: float) -> str:
    """A relative change for people: sign, three digits, and 0 for what is nothing.

    Examples
    --------
    >>> percent(-0.0611), percent(1e-12), percent(0.5)
    ('-6.11 %', '0 %', '+50 %')
    """
    return "0 %" if abs(share) < 5e-6 else f"{100 * share:+.3g} %"


def _row(one: SpeedUp, unit: str) -> list[str]:
    if one.error:
        return [one.resource.name, one.resource.kind, percent(one.factor - 1), "-", one.error.splitlines()[0], "-"]
    change = percent(one.change)
    if one.low is not None and one.high is not None:
        change += f" [{percent(one.low)} .. {percent(one.high)}]"
    share = "-" if one.share is None else f"{100 * max(one.share, 0.0) + 0.0:.1f} %"
    return [
        one.resource.name,
        one.resource.kind,
        percent(one.factor - 1),
        format_quantity(one.value, unit),
        change,
        share,
    ]


def _gain(one: SpeedUp, answer: Answer) -> float:
    """By how much better the number that is asked for becomes [1]."""
    return one.change if answer.higher else -one.change


def _plain(one: SpeedUp) -> dict[str, Any]:
    return {
        "resource": one.resource.name,
        "kind": one.resource.kind,
        "factor": one.factor,
        "time": None if one.error else one.time,
        "change": None if one.error else one.change,
        "low": one.low,
        "high": one.high,
        "error": one.error or None,
        "value": None if one.error else one.value,
    }


def limits(
    scenario: Scenario | str | os.PathLike[str],
    *,
    faster: float = FASTER,
    samples: int = 0,
    engine: str | Executor = "serial",
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    play: Callable[[Scenario], Result] = run,
) -> Limits:
    """Find out what limits a run.

    Parameters
    ----------
    scenario : Scenario or path
    faster : float
        How many times as fast each resource is made, one at a time [1].
    samples : int
        Draws of the calibration's constants, for an interval of every change: each draw meets all speed-ups.
    engine, cache, progress
        As in `simperf.study.sweep.sweep`.
    play : callable
        Runs the scenario itself.

    Raises
    ------
    InputError
        A factor that makes nothing faster, too many draws, or an engine that there is not.
    """
    if not 1.0 < faster <= 1e6:
        raise InputError(Problem("a factor above 1 is expected", key="--faster", value=f"{faster:g}"))
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    check_engine(engine)
    found = resources(scenario)
    tasks = speed_tasks(scenario, found, faster, samples=samples)
    result = play(scenario)
    if samples:
        tasks.append({**make_tasks(scenario, [{}], samples=samples, record=False)[0], "seed": scenario.seed})
    tasks = [{**task, "point": number} for number, task in enumerate(tasks)]
    rows = run_tasks(tasks, engine=engine, cache=cache, progress=progress)
    draws = rows.pop().get("draws", ()) if samples else ()
    number, answer = result.headline[1], result.answer or Answer()
    everything = rows[len(found)]
    whole = 0.0 if everything["error"] is not None else _change(_value(everything, answer), number.value)
    made = [
        _speed_up(one, faster, row, answer, number.value, whole, draws)
        for one, row in zip((*found, Resource("everything", "all of these at once")), rows, strict=True)
    ]
    together = made.pop()
    made.sort(key=lambda one: (-round(_gain(one, answer), 9) if not one.error else 1.0, one.resource.name))
    return Limits(result, critical_path(result), tuple(made), together)


def speed_tasks(
    scenario: Scenario,
    found: Sequence[Resource],
    faster: float,
    *,
    point: Mapping[str, Any] | None = None,
    samples: int = 0,
) -> list[Task]:
    """A task for each resource made faster, and one for all of them; `point` is changed in each."""
    base = dict(point or {})
    points = [{**base, _key(one): faster} for one in found]
    points.append({**base, **{_key(one): faster for one in found}})
    seed = base.get("run.seed", scenario.seed)
    return [{**task, "seed": seed} for task in make_tasks(scenario, points, samples=samples, record=False)]


def _key(resource: Resource) -> str:
    return f'speed."{resource.name}"'


def _speed_up(
    resource: Resource,
    factor: float,
    row: Mapping[str, Any],
    answer: Answer,
    base: float,
    whole: float,
    draws: Sequence[float] = (),
) -> SpeedUp:
    if row["error"] is not None:
        return SpeedUp(resource, factor, math.nan, math.nan, 0.0, error=str(row["error"]))
    value = _value(row, answer)
    ends: tuple[float | None, float | None] = (None, None)
    if draws:
        ends = interval([_change(after, before) for after, before in zip(row["draws"], draws, strict=True)])
    return SpeedUp(resource, factor, row["time"], value, _change(value, base), whole, *ends)


def _value(row: Mapping[str, Any], answer: Answer) -> float:
    """The number that is asked for, of a row."""
    value = row["time"] if answer.is_time else row["metrics"].get(answer.metric, [None])[0]
    return math.nan if value is None else float(value)


def _change(after: float, before: float) -> float:
    """Relative change of a number [1]; what is not there cannot change in proportion."""
    return after / before - 1.0 if before else 0.0


def limiting(
    rows: Sequence[Mapping[str, Any]], found: Sequence[Resource], base: Mapping[str, Any], answer: Answer
) -> str:
    """Name of the resource whose speed-up helps most, by the number that is asked for; empty if none does.

    Parameters
    ----------
    rows : sequence of mapping
        Of the speed-ups, one for each resource.
    found : sequence of Resource
    base : mapping
        Row without any speed-up.
    answer : Answer

    Raises
    ------
    SimperfError
        None of the speed-ups could be run.
    """
    sign = -1.0 if answer.higher else 1.0
    good = [(sign * _value(row, answer), one.name) for one, row in zip(found, rows, strict=False) if not row["error"]]
    if not good:
        raise SimperfError(str(rows[0]["error"]) if rows else "the scenario has no resources")
    value, name = min(good)
    before = sign * _value(base, answer)
    return name if value < before - 1e-12 * abs(before) else ""
