"""torch.nn.DataParallel: one process, a Python thread a GPU, everything through GPU 0.

Each step scatters the inputs, copies the weights to all GPUs, runs the forward passes in parallel
threads, gathers the outputs on GPU 0 where the loss is, and adds up the gradients on GPU 0, which
alone updates its weights. So GPU 0 holds more and does more, nothing hides the weights and
gradients on their way, and the threads share one interpreter.

Not modelled: the loss as kernels of its own beside those of GPU 0's forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from simperf.engine.host import Host
from simperf.execution import MODES, Program, compute, copy, launch, record, synchronize, wait
from simperf.execution.frontend import Frontend
from simperf.execution.session import Session
from simperf.training.data.group import Group
from simperf.training.data.loading import fetch
from simperf.training.data.peer import to_device
from simperf.training.replica import Replica

__all__ = ["data_parallel", "interpreter"]


def interpreter(m: Session) -> Host:
    """The Python interpreter as threads see it: they take turns in it.

    Of a launch, the share that a script without Python saves (the profile's ``scripted``) holds
    the interpreter's lock; the rest of it runs beside other threads.
    """
    locked = 1.0 - m.profile.scripted
    return Host(m.simulation.env, f"{m.host}/interpreter", 1.0 / locked if locked > 0 else math.inf)


def data_parallel(  # noqa: C901, PLR0912 (reads like the torch program)
    m: Session, replicas: Sequence[Replica], group: Group, *, steps: int, loop: float = 0.0, watched: bool = False
) -> Program:
    """The whole training loop.

    Parameters
    ----------
    m : Session
    replicas : sequence of Replica
        One a GPU; the first is the one that the module lives on.
    group : Group
        Carries the broadcast of weights and the reduction of gradients.
    steps : int
    loop : float
        The process's own work for a batch: the data loader and the Python of the loop [s].
    watched : bool
        Whether the process waits for its devices after every step, as one does that looks at the loss.
    """
    first, *others = replicas
    lock = interpreter(m)
    weights = first.step.nbytes_gradients

    def thread(replica: Replica, number: int) -> Frontend:
        program = _forward(replica)
        return Frontend(m.simulation, program, host=lock, mode=m.mode, profile=m.profile, name=f"thread{number}")

    for _ in range(steps):
        yield compute(loop, "loop")
        yield from fetch(first)  # for X, y in loader:
        for replica in others:
            replica.begin()
        inputs = math.fsum(replica.step.nbytes_input for replica in replicas)
        if inputs:  # X, y = X.to(devices[0]), y.to(devices[0])
            yield copy(first.source, first.device, nbytes=inputs, name="batch to GPU 0")
        for replica in others:  # inputs = scatter(inputs, devices)
            if replica.step.nbytes_input:
                yield from to_device(first.device, replica.device, replica.step.nbytes_input, name="scatter")
        if others:  # replicas = replicate(module, devices)
            yield compute(m.profile.launch * len(first.step.gradients) * len(replicas), "replicate modules")
            for replica in replicas:
                yield launch(group.broadcast(replica, weights), replica.device)
        threads = [thread(replica, number) for number, replica in enumerate(replicas)]
        for one in threads:  # outputs = parallel_apply(replicas, inputs)
            yield wait(one.done, why="wait: threads")
        first.launched_beside += max(one.launch_time for one in threads)
        for replica in others:  # output = gather(outputs, devices[0])
            if replica.step.nbytes_output:
                yield from to_device(replica.device, first.device, replica.step.nbytes_output, name="gather")
        for replica in others:  # l.backward(): the gradient of the output goes back the same way
            if replica.step.nbytes_output:
                yield from to_device(first.device, replica.device, replica.step.nbytes_output, name="scatter gradient")
        engine = [
            m.spawn(_backward(replica), f"autograd{number}", mode=MODES["scripted"])
            for number, replica in enumerate(replicas)
        ]
        for one in engine:
            yield wait(one.done, why="wait: autograd")
        first.launched_beside += max(one.launch_time for one in engine)
        if others:  # gradients of the replicas are added up on GPU 0
            for replica in replicas:
                yield launch(group.reduce(replica, weights), replica.device)
        for kernel in first.step.update:  # optimizer.step()
            yield launch(kernel, first.device)
        done = yield record(first.device, "step done")
        for replica in replicas:
            replica.mark(done)
        if watched:  # loss.item()
            yield synchronize(*(replica.device for replica in replicas))
    yield synchronize(*(replica.device for replica in replicas))


def _forward(replica: Replica) -> Program:
    for kernel in replica.step.forward:
        yield launch(kernel, replica.device)


def _backward(replica: Replica) -> Program:
    for kernel in replica.step.backward:
        yield launch(kernel, replica.device)
