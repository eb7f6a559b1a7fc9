"""One point of a study: a plain task for a worker, its scenario, and the plain row that comes back.

A task holds all that a run needs, so that it may be done in any process of any computer; a row
holds what tables and pictures need, and nothing that depends on where or when it was made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from simperf.answer import TIME
from simperf.errors import InputError, Problem
from simperf.files import TomlFile
from simperf.hardware import Machine
from simperf.json_format import finite
from simperf.results import Result
from simperf.run import MOST_EVENTS
from simperf.scenario import Scenario, make_scenario
from simperf.scenario.overrides import Override, apply, parse_path
from simperf.scenario.profile_use import refuse_unused
from simperf.study.cache import own_files
from simperf.study.preflight import MOST_TOTAL, refuse_runs, refuse_total

__all__ = [
    "SPEED",
    "Row",
    "Task",
    "base_scenario",
    "failed_row",
    "make_tasks",
    "point_scenario",
    "refuse_unused_in",
    "result_row",
    "spawn_seed",
    "with_speeds",
]

Task = dict[str, Any]
Row = dict[str, Any]

#: keys below this change how fast a resource is (`simperf.study.virtual`) instead of a value of the file
SPEED = "speed"
#: machines of this process by their table, with the routes that were found on them
_MACHINES: dict[str, Machine] = {}
_KEPT = 64
#: tables that say nothing about a run
_SILENT = ("expect", "measured", "compare")


def make_tasks(
    scenario: Scenario,
    points: Sequence[Mapping[str, Any]],
    *,
    samples: int = 0,
    record: bool = True,
) -> list[Task]:
    """A task a point: the scenario with the point's values, and a seed of its own.

    Parameters
    ----------
    scenario : Scenario
    points : sequence of mapping
        Values by key, from `simperf.study.axes.make_points`.
    samples : int
        Draws of the calibration's fit, for intervals; 0 for none.
    record : bool
        Keep the timeline while it runs, which regimes are read from.

    Raises
    ------
    InputError
        Too many runs; a scenario that was not made of a file or of plain data.
    """
    if "program" not in scenario.data:
        raise InputError(
            Problem("the scenario was not made of a file or of plain data", expected="make_scenario({...})")
        )
    refuse_runs(len(points), samples, force=scenario.force)
    data = {key: value for key, value in scenario.data.items() if key not in _SILENT}
    folder = str(Path(scenario.path).absolute().parent) if scenario.path else str(Path.cwd())
    tasks = [
        {
            "point": index,
            "set": dict(point),
            "seed": point.get("run.seed", spawn_seed(scenario.seed, index)),
            "samples": samples,
            "record": record,
            "data": data,
            "folder": folder,
            "path": str(Path(scenario.path).absolute()) if scenario.path else "",
            "name": scenario.name,
        }
        for index, point in enumerate(points)
    ]
    runs = len(points) * (1 + samples)
    if runs * MOST_EVENTS > MOST_TOTAL and not scenario.force:
        refuse_total(runs, _events(tasks), option="--vary, --samples" if samples else "--vary")
    return tasks


def _events(tasks: Sequence[Task]) -> float:
    """Events of a run of a study, about: the mean of its first, middle and last point."""
    found = []
    for index in sorted({0, len(tasks) // 2, len(tasks) - 1}):
        try:
            made = base_scenario(tasks[index])
        except Exception:  # what is wrong with a point is its row's error
            continue
        found.append(min(made.program.events(made.parameters), MOST_EVENTS))
    return math.fsum(found) / len(found) if found else 0.0


def spawn_seed(seed: int, index: int) -> int:
    """Seed of point `index` of a study, as `numpy.random.SeedSequence` spawns it; fits a scenario's file."""
    state = np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1, np.uint64)[0]
    return int(state >> np.uint64(1))


def point_scenario(task: Mapping[str, Any]) -> Scenario:
    """Make the scenario of a task.

    Raises
    ------
    InputError
        The point's values do not fit the scenario.
    """
    return with_speeds(base_scenario(task), task)


def base_scenario(task: Mapping[str, Any]) -> Scenario:
    """The scenario with the point's values, without its speed-ups."""
    changes = {key: value for key, value in task["set"].items() if parse_path(key)[0] != SPEED}
    overrides = [Override(parse_path(key), value) for key, value in {**changes, "run.seed": task["seed"]}.items()]
    problems: list[Any] = []
    data, _ = apply(task["data"], TomlFile("", dict(task["data"]), ""), overrides, problems)
    if problems:
        raise InputError(problems)
    made = _with_machine(make_scenario(data, folder=task["folder"]), data, task["folder"])
    return replace(made, path=task["path"])


def with_speeds(scenario: Scenario, task: Mapping[str, Any]) -> Scenario:
    """The scenario with the point's speed-ups."""
    speeds = _speeds(task)
    if not speeds:
        return scenario
    from simperf.study.virtual import speed_up

    return speed_up(scenario, speeds)


def _speeds(task: Mapping[str, Any]) -> dict[str, float]:
    """How many times as fast each resource is, by name.

    Raises
    ------
    InputError
        A value is no number.
    """
    found = {}
    for key, value in task["set"].items():
        path = parse_path(key)
        if path[0] != SPEED:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            expected = "how many times as fast, such as 1.1"
            raise InputError(Problem("a number is expected", key=key, value=str(value)[:60], expected=expected))
        found[".".join(map(str, path[1:]))] = float(value)
    return found


def result_row(task: Mapping[str, Any], result: Result) -> Row:
    """Row that is kept of a result."""
    from simperf.analysis.limits import busiest
    from simperf.analysis.regime import regime

    limit = busiest(result)
    row = _head(task) | {
        "error": None,
        "time": result.time,
        "regime": regime(result).name if result.spans else "",
        "limited_by": limit.name if limit else "",
        "floor": result.floor[1],
        "metrics": {name: [finite(metric.value), metric.unit] for name, metric in result.metrics.items()},
        "work": {name: [amount.value, amount.unit] for name, amount in result.work.items()},
    }
    if result.unused:
        row["unused"] = {name: asdict(problem) for name, problem in result.unused.items()}
    if result.draws:
        row["intervals"] = {name: list(ends) for name, ends in result.intervals.items()}
        row["draws"] = list(result.draws.get(_asked_metric(task["data"]), ()))
    return row


def _asked_metric(data: Mapping[str, Any]) -> str:
    """The metric that a scenario's data ask for, ``"time"`` if they do not say."""
    answer = data.get("scenario", {}).get("answer") or {}
    return str(answer.get("metric", TIME))


def refuse_unused_in(rows: Sequence[Row]) -> None:
    """Refuse profiles that changed nothing at any point that gave a result.

    Raises
    ------
    InputError
        Each of them.
    """
    good = [row.get("unused", {}) for row in rows if row["error"] is None]
    refuse_unused({name: Problem(**problem) for name, problem in unused.items()} for unused in good)


def failed_row(task: Mapping[str, Any], error: str) -> Row:
    """The row of a point that gave no result."""
    return _head(task) | {"error": error.strip() or "no reason was given"}


def _head(task: Mapping[str, Any]) -> Row:
    return {"point": task["point"], "set": dict(task["set"]), "seed": task["seed"]}


def _with_machine(scenario: Scenario, data: Mapping[str, Any], folder: str) -> Scenario:
    """Give a scenario the machine that an earlier point of the same table had, whose routes are known already."""
    if scenario.machine is None:
        return scenario
    own = {key: data[key] for key in ("machine", "calibration") if key in data}
    states = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in own_files(own, folder)]
    table = json.dumps([own, folder, states], sort_keys=True, default=str)
    if len(_MACHINES) >= _KEPT:
        _MACHINES.clear()
    return replace(scenario, machine=_MACHINES.setdefault(table, scenario.machine))
