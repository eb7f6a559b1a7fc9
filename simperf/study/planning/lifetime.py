"""From the time that a job trains to the time that it takes: checkpoints, failures, restarts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.study.planning.request import PlanFailures, Request
from simperf.training.failures.causes import Cause
from simperf.training.failures.checkpoint import Checkpoint, young
from simperf.training.failures.goodput import goodput
from simperf.training.failures.history import events_of_history
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Constant, Exponential

__all__ = ["Lifetime", "failing_lifetime", "history_events", "lifetime", "refuse_histories"]

#: checkpoints of a history that are played; what is longer goes on at the same goodput
_CHECKPOINTS = 400


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Wall time of a job: the mean, and the range that holds 90 % of its histories [s]."""

    time: float
    low: float
    high: float


def refuse_histories(request: Request, candidates: Iterable[tuple[int, str, float]], most: float) -> None:
    """Refuse histories of more events than `most` in all, without ``plan.force``.

    Parameters
    ----------
    request : Request
    candidates : iterable of (int, str, float)
        Nodes, precision, and the least time that the job trains [s].
    most : float
        Events.

    Raises
    ------
    InputError
        The number, and how many histories would do.
    """
    said = request.failures
    if said is None or request.force:
        return
    each = [
        events_of_history(_played(said, nodes, _states(request, precision), work)[1] * nodes / said.node_mtbf)
        for nodes, precision, work in candidates
    ]
    events = said.runs * math.fsum(each)
    if events > most:
        message = f"histories of about {events:.3g} events would be simulated, more than {most:.3g}"
        fewer = int(most / math.fsum(each))
        instead = f"at most {fewer:,}" if fewer else "a longer node_mtbf, or fewer candidates"
        expected = f"{instead}; or --force (plan.force = true), which simulates them all"
        key = ("failures", "runs" if fewer else "node_mtbf")
        raise InputError(request.toml.problem(key, message, value=said.runs if fewer else "", expected=expected))


def _states(request: Request, precision: str) -> float:
    """Size of a checkpoint [B]."""
    memory = request.model.memory(1, precision, optimizer=request.optimizer)
    return memory["weights"] + memory["master"] + memory["optimizer"] + memory["buffers"]


def _played(said: PlanFailures, nodes: int, size: float, work: float) -> tuple[float, float]:
    """The time between two checkpoints of a size [B], and the time of training that is simulated [s]."""
    mtbf = said.node_mtbf / nodes
    pause = size / said.bandwidth
    # Young's formula has no answer for a checkpoint that costs nothing: it is taken all the time
    interval = said.interval or (young(pause, mtbf) if pause > 0 else mtbf / _CHECKPOINTS)
    return interval, min(work, _CHECKPOINTS * interval)


def history_events(said: PlanFailures, nodes: int, size: float, work: float) -> float:
    """Events of all histories of a job, about; the parameters are those of `failing_lifetime`."""
    return said.runs * events_of_history(_played(said, nodes, size, work)[1] * nodes / said.node_mtbf)


def lifetime(request: Request, nodes: int, precision: str, work: float) -> Lifetime:
    """Simulate a job of `work` [s] in `precision` on `nodes` nodes through its failures, many times.

    All candidates meet failures of the same streams. Checkpoints hold the weights and what the optimizer keeps.
    """
    assert request.failures is not None
    return failing_lifetime(request.failures, nodes, _states(request, precision), work)


def failing_lifetime(said: PlanFailures, nodes: int, size: float, work: float) -> Lifetime:
    """Simulate a job through its failures, many times.

    Parameters
    ----------
    said : PlanFailures
    nodes : int
    size : float
        Of a checkpoint [B].
    work : float
        Time that the job trains [s].
    """
    interval, played = _played(said, nodes, size, work)
    checkpoint = Checkpoint(min(interval, played), nbytes=size, bandwidth=said.bandwidth)
    cause = Cause("node", Exponential(said.node_mtbf), silent=False)
    job = FailingRun(
        nodes, checkpoint, (cause,), Recovery(restart=said.restart, repair=Constant(said.repair)), work=played
    )
    found = goodput(job, Simulation(seed=0).random, runs=said.runs)
    walls = np.asarray([run.wall for run in found.runs]) * (work / played)
    if work > played:  # luck evens out over a longer job
        walls = walls.mean() + (walls - walls.mean()) * math.sqrt(played / work)
    low, high = np.quantile(walls, [0.05, 0.95])
    return Lifetime(float(walls.mean()), float(low), float(high))
