"""What limits a run: each resource made a little faster, and the run played again.

A resource that is busy need not matter, and one that looks idle may (a latency is used by nobody). So
nothing is inferred here: the run is repeated with one resource at a time x times as fast, and
the time that is saved is the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from simperf.analysis.chance import interval
from simperf.analysis.critical import CriticalPath, critical_path
from simperf.errors import InputError, Problem, SimperfError
from simperf.results import Result
from simperf.run import run
from simperf.scenario import Scenario, load_scenario
from simperf.study.points import Task, make_tasks
from simperf.study.sweep import Progress, run_tasks
from simperf.study.table import html_table
from simperf.study.virtual import Resource, resources
from simperf.units import format_quantity

__all__ = ["FASTER", "Limits", "SpeedUp", "limits", "speed_tasks"]

#: how many times as fast a resource is made unless somebody says otherwise [1]
FASTER = 1.1


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """What a faster resource would bring.

    Parameters
    ----------
    resource : Resource
    factor : float
        How many times as fast it was made [1].
    time : float
        Of the run then [s].
    change : float
        Relative change of the time [1]; negative is quicker.
    low, high : float or None
        Interval of the change where the constants were drawn [1].
    error : str
        Why there is no time, if there is none.
    """

    resource: Resource
    factor: float
    time: float
    change: float
    low: float | None = None
    high: float | None = None
    error: str = ""

    @property
    def share(self) -> float:
        """Share of the run's time that goes with this resource [1]: change over that of everything at once."""
        return self.change / (1 / self.factor - 1) if self.factor != 1 else 0.0


@dataclass(frozen=True)
class Limits:
    """What a run's time is made of, and what would make it shorter.

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
    def limiting(self) -> SpeedUp | None:
        """What helps most, None if nothing does."""
        first = self.speed_ups[0] if self.speed_ups else None
        return first if first is not None and first.change < 0 else None

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the ranking, for people."""
        rows = [_row(one) for one in (*self.speed_ups, self.together)]
        return ["resource", "kind", "faster by", "time", "change", "share"], rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in SI units."""
        return {
            "name": self.result.name,
            "time": self.result.time,
            "critical_path": [part._asdict() for part in self.path.parts],
            "speed_ups": [_plain(one) for one in self.speed_ups],
            "together": _plain(self.together),
        }

    def __repr__(self) -> str:
        first = self.limiting
        what = f"{first.resource.name} limits" if first else "nothing limits"
        return f"<Limits of {self.result.name!r}: {format_quantity(self.result.time, 's')}, {what}>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=f"{self.result.name}: {format_quantity(self.result.time, 's')}")


def percent(share: float) -> str:
    """A relative change for people: sign, three digits, and 0 for what is nothing.

    Examples
    --------
    >>> percent(-0.0611), percent(1e-12), percent(0.5)
    ('-6.11 %', '0 %', '+50 %')
    """
    return "0 %" if abs(share) < 5e-6 else f"{100 * share:+.3g} %"


def _row(one: SpeedUp) -> list[str]:
    if one.error:
        return [one.resource.name, one.resource.kind, percent(one.factor - 1), "-", one.error.splitlines()[0], "-"]
    change = percent(one.change)
    if one.low is not None and one.high is not None:
        change += f" [{percent(one.low)} .. {percent(one.high)}]"
    time, share = format_quantity(one.time, "s"), f"{100 * max(one.share, 0.0) + 0.0:.1f} %"
    return [one.resource.name, one.resource.kind, percent(one.factor - 1), time, change, share]


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
        A factor that makes nothing faster.
    """
    if not 1.0 < faster <= 1e6:
        raise InputError(Problem("a factor above 1 is expected", key="--faster", value=f"{faster:g}"))
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    result = play(scenario)
    found = resources(scenario)
    tasks = speed_tasks(scenario, found, faster, samples=samples)
    if samples:
        tasks.append({**make_tasks(scenario, [{}], samples=samples, record=False)[0], "seed": scenario.seed})
    tasks = [{**task, "point": number} for number, task in enumerate(tasks)]
    rows = run_tasks(tasks, engine=engine, cache=cache, progress=progress)
    draws = rows.pop().get("draws", ()) if samples else ()
    made = [_speed_up(one, faster, row, result.time, draws) for one, row in zip(found, rows, strict=False)]
    together = _speed_up(Resource("everything", "all of these at once"), faster, rows[-1], result.time, draws)
    made.sort(key=lambda one: (round(one.change, 9) if not one.error else 1.0, one.resource.name))
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
    resource: Resource, factor: float, row: Mapping[str, Any], base: float, draws: Sequence[float] = ()
) -> SpeedUp:
    if row["error"] is not None:
        return SpeedUp(resource, factor, base, 0.0, error=str(row["error"]))
    change = row["time"] / base - 1.0 if base > 0 else 0.0
    ends: tuple[float | None, float | None] = (None, None)
    if draws:
        ends = interval([after / before - 1.0 for after, before in zip(row["draws"], draws, strict=True)])
    return SpeedUp(resource, factor, row["time"], change, *ends)


def limiting(rows: Sequence[Mapping[str, Any]], found: Sequence[Resource], base: float) -> str:
    """Name of the resource whose speed-up shortens a run most; empty if none does."""
    good = [(row["time"], one.name) for one, row in zip(found, rows, strict=False) if row["error"] is None]
    if not good:
        raise SimperfError(str(rows[0]["error"]) if rows else "the scenario has no resources")
    time, name = min(good)
    return name if time < base * (1 - 1e-12) else ""
