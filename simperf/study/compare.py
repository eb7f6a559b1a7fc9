"""Scenarios side by side: what differs, which is best and by how much, why, and whether that can be told at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from simperf.analysis.verdict import Verdict, verdict
from simperf.errors import InputError, Problem, SimperfError
from simperf.results import Result
from simperf.run import Attempt, run
from simperf.scenario import Scenario, load_scenario
from simperf.scenario.profile_use import refuse_unused
from simperf.study.axes import make_axes, make_points
from simperf.study.points import SPEED, make_tasks, point_scenario
from simperf.study.sweep import check_axes
from simperf.study.table import html_table
from simperf.study.uncertainty import predict
from simperf.units import format_quantity

__all__ = ["SideBySide", "compare", "differences", "variants_of"]

#: tables that say nothing about what is run
_SILENT = ("scenario", "expect", "measured", "compare")


def differences(datas: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Keys of which scenarios' data say different things: key to what each says, ``"-"`` if nothing."""
    flats = [_flat({key: value for key, value in data.items() if key not in _SILENT}) for data in datas]
    keys = dict.fromkeys(key for flat in flats for key in flat)
    rows = {key: tuple(flat.get(key, "-") for flat in flats) for key in keys}
    return {key: row for key, row in rows.items() if len(set(row)) > 1}


def _flat(data: Mapping[str, Any], head: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{head}{key}.")
        else:
            found[f"{head}{key}"] = value if isinstance(value, str) else json.dumps(value, default=str)
    return found


def variants_of(scenario: Scenario, vary: Mapping[str, Any] | Sequence[str], *, samples: int = 0) -> list[Scenario]:
    """The scenario with each combination of values, named by them; `samples` says how often each will be drawn.

    Raises
    ------
    InputError
        Keys or values that the scenario does not take.
    """
    axes = make_axes(vary)
    points = make_points(axes)
    if samples and any(axis.key.startswith(f"{SPEED}.") for axis in axes):
        message = "draws are made before a resource is made faster"
        raise InputError(Problem(message, file="--samples", expected="simperf limits FILE --samples N"))
    if not points or not axes:
        raise InputError(Problem("nothing is varied", file="--vary", expected='"program.gpus=8,16,32"'))
    tasks = [{**task, "seed": task["set"].get("run.seed", scenario.seed)} for task in make_tasks(scenario, points)]
    check_axes(scenario, axes, tasks)
    made = []
    for task, point in zip(tasks, points, strict=True):
        one = point_scenario(task)
        name = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.items())
        data = {key: value for key, value in one.data.items() if key != "run"}
        made.append(replace(one, name=name, title=scenario.title, path=scenario.path, data=data))
    return made


@dataclass(frozen=True)
class SideBySide:
    """What came of a comparison: an attempt a scenario, and what they differ in."""

    attempts: tuple[Attempt, ...]
    differences: Mapping[str, tuple[str, ...]]

    @property
    def results(self) -> tuple[Result, ...]:
        """Those that gave one."""
        return tuple(one.result for one in self.attempts if one.result is not None)

    @property
    def winner(self) -> Result | None:
        """The quickest; None if every one failed."""
        return min(self.results, key=lambda result: result.time, default=None)

    def verdicts(self) -> list[Verdict | None]:
        """How each attempt stands against the winner; None for the winner itself and for failures."""
        best = self.winner
        return [
            None if one.result is None or best is None or one.result is best else verdict(best, one.result)
            for one in self.attempts
        ]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows for people: the differences first."""
        rows = []
        for index, (one, told) in enumerate(zip(self.attempts, self.verdicts(), strict=True)):
            time = "failed" if one.result is None else format_quantity(one.result.time, "s")
            if one.result is not None and "time" in one.result.intervals:
                low, high = one.result.intervals["time"]
                time += f" [{format_quantity(low, 's')} .. {format_quantity(high, 's')}]"
            text = str(one.error).splitlines()[0] if one.error else "best" if told is None else str(told)
            rows.append([one.name, *(values[index] for values in self.differences.values()), time, text])
        return ["name", *self.differences, "time", "verdict"], rows

    def __repr__(self) -> str:
        best = self.winner
        return f"<{len(self.attempts)} side by side; best: {best.name!r}>" if best else "<all failed>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows())


def compare(
    *scenarios: Scenario | str | os.PathLike[str],
    vary: Mapping[str, Any] | Sequence[str] | None = None,
    samples: int = 0,
    engine: str | Executor = "serial",
    play: Callable[..., Result] = run,
) -> SideBySide:
    """Run scenarios and hold them against the best.

    Parameters
    ----------
    *scenarios : Scenario or path
        A file's ``[[compare]]`` variants count as one each.
    vary : mapping or sequence of str, optional
        Values of keys: every combination of the one scenario that is given.
    samples : int
        Draws of the calibration, for intervals.
    engine : str or Executor
        Where draws are run.
    play : callable
        Runs one scenario.

    Raises
    ------
    InputError
        What cannot be read; `vary` with several scenarios.
    """
    loaded = [one if isinstance(one, Scenario) else load_scenario(one) for one in scenarios]
    if vary is not None:
        if len(loaded) != 1:
            raise InputError(Problem("one scenario is varied at a time", file="--vary", value=str(len(loaded))))
        chosen = variants_of(loaded[0], vary, samples=samples)
    else:
        chosen = [variant for one in loaded for variant in one.variants or (one,)]
    attempts = []
    for one in chosen:
        try:
            if samples:
                result = predict(one, samples=samples, executor=engine, play=play, unused="tell")
            else:
                result = play(one, unused="tell")
            attempts.append(Attempt(one.name, one, result, None))
        except SimperfError as error:
            attempts.append(Attempt(one.name, one, None, error))
    refuse_unused(attempt.result.unused for attempt in attempts if attempt.result is not None)
    return SideBySide(tuple(attempts), differences([one.data for one in chosen]))
