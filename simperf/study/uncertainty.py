"""Uncertainty of a prediction: runs with constants drawn from what calibration leaves open.

A fitted profile holds joint samples of its constants. A scenario that uses one can be drawn:
``draw(scenario, i)`` is the same scenario with the i-th set of constants. A run for each set, with a seed of
its own, gives a distribution of every number, and its middle 90 % is the interval that is shown.

Draw i stands for the same constants in every scenario of one profile. Two plans are therefore held
against each other draw by draw: what both have wrong in the same way does not blur which is better.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Literal

from simperf.analysis.chance import interval
from simperf.analysis.intervals import DRAWS, with_draws
from simperf.errors import InputError, Problem
from simperf.results import Result
from simperf.run import MOST_EVENTS, run
from simperf.scenario import Scenario, load_scenario
from simperf.scenario.calibration import unseen, unseen_profile
from simperf.scenario.load import redraw
from simperf.study.executors import using
from simperf.study.points import Task, make_tasks, point_scenario, spawn_seed
from simperf.study.preflight import refuse_draws, refuse_total

__all__ = ["draw", "drawn", "predict"]

#: what is said of GPUs without a profile of their own, and of a model's training steps on them
_UNSEEN = "kernels of {}: drawn from leave-one-architecture-out errors (profile unseen-gpus)"
_STEPS = (
    "; whole steps: drawn from the errors of {} measured steps of {} architectures. "
    "The interval is centred on the bias-corrected estimate"
)


def predict(
    scenario: Scenario | str | os.PathLike[str],
    *,
    samples: int = 100,
    executor: str | Executor = "serial",
    record: bool = True,
    change: Callable[[Scenario], Scenario] | None = None,
    play: Callable[..., Result] = run,
    unused: Literal["refuse", "tell"] = "refuse",
) -> Result:
    """Run a scenario, and again with each of `samples` sets of constants.

    Parameters
    ----------
    scenario : Scenario or path
    samples : int
        Draws; 20 are the least that say something about the outer 5 %.
    executor : str or Executor
        Where the draws are run, as in `simperf.study.sweep.sweep`.
    record : bool
        Keep the timeline of the run with the fitted constants.
    change : callable, optional
        What is done to the scenario after its constants are drawn; draws are then run in this process.
    play : callable
        Runs the scenario with the fitted constants.
    unused : {"refuse", "tell"}
        What becomes of a profile that changes nothing, as in `simperf.run`.

    Returns
    -------
    Result
        Of the fitted constants, with `Result.intervals` of the time and every metric, and `Result.draws`.

    Raises
    ------
    InputError
        Fewer than 2 samples, or too many without ``run.force``.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise InputError(Problem("2 samples or more are expected", key="--samples", value=str(samples)))
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    refuse_draws(samples, force=scenario.force)
    refuse_total(1 + samples, min(scenario.program.events(scenario.parameters), MOST_EVENTS), force=scenario.force)
    then = change or (lambda one: one)
    base = play(then(scenario), record=record, unused=unused)
    if executor == "serial" or change is not None:
        rows = [_numbers(then(drawn(scenario, index))) for index in range(samples)]
    else:
        (task,) = make_tasks(scenario, [{}], record=False)
        with using(executor) as engine:
            seed = scenario.seed
            futures = [engine.submit(_draw_task, {**task, "seed": seed}, index) for index in range(samples)]
            rows = [future.result() for future in futures]
    names = [name for name in rows[0] if all(name in row for row in rows)]
    draws = {name: tuple(row[name] for row in rows) for name in names}
    found = with_draws(base.intervals, {name: interval(values) for name, values in draws.items()})
    made_of = {**base.interval_sources, DRAWS: f"{samples} of constants and of the program's random numbers"}
    metrics = {
        name: replace(metric, low=found[name][0], high=found[name][1]) if name in found else metric
        for name, metric in base.metrics.items()
    }
    notes = base.notes
    gpus = _unseen_gpus(scenario, base)
    own = scenario.cost.gpu if any("alike" in one for one in scenario.cost.kernels.values()) else ""
    if own:
        gpus = (*gpus, f"{own} that the profile has no factors of")
    if gpus:
        notes = (*notes, _UNSEEN.format(", ".join(gpus)) + _steps_told(scenario))
    elif not scenario.draws:
        given = ", ".join(profile.name for profile in scenario.profiles)
        why = f"{given}: no draws of constants" if given else "no [calibration]"
        notes = (*notes, f"{why}: the intervals hold the random numbers of the program, not the constants")
    return replace(base, intervals=found, interval_sources=made_of, draws=draws, metrics=metrics, notes=notes)


def _unseen_gpus(scenario: Scenario, base: Result) -> tuple[str, ...]:
    """GPUs of the catalogue whose kernels were drawn without a profile of their own."""
    cost = scenario.cost
    if cost.sharp or not base.operations:
        return ()
    used = dict.fromkeys(base.ceilings[use.device].part for use in base.operations if use.device in base.ceilings)
    return tuple(name for name in used if not (cost.kernels and cost.gpu in ("", name)))


def _steps_told(scenario: Scenario) -> str:
    """What is said of whole steps, if a model's are trained at a speed that was not measured."""
    given = scenario.parameters
    models = [one for name, one in unseen_profile().model.items() if name.startswith("unseen.step-")]
    if not given.get("model") or given.get("alone") or not models:
        return ""
    names = {name for one in models for name in one.series.split(", ")}
    return _STEPS.format(sum(one.points for one in models), len(names))


def drawn(scenario: Scenario, index: int) -> Scenario:
    """The scenario with draw `index` of its constants, and a seed of its own."""
    return replace(draw(scenario, index), seed=spawn_seed(scenario.seed, index))


def _draw_task(task: Task, index: int) -> dict[str, float]:
    return _numbers(replace(drawn(point_scenario(task), index), answer=None))


def _numbers(scenario: Scenario) -> dict[str, float]:
    result = run(scenario, record=False, unused="tell")
    return {"time": result.time, **{name: metric.value for name, metric in result.metrics.items() if name != "time"}}


def draw(scenario: Scenario, index: int) -> Scenario:
    """The same scenario with joint draw `index` (from 0) of all fitted constants.

    Draws repeat after the last of the profile, and what is expected or measured is left out. Kernels of GPUs that
    no profile is of take as long as draw `index` of GPUs that were left out has them.
    """
    made = redraw(scenario, index % scenario.draws + 1) if scenario.draws else scenario
    return unseen(made, index)
