"""DistributedDataParallel: a process a GPU, gradients added up in buckets while backward continues.

Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.

Not modelled: the search for unused parameters, and buffers that are broadcast before each step.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from simperf.engine.kernel import Kernel
from simperf.execution import Program, compute, launch, record, synchronize
from simperf.execution.session import Session
from simperf.training.data.buckets import Bucket
from simperf.training.data.exchange import COMMUNICATION, backward
from simperf.training.data.group import CollectiveHold, Group
from simperf.training.data.loading import load
from simperf.training.data.reads import NO_READS, HostReads
from simperf.training.replica import Replica
from simperf.workload import Op

__all__ = ["ddp"]


def ddp(
    m: Session,
    replica: Replica,
    group: Group,
    *,
    steps: int,
    buckets: Sequence[Bucket],
    accumulate: int = 1,
    broadcast: bool = False,
    bucket_view: bool = True,
    loop: float = 0.0,
    reads: HostReads = NO_READS,
) -> Program:
    """One rank's process.

    Parameters
    ----------
    m : Session
    replica : Replica
        The rank.
    group : Group
        All ranks.
    steps : int
        Steps of the optimizer.
    buckets : sequence of Bucket
        From `simperf.training.data.buckets.assign_buckets`.
    accumulate : int
        Micro-batches a step; all but the last run under ``no_sync``.
    broadcast : bool
        Whether the weights of rank 0 are given to all at the start, as the constructor does.
    bucket_view : bool
        Whether gradients lie in their buckets; otherwise a kernel a gradient copies it there, divided by the number
        of ranks, when it is ready, and another one copies the sum back (``gradient_as_bucket_view=False``).
    loop : float
        The process's own work for a batch: the data loader and the Python of the loop [s].
    reads : HostReads
        Results of the device that the process waits for.
    """
    gpu = replica.device
    copies = _copies(m, replica, buckets) if not bucket_view else {}
    if broadcast:  # net = DistributedDataParallel(net)
        weights = group.broadcast(replica, replica.step.nbytes_gradients)
        yield launch(weights, gpu.stream(COMMUNICATION))
        yield launch(CollectiveHold(weights), gpu)
    for _ in range(steps):
        for turn in range(accumulate):
            yield compute(loop, "loop")
            yield from load(m, replica)  # x = x.to(gpu, non_blocking=True)
            yield from reads.before_forward(m, replica)
            for kernel in replica.step.forward:  # l = loss(net(x), y)
                yield launch(kernel, gpu)
            yield from reads.before_backward(replica)
            if turn < accumulate - 1:  # with net.no_sync(): l.backward()
                yield from backward(replica, group, ())
        works = yield from backward(replica, group, buckets, copies=copies)  # l.backward()
        for work in works:
            yield launch(CollectiveHold(work), gpu)
        for one in itertools.chain.from_iterable(copies.values()):  # grad.copy_(bucket)
            yield launch(one, gpu)
        yield from reads.before_update(m, replica)
        for kernel in replica.step.update:  # optimizer.step()
            yield launch(kernel, gpu)
        replica.mark((yield record(gpu, "step done")))
        yield from reads.after_step(replica)
    yield synchronize(gpu)


def _copies(m: Session, replica: Replica, buckets: Sequence[Bucket]) -> dict[int, list[Kernel]]:
    """Kernels that copy gradients, by the backward kernel after which they can; none without a catalogued device."""
    kernels: dict[int, list[Kernel]] = {}
    if replica.device.part is None:
        return kernels
    for bucket in buckets:
        for one in bucket.gradients:
            op = Op("bucket copy", "copy", nbytes_read=one.nbytes, nbytes_written=one.nbytes)
            kernels.setdefault(one.ready, []).append(m.kernel(op, replica.device))
    return kernels
