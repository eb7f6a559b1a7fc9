"""Goodput: how much of the wall time is training that counts.

Goodput is useful training over wall time. One run is one history of failures; the
distribution over seeded runs says how much luck is in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from simperf.errors import InputError, Problem
from simperf.training.failures.causes import Failure, Random, failures
from simperf.training.failures.job_events import PARTS, Life, Part
from simperf.training.failures.recovery import FailingRun
from simperf.training.jitter import stream

__all__ = ["Goodput", "RunHistory", "goodput", "new_life", "run_job"]


@dataclass(frozen=True, slots=True)
class RunHistory:
    """One history of a failing run.

    Parameters
    ----------
    wall : float
        How long it was [s].
    parts : mapping of str to float
        Where the time went (`simperf.training.failures.job_events`); adds up to `wall` [s].
    interruptions : mapping of str to int
        By cause; those that struck while the job was down included.
    checkpoints : int
        Checkpoints that were taken.
    """

    wall: float
    parts: Mapping[Part, float]
    interruptions: Mapping[str, int]
    checkpoints: int

    @property
    def goodput(self) -> float:
        """Useful training over wall time [1]."""
        return self.parts["useful"] / self.wall


@dataclass(frozen=True, slots=True)
class Goodput:
    """Many histories of one job."""

    runs: tuple[RunHistory, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Goodput of each run [1]."""
        return tuple(run.goodput for run in self.runs)

    @property
    def mean(self) -> float:
        """Useful training of all runs over their wall time [1]."""
        return math.fsum(run.parts["useful"] for run in self.runs) / math.fsum(run.wall for run in self.runs)

    @property
    def deviation(self) -> float:
        """Standard deviation from run to run [1]; 0 for a single run."""
        return float(np.std(self.values, ddof=1)) if len(self.runs) > 1 else 0.0

    def quantile(self, share: float) -> float:
        """Goodput that `share` of the runs stay below [1]."""
        return float(np.quantile(self.values, share))

    def parts(self) -> dict[Part, float]:
        """Parts of the wall time of all runs, as shares of it [1]."""
        wall = math.fsum(run.wall for run in self.runs)
        return {part: math.fsum(run.parts[part] for run in self.runs) / wall for part in PARTS}


def new_life(
    job: FailingRun,
    random: Random,
    *,
    run: int = 0,
    trace: Iterable[Failure] | None = None,
    detailed: bool = False,
) -> Life:
    """Run number `run` of a job, not yet begun: its failures (or those of `trace`) and repairs, from named streams."""
    repairs = stream(job.recovery.repair, random(f"repairs {run}"))
    pool = job.nodes + job.recovery.spares
    coming = failures(job.causes, pool, random, name=f"failures {run}") if trace is None else iter(trace)
    return Life(job, coming, repairs, detailed=detailed)


def run_job(job: FailingRun, random: Random, *, run: int = 0, trace: Iterable[Failure] | None = None) -> RunHistory:
    """Simulate one history of a job.

    Parameters
    ----------
    job : FailingRun
    random : callable
        Random stream by name, as `Simulation.random`.
    run : int
        Number of the history; each has streams of its own.
    trace : iterable of Failure, optional
        Failures at known times instead of random ones.

    Examples
    --------
    >>> from simperf.engine.simulation import Simulation
    >>> from simperf.training.failures.checkpoint import Checkpoint
    >>> from simperf.training.failures.causes import at_times
    >>> job = FailingRun(1, Checkpoint(100.0, nbytes=10.0, bandwidth=1.0), work=300.0)
    >>> found = run_job(job, Simulation().random, trace=at_times([(170.0, -1)]))
    >>> found.wall, found.parts["redone"], found.parts["checkpoint"]
    (390.0, 60.0, 20.0)
    """
    life = new_life(job, random, run=run, trace=trace)
    for _ in life.phases():
        pass
    return RunHistory(life.now, dict(life.ledger), dict(life.interruptions), life.checkpoints)


def goodput(job: FailingRun, random: Random, *, runs: int = 100, first: int = 0) -> Goodput:
    """Simulate `runs` independent histories of a job, numbered from `first`.

    Raises
    ------
    InputError
        No runs.
    """
    if runs < 1:
        raise InputError(Problem("1 run or more is expected", key="runs", value=str(runs)))
    return Goodput(tuple(run_job(job, random, run=first + run) for run in range(runs)))
