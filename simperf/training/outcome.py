"""Metrics that a training run reports: throughput, scaling, waits, memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from simperf.engine.device import Device
from simperf.execution.session import Session
from simperf.time_use import LAUNCH_THREAD_BUSY
from simperf.training.data.group import Group
from simperf.training.replica import Replica

__all__ = ["spread", "step_time", "tell", "tell_cost", "tell_launches", "tell_memory", "tell_use"]


def step_time(replicas: Sequence[Replica], *, period: int = 1) -> float:
    """Time of one step [s]: the mean over all periods after the first, if there are any.

    Parameters
    ----------
    replicas : sequence of Replica
        After the run.
    period : int
        Steps after which everything repeats; what is left over of a whole number of them is not counted.
    """
    ends: list[float] = [0.0, *(max(times) for times in zip(*(replica.ends for replica in replicas), strict=True))]
    steps = len(ends) - 1
    last = steps // period * period or steps
    first = period if last > period else 0
    return (ends[last] - ends[first]) / (last - first)


def spread(replicas: Sequence[Replica], *, period: int = 1) -> float:
    """By how much the periods after the first differ: the longest less the shortest, over the longest [1]."""
    ends: list[float] = [0.0, *(max(times) for times in zip(*(replica.ends for replica in replicas), strict=True))]
    times: list[float] = [after - before for before, after in pairwise(ends[period::period])]
    longest = max(times, default=0.0)
    return (longest - min(times)) / longest if longest else 0.0


def tell(
    m: Session,
    replicas: Sequence[Replica],
    *,
    samples: float,
    alone: float = 0.0,
    group: Group | None = None,
    period: int = 1,
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
    period : int
        Steps after which everything repeats.
    """
    ranks = sum(len(replica.members) for replica in replicas)
    steps = max(len(replica.ends) for replica in replicas)
    time = step_time(replicas, period=period)
    rate = samples / time if time else 0.0
    m.rate("samples per second", samples, time=time)
    m.metric("time per step", time, "s")
    m.metric("GPUs", ranks)
    tell_cost(m, time, rate)
    if alone:
        m.metric("scaling efficiency", rate / (ranks * alone))
    waits = [replica.exposed / steps for replica in replicas]
    m.metric("exposed communication", max(waits), "s")
    m.metric("exposed communication, min over ranks", min(waits), "s")
    tell_use(m, [replica.device for replica in replicas])
    if group is not None and group.moved:
        m.metric("communication per step", group.busy / steps, "s")
        m.metric("payload per step", group.moved / steps, "B")
    tell_memory(m, replicas[0].memory)


def tell_use(m: Session, devices: Sequence[Device]) -> None:
    """Report for which part of the run so far devices were at work: minimum and maximum over ranks."""
    shares = [device.share.floor() / m.now for device in devices if m.now]
    if shares:
        m.metric("device busy, min over ranks", min(shares))
        m.metric("device busy, max over ranks", max(shares))


def tell_launches(m: Session, times: Iterable[float]) -> None:
    """Report for which part of the run so far the rank that does so longest launched kernels.

    Parameters
    ----------
    m : Session
    times : iterable of float
        For how long each rank did [s]; nothing is reported where launches are free.
    """
    longest = max(times)
    if longest:
        m.metric(LAUNCH_THREAD_BUSY, longest / m.now)


def tell_memory(m: Session, memory: Mapping[str, float]) -> None:
    """Report what holds the memory of a device [B]."""
    for name, nbytes in memory.items():
        if nbytes:
            m.metric(f"memory: {name}", nbytes, "B")


def tell_cost(m: Session, time: float, rate: float) -> None:
    """Report what a step and a million samples cost, where every server of the machine has a price.

    The whole machine is paid for, GPUs that do not take part included: servers are rented as they are.

    Parameters
    ----------
    m : Session
    time : float
        Of one step [s].
    rate : float
        Samples a second [1/s].
    """
    price = getattr(m.simulation.machine, "price", None)
    if price is None or not rate:
        return
    a_second = price / 3600
    m.metric("cost per step", a_second * time, "USD")
    m.metric("cost per million samples", a_second * 1e6 / rate, "USD")
