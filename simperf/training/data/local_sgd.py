"""Local SGD: every replica trains by itself and the weights are averaged now and then.

Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019; ``post_localSGD`` of PyTorch.
What it does to convergence is not modelled.
"""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.execution import Program, compute, launch, record, synchronize
from simperf.execution.session import Session
from simperf.training.data.exchange import exchange
from simperf.training.data.group import Group
from simperf.training.data.loading import load
from simperf.training.replica import Replica

__all__ = ["local_sgd"]


def local_sgd(
    m: Session,
    replica: Replica,
    group: Group,
    *,
    steps: int,
    every: int,
    accumulate: int = 1,
    loop: float = 0.0,
    watched: bool = False,
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
    every : int
        Steps from one averaging of the weights to the next.
    accumulate : int
        Micro-batches a step.
    loop : float
        The process's own work for a batch [s].
    watched : bool
        Whether the process waits for its device after every step, as one does that looks at the loss.

    Raises
    ------
    InputError
        `every` is below 1.
    """
    if every < 1:
        raise InputError(
            Problem(
                "weights are averaged every step or less often", key="every", value=str(every), expected="1 or more"
            )
        )
    gpu, nbytes = replica.device, replica.step.nbytes_gradients
    for number in range(1, steps + 1):
        for _ in range(accumulate):
            yield compute(loop, "loop")
            yield from load(m, replica)  # x = x.to(gpu, non_blocking=True)
            for kernel in (*replica.step.forward, *replica.step.backward):
                yield launch(kernel, gpu)
        for kernel in replica.step.update:  # optimizer.step()
            yield launch(kernel, gpu)
        if number % every == 0:  # for weight in net.parameters(): all_reduce(weight / size)
            yield from exchange(replica, group.all_reduce(replica, nbytes), "weights ready")
        replica.mark((yield record(gpu, "step done")))
        if watched:  # loss.item()
            yield synchronize(gpu)
    yield synchronize(gpu)
