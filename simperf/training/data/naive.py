"""Data parallelism by hand, as taught: one process, parameter by parameter onto GPU 0 and back.

"Dive into Deep Learning", section 12.5: the batch is split, every GPU works on its part, and for each
parameter the gradients are copied to the first GPU, added up there and copied back. One
thread launches everything, so that with small kernels k GPUs cost k times the launches.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from simperf.execution import Program, compute, launch, record, synchronize
from simperf.execution.session import Session
from simperf.training.data.loading import load
from simperf.training.data.peer import WIDTH, add, addition, to_device
from simperf.training.replica import Replica
from simperf.workload import make_op

__all__ = ["naive"]


def naive(
    m: Session, replicas: Sequence[Replica], *, steps: int, loop: float = 0.0, synchronous: bool = True
) -> Program:
    """The whole training loop.

    Parameters
    ----------
    m : Session
    replicas : sequence of Replica
        One a GPU.
    steps : int
    loop : float
        The process's own work for a batch: the data loader and the Python of the loop [s].
    synchronous : bool
        Whether the loop waits for all GPUs after each batch, as the chapter's does.
    """
    first, *others = replicas
    for replica in others:  # the batch lies where the one process is
        replica.source = first.source
    for _ in range(steps):
        yield compute(loop, "loop")
        for replica in replicas:  # X_shards, y_shards = split_batch(X, y, devices)
            yield from load(m, replica)
        for replica in replicas:  # ls = [loss(lenet(x, params), y) for x, y, params in ...]
            for kernel in replica.step.forward:
                yield launch(kernel, replica.device)
        for replica in replicas:  # for l in ls: l.backward()
            for kernel in replica.step.backward:
                yield launch(kernel, replica.device)
        begun = []
        for replica in replicas:
            begun.append((yield record(replica.device, "backward done")))
        for gradient in reversed(first.step.gradients):  # allreduce([params[c][i].grad for c in range(k)])
            for replica in others:
                yield from to_device(replica.device, first.device, gradient.nbytes, name=f"{gradient.name} to GPU 0")
                yield from add(m, first.device, gradient.nbytes)
            for replica in others:
                yield from to_device(first.device, replica.device, gradient.nbytes, name=f"{gradient.name} back")
        for replica, since in zip(replicas, begun, strict=True):
            adding = _adding(m, first) * len(others) if replica is first else 0.0
            replica.exchange(since, (yield record(replica.device, "gradients there")), work=adding)
        for replica in replicas:  # sgd(params, lr, batch_size)
            yield from _sgd(m, replica)
            replica.mark((yield record(replica.device, "step done")))
        if synchronous:
            yield synchronize(*(replica.device for replica in replicas))
    yield synchronize(*(replica.device for replica in replicas))


def _adding(m: Session, replica: Replica) -> float:
    """Time of adding one other GPU's gradients [s]."""
    if replica.device.part is None:
        return 0.0
    cost = m.model(replica.device).cost
    return sum(cost(addition(gradient.nbytes)).time for gradient in replica.step.gradients)


def _sgd(m: Session, replica: Replica) -> Generator[Any, Any, None]:
    """``param -= lr * param.grad / batch_size`` for one parameter after another: three small kernels each."""
    if not replica.step.update or replica.device.part is None:
        return
    for gradient in reversed(replica.step.gradients):
        elements = max(1, round(gradient.nbytes / WIDTH))
        for kind in ("mul", "div"):
            op = make_op({"op": kind, "elements": elements, "scalar": True})
            yield launch(m.kernel(op, replica.device), replica.device)
        yield launch(m.kernel(make_op({"op": "sub", "elements": elements}), replica.device), replica.device)
