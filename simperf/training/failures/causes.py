"""Causes of failures, their frequencies, and the stream of failures of one run.

A cause strikes one node of the pool or the job as a whole. Every node's clock runs in wall
time, whether the node works, stands by or is being repaired; a failure of a node that
does not take part is nobody's business. The stream therefore does not depend on what the
job does, and two jobs that differ in their checkpoints meet the same failures (common random numbers).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from simperf.errors import InputError, Problem
from simperf.training.jitter import Constant, Distribution, Exponential, stream

__all__ = ["Cause", "Failure", "Random", "Scope", "at_times", "failures", "job_rate"]

Scope = Literal["node", "cluster"]
#: gives the random stream of a name, as `Simulation.random` does
Random = Callable[[str], np.random.Generator]


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that interrupts a job.

    Parameters
    ----------
    name : str
    interval : Distribution
        Time between failures of one node, or of the cluster, by `scope` [s].
    scope : str
        ``"node"`` or ``"cluster"``.
    loses_node : bool
        A node has to be replaced and repaired; otherwise the job restarts where it is.
    silent : bool
        It is noticed by the heartbeats that do not come; otherwise at once.
    planned : bool
        It is announced: a checkpoint is taken before it, and nothing is lost but the restart.
    """

    name: str
    interval: Distribution
    scope: Scope = "node"
    loses_node: bool = True
    silent: bool = True
    planned: bool = False

    def __post_init__(self) -> None:
        problems = []
        if not self.interval.mean > 0.0:
            message = "the mean time between failures must be above 0 s"
            problems.append(Problem(message, key=f"causes.{self.name}", value=f"{self.interval.mean:g}"))
        if self.scope not in ("node", "cluster"):
            problems.append(Problem("node or cluster is expected", key=f"causes.{self.name}", value=self.scope))
        if problems:
            raise InputError(problems)

    @property
    def rate(self) -> float:
        """Failures per second of one node, or of the cluster [1/s]."""
        return 1.0 / self.interval.mean


class Failure(NamedTuple):
    """One failure of a run: when [s], of which node of the pool, or (node -1) of the job.

    `pick`, from 0 to 1, chooses the node that a failure of the job takes with it.
    """

    time: float
    node: int
    cause: Cause
    pick: float = 0.0


def job_rate(causes: Sequence[Cause], nodes: int) -> float:
    """Failures per second that a job on `nodes` nodes meets [1/s]."""
    return sum(cause.rate * (nodes if cause.scope == "node" else 1) for cause in causes)


def at_times(trace: Sequence[tuple[float, int]], cause: Cause | None = None) -> Iterator[Failure]:
    """Failures at known times: pairs of time [s] and node (-1 for the job), in order of time."""
    what = cause or Cause("given", Constant(1.0), loses_node=any(node >= 0 for _, node in trace))
    times = [time for time, _ in trace]
    if times != sorted(times) or (times and times[0] < 0):
        raise InputError(Problem("times in order, from 0 s on, are expected", key="trace"))
    return iter([Failure(time, node, what) for time, node in trace])


def failures(causes: Sequence[Cause], pool: int, random: Random, *, name: str = "failures") -> Iterator[Failure]:
    """The endless stream of failures of a pool of nodes, in order of time.

    Each cause draws from a stream of its own, so that leaving one out does not move the others.

    Parameters
    ----------
    causes : sequence of Cause
    pool : int
        Nodes with clocks: those of the job, and its spares.
    random : callable
        Random stream by name, as `Simulation.random`.
    name : str
        First part of the streams' names.

    Raises
    ------
    InputError
        No nodes, or two causes of one name.
    """
    if pool < 1:
        raise InputError(Problem("one node or more is expected", key="nodes", value=str(pool)))
    names = [cause.name for cause in causes]
    if len(set(names)) < len(names):
        raise InputError(
            Problem(
                "two causes have one name", key="causes", value=", ".join(names), expected="a name of its own for each"
            )
        )
    return heapq.merge(*(_clock(cause, pool, random(f"{name} {cause.name}")) for cause in causes), key=_time)


def _time(failure: Failure) -> float:
    return failure.time


def _clock(cause: Cause, pool: int, rng: np.random.Generator) -> Iterator[Failure]:
    """Failures of one cause."""
    if cause.scope == "cluster":
        time = 0.0
        for wait in stream(cause.interval, rng):
            time += wait
            yield Failure(time, -1, cause, float(rng.random()))
    if isinstance(cause.interval, Exponential):
        # clocks without memory: all nodes' together are one clock, and each node is as likely as any other
        time, mean = 0.0, cause.interval.mean / pool
        while True:
            waits, nodes = rng.exponential(mean, 64).tolist(), rng.integers(0, pool, 64).tolist()
            for wait, node in zip(waits, nodes, strict=True):
                time += wait
                yield Failure(time, node, cause)
    clocks = [(time, node) for node, time in enumerate(cause.interval.draw(rng, pool).tolist())]
    heapq.heapify(clocks)
    for wait in stream(cause.interval, rng):
        time, node = clocks[0]
        yield Failure(time, node, cause)
        heapq.heapreplace(clocks, (time + wait, node))
