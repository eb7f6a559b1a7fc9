"""Failures of a long job as files say them: what fails, checkpoints, recovery and repair, and the run among them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from simperf.errors import InputError, Problem
from simperf.training.failures.causes import Cause
from simperf.training.failures.checkpoint import Checkpoint, young
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.field_types import keys
from simperf.training.jitter import Distribution, distribution
from simperf.units import Bytes, FreeUnlessGiven, Ratio, Seconds

__all__ = ["FailureTimes", "Failures", "Repair", "Saving"]


@dataclass(frozen=True, slots=True)
class FailureTimes:
    """Failures of a job by cause, and how often they strike.

    Parameters
    ----------
    node_mtbf : float
        mean time between failures of one node, which then has to be replaced
    cluster_mtbf : float
        mean time between failures of the job that need no new node
    counts : mapping of str to int
        failures by cause that a job on as many nodes met in the time `observed`
    observed : float
        time in which the counts were taken
    in_place : tuple of str
        causes of the counts after which the job restarts on the same nodes
    planned : tuple of str
        causes of the counts that are announced: a checkpoint is taken before them
    law : str
        of the times between failures
    shape : float
        of the Weibull law

    Raises
    ------
    InputError
        Counts without their time, or causes that were not counted.
    """

    node_mtbf: Seconds = 0.0
    cluster_mtbf: Seconds = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    observed: Seconds = 0.0
    in_place: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    law: Literal["exponential", "weibull", "constant"] = "exponential"
    shape: Ratio = 0.7

    def __post_init__(self) -> None:
        if self.counts and not self.observed > 0:
            raise InputError(Problem("counts need the time in which they were taken", key="observed"))
        problems = []
        for key, named in (("in_place", self.in_place), ("planned", self.planned)):
            strangers = [name for name in named if name not in self.counts]
            if strangers:
                message = f"no such cause among the counts: {', '.join(strangers)}"
                problems.append(Problem(message, key=key, expected=", ".join(self.counts)))
        if problems:
            raise InputError(problems)

    def causes(self, nodes: int) -> tuple[Cause, ...]:
        """The causes that a job on so many nodes meets."""
        found = []
        if self.node_mtbf:
            found.append(Cause("node", self._times(self.node_mtbf)))
        if self.cluster_mtbf:
            found.append(Cause("cluster", self._times(self.cluster_mtbf), "cluster", loses_node=False))
        for name, count in self.counts.items():
            if count and (name in self.in_place or name in self.planned):
                times = self._times(self.observed / count)
                found.append(Cause(name, times, "cluster", loses_node=False, planned=name in self.planned))
            elif count:
                found.append(Cause(name, self._times(self.observed * nodes / count)))
        return tuple(found)

    def _times(self, mean: float) -> Distribution:
        return distribution(self.law, mean=mean, shape=self.shape)


@dataclass(frozen=True, slots=True)
class Saving:
    """Checkpoints of the whole job.

    Parameters
    ----------
    interval : float
        training between two checkpoints; 0 takes Young's formula
    size : float
        state of the whole job; 0 for nothing, with model parallelism for its weights and the optimizer's states
    storage : float
        bandwidth of the checkpoint store; 0 takes no time
    per_node : bool
        every node has such a store of its own
    asynchronous : bool
        training stops for the copy into host memory only
    to_host : float
        bandwidth of that copy, a node; 0 takes no time
    latency : float
        of a checkpoint besides its bytes
    """

    interval: Seconds = 0.0
    size: Bytes = 0.0
    storage: FreeUnlessGiven = 0.0
    per_node: bool = False
    asynchronous: bool = False
    to_host: FreeUnlessGiven = 0.0
    latency: Seconds = 0.0

    def checkpoint(self) -> Checkpoint:
        """A checkpoint, after 1 s of training if no interval is given."""
        return Checkpoint(
            self.interval or 1.0,
            nbytes=self.size,
            bandwidth=self.storage or math.inf,
            per_node=self.per_node,
            asynchronous=self.asynchronous,
            host_bandwidth=self.to_host or math.inf,
            latency=self.latency,
        )


@dataclass(frozen=True, slots=True)
class Repair:
    """Repair of broken nodes.

    Parameters
    ----------
    repair : float
        mean time until a broken node is back
    repair_law : str
        of the times of repair
    """

    repair: Seconds = 86400.0
    repair_law: Literal["constant", "exponential", "lognormal"] = "constant"

    def times(self) -> Distribution:
        """Their distribution [s]."""
        return distribution(self.repair_law, mean=self.repair, cv=1.0)


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of a long job, and what is done about them.

    Parameters
    ----------
    times : FailureTimes
        what fails, and how often
    fails_at : tuple of float
        node 0, 1, ... fails at these times instead of random ones
    saving : Saving
        checkpoints
    recovery : Recovery
        how the job comes back
    repair : Repair
        how nodes come back
    runs : int
        further histories for the distribution of goodput
    search : bool
        search the best interval, with as many histories as `runs`

    Raises
    ------
    InputError
        A search without histories, or times of repair that are given twice.
    """

    times: FailureTimes = field(default_factory=FailureTimes)
    fails_at: tuple[Seconds, ...] = ()
    saving: Saving = field(default_factory=Saving)
    recovery: Recovery = field(
        default=Recovery(),
        metadata=keys(
            *("heartbeat", "timeout", "restart", "spares", "spare_time", "without_spare", "reassign", "least")
        ),
    )
    repair: Repair = field(default_factory=Repair)
    runs: int = 0
    search: bool = False

    def __post_init__(self) -> None:
        problems = []
        if self.search and self.runs < 1:
            problems.append(Problem("a search needs 1 run or more", key="runs", value=str(self.runs)))
        if self.recovery.repair != Recovery().repair:
            message = "Repair(...) says how long a repair takes"
            problems.append(
                Problem(
                    message,
                    key="recovery.repair",
                    value=repr(self.recovery.repair),
                    expected="no repair there, or no Repair(...)",
                )
            )
        if problems:
            raise InputError(problems)

    def run(self, nodes: int, *, work: float = math.inf, horizon: float = math.inf, states: float = 0.0) -> FailingRun:
        """The run on nodes that fail; without an interval, Young's formula gives it.

        Parameters
        ----------
        nodes : int
            Nodes of the job.
        work : float
            Training to be done, in time of all nodes without failures [s].
        horizon : float
            Wall time for which it is watched [s].
        states : float
            Size of a checkpoint where none is given [B].

        Raises
        ------
        InputError
            All that has no meaning; no interval where the formula has none.
        """
        made = FailingRun(
            nodes,
            replace(self.saving, size=self.saving.size or states).checkpoint(),
            self.times.causes(nodes),
            replace(self.recovery, repair=self.repair.times()),
            work=work,
            horizon=horizon,
        )
        if self.saving.interval:
            return made
        pause = made.checkpoint.pause(nodes)
        if not (pause > 0.0 and made.mtbf < math.inf):
            message = "give an interval: Young's formula needs failures and a checkpoint that takes time"
            raise InputError(Problem(message, key="interval"))
        return replace(made, checkpoint=replace(made.checkpoint, interval=young(pause, made.mtbf)))
