"""What a training run says about itself: throughput, scaling, waits, memory."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.execution.session import Session
from simperf.training.group import Group
from simperf.training.replica import Replica

__all__ = ["step_time", "tell"]


def step_time(replicas: Sequence[Replica]) -> float:
    """Time of one step [s]: the mean of those after the first, if there are any."""
    ends = [max(times) for times in zip(*(replica.ends for replica in replicas), strict=True)]
    if len(ends) == 1:
        return float(ends[0])
    return float(ends[-1] - ends[0]) / (len(ends) - 1)


def tell(
    m: Session, replicas: Sequence[Replica], *, samples: float, alone: float = 0.0, group: Group | None = None
) -> None:
    """Report the metrics that every strategy has.

    Parameters
    ----------
    m : Session
    replicas : sequence of Replica
        After the run.
    samples : float
        Samples of one step on all ranks.
    alone : float
        Samples a second of one device by itself [1/s]; 0 if there is nothing to compare with.
    group : Group, optional
        Whose collectives they did.
    """
    ranks = sum(len(replica.members) for replica in replicas)
    steps = max(len(replica.ends) for replica in replicas)
    time = step_time(replicas)
    rate = samples / time if time else 0.0
    m.metric("samples per second", rate, "1/s")
    m.metric("time per step", time, "s")
    m.metric("GPUs", ranks)
    if alone:
        m.metric("scaling efficiency", rate / (ranks * alone))
    waits = [replica.exposed / steps for replica in replicas]
    m.metric("exposed communication", max(waits), "s")
    m.metric("exposed communication, least", min(waits), "s")
    shares = [replica.device.share.floor() / m.now for replica in replicas if m.now]
    if shares:
        m.metric("device busy, least", min(shares))
        m.metric("device busy, most", max(shares))
    if group is not None and group.moved:
        m.metric("communication per step", group.busy / steps, "s")
        m.metric("payload per step", group.moved / steps, "B")
    for name, nbytes in replicas[0].memory.items():
        if nbytes:
            m.metric(f"memory: {name}", nbytes, "B")
