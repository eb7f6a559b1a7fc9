"""A long training job on machines that fail: what it does, and what happens to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from simperf.errors import InputError, Problem
from simperf.training.failures.causes import Cause, job_rate
from simperf.training.failures.checkpoint import Checkpoint
from simperf.training.jitter import Constant, Distribution
from simperf.units import Seconds

__all__ = ["FailingRun", "Recovery"]

#: interruptions that no run is meant to have
_TOO_MANY = 1e6


def _day() -> Distribution:
    return Constant(86400.0)


@dataclass(frozen=True, slots=True)
class Recovery:
    """Recovery of a job from failures.

    Parameters
    ----------
    heartbeat : float
        time between two signs of life of a node [s]; 0 for a continuous one
    timeout : float
        silence after which a node is given up [s], counted from its last sign of life
    restart : float
        from the decision to the first step, without reading the checkpoint: scheduling, processes, communicators [s]
    spares : int
        nodes that stand by
    spare_time : float
        until a spare can take part [s]: 0 if it is hot; boot, image and caches if it is warm
    without_spare : str
        wait for a repaired node, or shrink: the others take over its share of the data
    reassign : float
        to spread the work over another number of nodes [s]
    least : int
        nodes below which a job that shrinks waits all the same
    repair : Distribution
        time until a broken node is back [s]
    """

    heartbeat: Seconds = 0.0
    timeout: Seconds = 0.0
    restart: Seconds = 0.0
    spares: int = 0
    spare_time: Seconds = 0.0
    without_spare: Literal["wait", "shrink"] = "wait"
    reassign: Seconds = 0.0
    least: int = 1
    repair: Distribution = field(default_factory=_day)

    def __post_init__(self) -> None:
        problems = [
            Problem("a finite time of 0 s or more is expected", key=f"recovery.{key}", value=f"{value:g}")
            for key in ("heartbeat", "timeout", "restart", "spare_time", "reassign")
            if not 0.0 <= (value := getattr(self, key)) < math.inf
        ]
        if self.timeout < self.heartbeat:
            message = "it is shorter than the time between heartbeats: every node would be given up"
            value, expected = f"{self.timeout:g} < {self.heartbeat:g}", f"{self.heartbeat:g} s or more"
            problems.append(Problem(message, key="recovery.timeout", value=value, expected=expected))
        if self.spares < 0:
            problems.append(Problem("0 spares or more are expected", key="recovery.spares", value=str(self.spares)))
        if self.without_spare not in ("wait", "shrink"):
            message = "wait or shrink is expected"
            problems.append(Problem(message, key="recovery.without_spare", value=self.without_spare))
        if self.least < 1:
            problems.append(Problem("1 node or more is expected", key="recovery.least", value=str(self.least)))
        if problems:
            raise InputError(problems)

    def detection(self, time: float) -> float:
        """Time from a silent failure at `time` [s] until it is noticed [s]."""
        return self.timeout - (time % self.heartbeat if self.heartbeat else 0.0)


@dataclass(frozen=True, slots=True)
class FailingRun:
    """A run on nodes that fail: it ends when its work is done, or is observed for a given time.

    Parameters
    ----------
    nodes : int
        Nodes that it wants.
    checkpoint : Checkpoint
    causes : sequence of Cause
        None at all is a machine that never fails.
    recovery : Recovery
    work : float
        Training that is to be done, in time of all nodes without failures and checkpoints [s].
    horizon : float
        Wall time at which the observation ends [s].

    Raises
    ------
    InputError
        All that is wrong with it.
    """

    nodes: int
    checkpoint: Checkpoint
    causes: tuple[Cause, ...] = ()
    recovery: Recovery = field(default_factory=Recovery)
    work: float = math.inf
    horizon: float = math.inf

    def __post_init__(self) -> None:
        problems = []
        if self.nodes < 1:
            problems.append(Problem("1 node or more is expected", key="nodes", value=str(self.nodes)))
        if not self.work > 0.0 or not self.horizon > 0.0:
            problems.append(Problem("a run longer than 0 s is expected", key="work"))
        run = min(self.work, self.horizon)
        if run == math.inf:
            problems.append(Problem("either its work or the time of its observation must be given", key="work"))
        elif self.checkpoint.interval > run > 0:
            message = f"the run of {run:g} s ends before its first checkpoint"
            given, least = f"{self.checkpoint.interval:g} s", f"at most {run:g} s"
            problems.append(Problem(message, key="checkpoint.interval", value=given, expected=least))
        rate = job_rate(self.causes, max(self.nodes, 0))
        if run < math.inf and run * rate > _TOO_MANY:
            message = f"{run * rate:.2g} interruptions in the run: the times between failures must be meant otherwise"
            problems.append(
                Problem(
                    message,
                    key="causes",
                    value=f"one in {1 / rate:.3g} s",
                    expected=f"at most {_TOO_MANY:g} interruptions",
                )
            )
        if self.recovery.spares > self.nodes > 0:
            message = f"more spares than the {self.nodes} nodes of the job: that is a second job, not a reserve"
            problems.append(
                Problem(
                    message, key="recovery.spares", value=str(self.recovery.spares), expected=f"at most {self.nodes}"
                )
            )
        if self.recovery.least > self.nodes > 0:
            message = f"the job has {self.nodes} nodes"
            problems.append(
                Problem(message, key="recovery.least", value=str(self.recovery.least), expected=f"at most {self.nodes}")
            )
        if problems:
            raise InputError(problems)

    @property
    def mtbf(self) -> float:
        """Mean time between the failures that the job meets at full size, planned ones left out [s]."""
        rate = job_rate([cause for cause in self.causes if not cause.planned], self.nodes)
        return 1.0 / rate if rate else math.inf
