"""Long jobs among failures: goodput, and where the rest of the time goes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from simperf.engine.recorder import Category
from simperf.errors import InputError, Problem
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.fields import keys
from simperf.programs.parameters import Unless
from simperf.programs.registry import program
from simperf.training.failures.causes import Cause, at_times
from simperf.training.failures.checkpoint import Checkpoint, daly, young
from simperf.training.failures.goodput import goodput, new_life
from simperf.training.failures.interval import best_interval
from simperf.training.failures.life import PARTS, Part
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Distribution, distribution
from simperf.units import Bytes, BytesPerSecond, Ratio, Seconds

__all__ = ["FailingJob", "FailureTimes", "Repair", "Saving", "failing_job"]

_SHOWN: dict[Part, Category] = {
    "useful": "compute",
    "checkpoint": "storage",
    "detection": "wait",
    "repair": "wait",
    "restart": "overhead",
    "reassignment": "communication",
}


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    weibull, shrinks = given["law"] == "weibull", given["without_spare"] == "shrink"
    writing = "training stops until all is written"
    return (
        Unless(weibull, ("shape",), "only Weibull's law has a shape", 'law = "weibull"'),
        Unless(bool(given["counts"]), ("observed",), "nothing was counted", "counts"),
        Unless(bool(given["size"]), ("storage", "per_node"), "a state of no size takes no time to save", "size"),
        Unless(given["asynchronous"], ("to_host",), writing, "asynchronous = true"),
        Unless(shrinks, ("least",), "the job does not shrink", 'without_spare = "shrink"'),
    )


@dataclass(frozen=True, slots=True)
class FailureTimes:
    """What fails, and how often.

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
        state of the whole job
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
    storage: BytesPerSecond = 0.0
    per_node: bool = False
    asynchronous: bool = False
    to_host: BytesPerSecond = 0.0
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
class FailingJob:
    """A long job among failures.

    Parameters
    ----------
    nodes : int
        nodes of the job
    duration : float
        wall time for which the job is watched
    work : float
        training to be done instead, in time of all nodes without failures
    failures : FailureTimes
        what fails
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
    """

    nodes: int = 16
    duration: Seconds = 0.0
    work: Seconds = 0.0
    failures: FailureTimes = field(default_factory=FailureTimes)
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

    def run(self) -> FailingRun:
        """The run on nodes that fail."""
        return FailingRun(
            self.nodes,
            self.saving.checkpoint(),
            self.failures.causes(self.nodes),
            replace(self.recovery, repair=self.repair.times()),
            work=self.work or math.inf,
            horizon=self.duration or math.inf,
        )


@program("failing-job", rules=_rules)
def failing_job(m: Session, options: FailingJob) -> Program:
    """Play a long job among failures: goodput, and where the rest of the time goes."""
    job, runs = options.run(), options.runs
    pause = job.checkpoint.pause(job.nodes)
    formulae = pause > 0.0 and job.mtbf < math.inf
    if not options.saving.interval:
        if not formulae:
            message = "give an interval: Young's formula needs failures and a checkpoint that takes time"
            raise InputError(Problem(message, key="interval"))
        job = replace(job, checkpoint=replace(job.checkpoint, interval=young(pause, job.mtbf)))
    if options.search and runs < 1:
        raise InputError(Problem("a search needs 1 run or more", key="runs", value=str(runs)))
    given = at_times([(time, i % job.nodes) for i, time in enumerate(options.fails_at)]) if options.fails_at else None
    life = new_life(job, m.rng, trace=given, detailed=m.simulation.recorder is not None)
    for phase in life.phases():
        if phase.end > m.now:
            yield m.simulation.env.timeout(phase.end - m.now)
        name = "training" if phase.part == "useful" else phase.part
        m.show(f"job/{name}", name, phase.start, _SHOWN[phase.part])
    if life.now > m.now:
        yield m.simulation.env.timeout(life.now - m.now)
    m.work("training without failures", life.ledger["useful"], "s")
    m.metric("goodput", life.ledger["useful"] / life.now)
    for part in PARTS:
        m.metric(f"{part} time", life.ledger[part], "s")
    m.metric("interruptions", sum(life.interruptions.values()))
    m.metric("checkpoints", life.checkpoints)
    m.metric("checkpoint interval", job.checkpoint.interval, "s")
    m.metric("checkpoint pause", pause, "s")
    if formulae and not given:
        m.metric("mean time between failures", job.mtbf, "s")
        m.metric("interval by Young", young(pause, job.mtbf), "s")
        m.metric("interval by Daly", daly(pause, job.mtbf), "s")
    if runs:
        many = goodput(job, m.rng, runs=runs, first=1)
        m.metric("mean goodput", many.mean)
        m.metric("mean interruptions", sum(sum(run.interruptions.values()) for run in many.runs) / runs)
        m.metric("goodput of the worst tenth", many.quantile(0.1))
        m.metric("goodput of the best tenth", many.quantile(0.9))
        for part, share in many.parts().items():
            m.metric(f"mean share: {part}", share)
    if options.search:
        best = best_interval(job, seed=m.simulation.seed, runs=runs)
        m.metric("best interval", best.interval, "s")
        m.metric("best goodput", best.goodput)
        m.notes.append(f"within 0.1 % of the best goodput: every {best.flat[0]:.0f} to {best.flat[1]:.0f} s")
