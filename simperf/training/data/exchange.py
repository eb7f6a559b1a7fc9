"""Collectives that a rank starts from its own work: beside what follows, or before it.

A rank's collectives run on a stream of their own, one at a time and in order, each as soon as the device has done what
was launched before it. What is launched afterwards runs beside them, unless it waits.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from simperf.engine.kernel import Kernel
from simperf.execution import launch, record, wait
from simperf.training.data.buckets import Bucket
from simperf.training.data.group import CollectiveHold, Group, ReplicaWork
from simperf.training.replica import Replica

__all__ = ["COMMUNICATION", "backward", "begin", "exchange"]

#: stream on which a rank's collectives run, one at a time and in order
COMMUNICATION = 1


def begin(replica: Replica, work: ReplicaWork, why: str, *, turn: int = 0) -> Generator[Any, Any, None]:
    """Start a collective when the device has done what is launched so far, beside all that follows.

    Parameters
    ----------
    replica : Replica
    work : ReplicaWork
        From the replica's `Group`.
    why : str
        What it waits for, for the timeline.
    turn : int
        Collectives that the rank began before; those of a library with several threads take streams in turn.
    """
    side = replica.device.stream(COMMUNICATION + turn % work.group.threads)
    yield wait((yield record(replica.device, why)), side)
    yield launch(work, side)


def exchange(replica: Replica, work: ReplicaWork, why: str) -> Generator[Any, Any, None]:
    """Do a collective between what is launched so far and all that follows; nothing hides it."""
    yield from begin(replica, work, why)
    yield launch(CollectiveHold(work), replica.device)


def backward(
    replica: Replica,
    group: Group,
    buckets: Sequence[Bucket],
    *,
    copies: Mapping[int, Sequence[Kernel]] | None = None,
    part: slice = slice(None),
) -> Generator[Any, Any, list[ReplicaWork]]:
    """``l.backward()`` with the hooks of DistributedDataParallel: a bucket's last gradient starts its all-reduce.

    Parameters
    ----------
    replica : Replica
    group : Group
    buckets : sequence of Bucket
        None under ``no_sync``.
    copies : mapping of int to sequence of Kernel, optional
        What is launched after a kernel of the backward pass, by the kernel's index.
    part : slice
        Of the backward pass, if something comes in between.

    Returns
    -------
    list of ReplicaWork
        What has to be waited for before the update.
    """
    copies, works = copies or {}, list[ReplicaWork]()
    closed: dict[int, list[Bucket]] = {}
    for bucket in buckets:
        closed.setdefault(bucket.ready, []).append(bucket)
    for index in range(*part.indices(len(replica.step.backward))):
        yield launch(replica.step.backward[index], replica.device)
        for kernel in copies.get(index, ()):
            yield launch(kernel, replica.device)
        for bucket in closed.get(index, ()):
            works.append(group.all_reduce(replica, bucket.nbytes))
            yield from begin(replica, works[-1], "bucket ready", turn=len(works) - 1)
    return works
