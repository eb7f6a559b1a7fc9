"""Draws of a step with noise: many steps at once along the dependences of the one that was simulated without it.

What every rank runs, and what it waits for, is the program that was simulated. Times of kernels and launches are drawn
for each rank by itself. Communication takes as long as it did in the step that was simulated, where it shared links
with what moved at the same time there, and kernels are slowed beside it as they were there. This is exact where one
communication at a time draws on a link, and none moves beside kernels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import simpy

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution.session import Session
from simperf.training.job import Disturbances
from simperf.training.noise import DRAWS
from simperf.training.pipelined.drawn_streams import DrawnDevice
from simperf.training.pipelined.drawn_thread import DrawnThread
from simperf.training.pipelined.meetings import Meeting, Party, meetings
from simperf.training.pipelined.noise_draws import ArrayNoise, Floats, RankNoise, fleet
from simperf.training.pipelined.play import Pipeline
from simperf.training.pipelined.stage import StageProcess
from simperf.training.pipelined.work import Boundary

__all__ = ["disturb", "draw_steps", "step_times", "tell_draws", "tell_percentiles", "varies"]

#: part of a step by which the drawn one without noise may miss the one that was played [1]
ROUNDING = 1e-9
#: part of a step from which the drawn one without noise is told as approximate [1]
APPROXIMATE = 0.01
#: numbers that are drawn in the time of one event; assumed [1]
FASTER = 1000.0


def varies(disturbances: Disturbances) -> bool:
    """Whether anything of a divided job varies."""
    return bool(disturbances.variation) or not (disturbances.steady and disturbances.noise.steady)


def disturb(m: Session, disturbances: Disturbances, processes: Sequence[StageProcess], ranks: int) -> None:
    """Let the kernels of every process vary, each process being that of one rank."""
    factors = fleet(disturbances, ranks, m.rng)
    for one in processes:
        rng = m.rng(f"noise of rank {one.rank}")
        launch = m.profile.launch
        one.noise = RankNoise(disturbances.noise, float(factors[one.rank]), disturbances.paces, launch, rng)


def draw_steps(m: Session, disturbances: Disturbances, pipeline: Pipeline, processes: Sequence[StageProcess]) -> Floats:
    """Ends of steps with noise.

    Parameters
    ----------
    m : Session
    disturbances : Disturbances
    pipeline : Pipeline
    processes : sequence of StageProcess
        After they were simulated without noise, one for each class of like ranks.

    Returns
    -------
    numpy.ndarray of float64, shape (steps, 1 + draws)
        When each step of the program ends on all ranks [s]; the first column is the one without noise.
    """
    noise = disturbances.noise
    draws = 1 if disturbances.steady and noise.steady else noise.draws or DRAWS
    place = {node: rank for rank, node in enumerate(pipeline.nodes)}
    ranks = [[place[node] for node in m.ranks[one.device.name].members] for one in processes]
    _refuse_excess(m, processes, ranks, draws)
    owner, column = np.zeros(len(place), dtype=np.int64), np.zeros(len(place), dtype=np.int64)
    for number, own in enumerate(ranks):
        owner[own], column[own] = number, np.arange(len(own))
    places = _places(pipeline, processes, owner, column)
    factors, env, ready = fleet(disturbances, len(place), m.rng), simpy.Environment(), deque(range(len(processes)))
    threads: list[DrawnThread] = []
    for number, (one, own) in enumerate(zip(processes, ranks, strict=True)):
        drawn = ArrayNoise(disturbances, factors[own], draws, m.rng(f"noise of ranks with {own[0]}"))
        device = DrawnDevice(env, one.device.name, drawn, depth=m.simulation.depth, wake=partial(ready.append, number))
        threads.append(DrawnThread(m, device, one, places[number]))
    while ready:
        thread = threads[ready.popleft()]
        thread.device.advance()
        thread.run()
    if not all(thread.over for thread in threads):
        raise ProgramError("draws of a step wait for each other")
    ends: Floats = np.max([thread.device.steps for thread in threads], axis=0)
    return ends


def step_times(processes: Sequence[StageProcess]) -> Floats:
    """Times of the steps that were simulated, but for the first of several [s]."""
    ends = [max(one.spent.readings[step].time for one in processes) for step in range(processes[0].steps)]
    return _durations(np.asarray(ends))


def _durations(ends: Floats) -> Floats:
    """Times of steps by their ends [s], but for the first of several; steps are along the first axis."""
    return np.diff(ends, axis=0, prepend=0.0)[1 if len(ends) > 1 else 0 :]


def _places(
    pipeline: Pipeline, processes: Sequence[StageProcess], owner: Any, column: Any
) -> list[dict[Any, tuple[Meeting, Party]]]:
    """Places at which the ranks of each process meet others, by what it finds its groups by."""
    kinds: dict[Any, list[Sequence[int]]] = {}
    ways: dict[tuple[int, int], list[Boundary]] = {}
    for edge, here, there in pipeline.work.edges():
        ways.setdefault((here, there), []).append(edge)
    for key, one in pipeline.joined():
        for each in ways.get(key, ()) if isinstance(key, tuple) else (key,):
            kinds.setdefault(each, []).append(one.ranks)
    found: list[dict[Any, tuple[Meeting, Party]]] = [{} for _ in processes]
    for key, several in kinds.items():
        for number, place in meetings(several, owner, column).items():
            if key in processes[number].groups:
                found[number][key] = place
    return found


def _refuse_excess(m: Session, processes: Sequence[StageProcess], ranks: Sequence[Sequence[int]], draws: int) -> None:
    """Refuse more numbers than are drawn in the time of the events that a run may simulate."""
    most = m.simulation.most
    each = 0.0
    for one, own in zip(processes, ranks, strict=True):
        passes = one.work.plan.stages[one.stage]
        syncs = sum(1 for _ in one.work.syncs(one.stage)) / max(1, len(one.work.chunks(one.stage)))
        each += len(own) * one.steps * len(passes) * (1.0 + syncs / 2)
    if most is None or each * draws <= most * FASTER:
        return
    message = f"about {each * draws:.3g} numbers would be drawn, more than {most * FASTER:.3g}"
    fewer = int(most * FASTER / each)
    expected = f"at most {fewer}" if fewer else "a smaller job"
    told = f"{expected}; or --force (run.force = true), which draws them all"
    raise InputError(Problem(message, key="noise.draws", value=str(draws), expected=told))


def tell_draws(m: Session, ends: Floats, nominal: float) -> float:
    """Report percentiles of steps with noise; returns their mean [s].

    Parameters
    ----------
    m : Session
    ends : numpy.ndarray of float64, shape (steps, 1 + draws)
        As `draw_steps` gives them.
    nominal : float
        Time of a step without noise, as it was simulated [s].
    """
    times = _durations(ends)
    tell_percentiles(m, times[:, 1:].ravel())
    missed = abs(float(times[:, 0].mean()) / nominal - 1.0) if nominal else 0.0
    count = times[:, 1:].size
    told = f"{count} step{'s' if count > 1 else ''} with noise {'are' if count > 1 else 'is'} drawn beside "
    told += "the one that is simulated without"
    if missed > APPROXIMATE:
        told += f"; approximate: along its dependences it would differ by {100 * missed:.2g} %"
    elif missed > ROUNDING:
        told += f"; without noise they differ from it by {100 * missed:.1g} %"
    m.notes.append(told)
    return float(times[:, 1:].mean())


def tell_percentiles(m: Session, times: Floats) -> None:
    """Report the mean and percentiles of the times of steps with noise [s]."""
    m.metric("time per step with noise, mean", float(times.mean()), "s")
    for percent in (10, 50, 90, 99):
        m.metric(f"time per step with noise, p{percent}", float(np.percentile(times, percent)), "s")
