"""From the time that a job trains to the time that it takes: checkpoints, failures, restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from simperf.engine.simulation import Simulation
from simperf.study.planning.request import Request
from simperf.training.failures.causes import Cause
from simperf.training.failures.checkpoint import Checkpoint, young
from simperf.training.failures.goodput import goodput
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Constant, Exponential

__all__ = ["Lifetime", "lifetime"]

#: checkpoints of a history that are played; what is longer goes on at the same goodput
_CHECKPOINTS = 400


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Wall time of a job: the mean, and the range that holds 90 % of its histories [s]."""

    time: float
    low: float
    high: float


def lifetime(request: Request, nodes: int, work: float) -> Lifetime:
    """Play a job of `work` [s] on `nodes` nodes through its failures, many times.

    All candidates meet failures of the same streams. Checkpoints hold the weights and what the optimizer keeps.
    """
    said = request.failures
    assert said is not None
    memory = request.model.memory(1, request.precision, optimizer=request.optimizer)
    size = memory["weights"] + memory["master"] + memory["optimizer"] + memory["buffers"]
    mtbf = said.node_mtbf / nodes
    pause = size / said.bandwidth
    # Young's formula has no answer for a checkpoint that costs nothing: it is taken all the time
    interval = said.interval or (young(pause, mtbf) if pause > 0 else mtbf / _CHECKPOINTS)
    played = min(work, _CHECKPOINTS * interval)
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
