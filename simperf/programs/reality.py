"""Long jobs among failures: goodput, and where the rest of the time goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from simperf.engine.recorder import Category
from simperf.errors import InputError, Problem
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import Unless, program
from simperf.programs.unused import refuse_unused
from simperf.training.failures.causes import Cause, at_times
from simperf.training.failures.checkpoint import Checkpoint, daly, young
from simperf.training.failures.goodput import goodput, new_life
from simperf.training.failures.interval import best_interval
from simperf.training.failures.life import PARTS, Part
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import distribution
from simperf.units import Bytes, BytesPerSecond, Ratio, Seconds

__all__ = ["failing_job"]

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


@program("failing-job", rules=_rules)
def failing_job(
    m: Session,
    *,
    nodes: int = 16,
    duration: Seconds = 0.0,
    work: Seconds = 0.0,
    node_mtbf: Seconds = 0.0,
    cluster_mtbf: Seconds = 0.0,
    counts: dict[str, int] = {},
    observed: Seconds = 0.0,
    in_place: list[str] = [],
    planned: list[str] = [],
    law: Literal["exponential", "weibull", "constant"] = "exponential",
    shape: Ratio = 0.7,
    fails_at: list[Seconds] = [],
    interval: Seconds = 0.0,
    size: Bytes = 0.0,
    storage: BytesPerSecond = 0.0,
    per_node: bool = False,
    asynchronous: bool = False,
    to_host: BytesPerSecond = 0.0,
    latency: Seconds = 0.0,
    heartbeat: Seconds = 0.0,
    timeout: Seconds = 0.0,
    restart: Seconds = 0.0,
    spares: int = 0,
    spare_time: Seconds = 0.0,
    without_spare: Literal["wait", "shrink"] = "wait",
    reassign: Seconds = 0.0,
    least: int = 1,
    repair: Seconds = 86400.0,
    repair_law: Literal["constant", "exponential", "lognormal"] = "constant",
    runs: int = 0,
    search: bool = False,
) -> Program:
    """Play a long job among failures: goodput, and where the rest of the time goes.

    Parameters
    ----------
    nodes : int
        nodes of the job
    duration : float
        wall time for which the job is watched
    work : float
        training to be done instead, in time of all nodes without failures
    node_mtbf : float
        mean time between failures of one node, which then has to be replaced
    cluster_mtbf : float
        mean time between failures of the job that need no new node
    counts : table
        failures by cause that a job on as many nodes met in the time `observed`
    observed : float
        time in which the counts were taken
    in_place : list of str
        causes of the counts after which the job restarts on the same nodes
    planned : list of str
        causes of the counts that are announced: a checkpoint is taken before them
    law : str
        of the times between failures
    shape : float
        of the Weibull law
    fails_at : list of float
        node 0, 1, ... fails at these times instead of random ones
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
    heartbeat : float
        time between two signs of life
    timeout : float
        silence after which a node is given up
    restart : float
        from the decision to the first step, without reading the checkpoint
    spares : int
        nodes that stand by
    spare_time : float
        until a spare can take part: 0 if it is hot
    without_spare : str
        wait for a repaired node, or shrink
    reassign : float
        to spread the work over another number of nodes
    least : int
        nodes below which a job that shrinks waits all the same
    repair : float
        mean time until a broken node is back
    repair_law : str
        of the times of repair
    runs : int
        further histories for the distribution of goodput
    search : bool
        search the best interval, with as many histories as `runs`
    """
    refuse_unused("failing-job", locals())
    causes = _causes(nodes, node_mtbf, cluster_mtbf, counts, observed, in_place, planned, law, shape)
    inf = float("inf")
    checkpoint = Checkpoint(
        interval or 1.0,
        nbytes=size,
        bandwidth=storage or inf,
        per_node=per_node,
        asynchronous=asynchronous,
        host_bandwidth=to_host or inf,
        latency=latency,
    )
    recovery = Recovery(
        heartbeat,
        timeout,
        restart,
        spares,
        spare_time,
        without_spare,
        reassign,
        least,
        distribution(repair_law, mean=repair, cv=1.0),
    )
    job = FailingRun(nodes, checkpoint, causes, recovery, work=work or inf, horizon=duration or inf)
    pause = checkpoint.pause(nodes)
    formulae = pause > 0.0 and job.mtbf < inf
    if not interval:
        if not formulae:
            message = "give an interval: Young's formula needs failures and a checkpoint that takes time"
            raise InputError(Problem(message, key="interval"))
        job = replace(job, checkpoint=replace(checkpoint, interval=young(pause, job.mtbf)))
    if search and runs < 1:
        raise InputError(Problem("a search needs 1 run or more", key="runs", value=str(runs)))
    given = at_times([(time, index % nodes) for index, time in enumerate(fails_at)]) if fails_at else None
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
    if search:
        best = best_interval(job, seed=m.simulation.seed, runs=runs)
        m.metric("best interval", best.interval, "s")
        m.metric("best goodput", best.goodput)
        m.notes.append(f"within 0.1 % of the best goodput: every {best.flat[0]:.0f} to {best.flat[1]:.0f} s")


def _causes(
    nodes: int,
    node_mtbf: float,
    cluster_mtbf: float,
    counts: dict[str, int],
    observed: float,
    in_place: list[str],
    planned: list[str],
    law: str,
    shape: float,
) -> tuple[Cause, ...]:
    """Causes as a scenario says them."""
    if counts and not observed > 0:
        raise InputError(Problem("counts need the time in which they were taken", key="observed"))
    strangers = [name for name in (*in_place, *planned) if name not in counts]
    if strangers:
        message = f"no such cause among the counts: {', '.join(strangers)}"
        raise InputError(Problem(message, key="in_place", expected=", ".join(counts)))
    found = []
    if node_mtbf:
        found.append(Cause("node", distribution(law, mean=node_mtbf, shape=shape)))
    if cluster_mtbf:
        found.append(Cause("cluster", distribution(law, mean=cluster_mtbf, shape=shape), "cluster", loses_node=False))
    for name, count in counts.items():
        if count and (name in in_place or name in planned):
            mean = distribution(law, mean=observed / count, shape=shape)
            found.append(Cause(name, mean, "cluster", loses_node=False, planned=name in planned))
        elif count:
            found.append(Cause(name, distribution(law, mean=observed * nodes / count, shape=shape)))
    return tuple(found)
