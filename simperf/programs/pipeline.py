"""The input pipeline: storage, decode workers, pinned buffer, copy to the device, step.

"Dive into Deep Learning", sections 12.4.1 and 12.4.3.
"""

from __future__ import annotations

import simpy

from simperf.engine.kernel import Kernel
from simperf.engine.storage import Disk
from simperf.errors import ProgramError
from simperf.execution import Program, compute, copy, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.units import Bytes, Seconds

__all__ = ["input_pipeline"]


@program("input-pipeline")
def input_pipeline(
    m: Session,
    *,
    batches: int = 50,
    batch: int = 256,
    stored: Bytes = 110e3,
    decoded: Bytes = 602112,
    decode: Seconds = 10e-3,
    workers: int = 4,
    prefetch: int = 2,
    step: Seconds = 0.35,
    disk: str = "disk0",
) -> Program:
    """Feed a training loop from a disk through decode workers, and see what it waits for.

    Parameters
    ----------
    batches : int
        mini-batches
    batch : int
        samples of one
    stored : float
        bytes of a sample on the disk
    decoded : float
        bytes of a sample when it is decoded
    decode : float
        time of one core to decode a sample
    workers : int
        decode processes; more than there are cores do not help
    prefetch : int
        decoded mini-batches that each worker may have ready
    step : float
        time of the device for one mini-batch
    disk : str
        storage node that holds the samples
    """
    if workers < 1 or prefetch < 1 or batches < 1:
        raise ProgramError("workers, prefetch and batches must be 1 or more")
    env, gpu, host = m.simulation.env, m.gpu(), m.host
    drive = Disk(env, disk, m.machine.nodes[disk].part, rng=m.rng(disk), recorder=m.simulation.recorder)
    ready = simpy.Store(env)
    places = simpy.Container(env, capacity=workers * prefetch, init=workers * prefetch)
    numbers = iter(range(batches))

    def worker() -> Program:
        for number in numbers:
            yield places.get(1)
            yield drive.read(batch * stored, sequential=True)
            yield compute(batch * decode, "decode")
            yield ready.put(number)

    for index in range(workers):
        m.spawn(worker(), f"worker{index}")
    train = Kernel("step", step, launch=0.0, result=0.0)
    side, waited, steps = gpu.stream(1), 0.0, []
    for number in range(batches):
        asked = m.now
        yield wait(ready.get(), why="wait: data")
        waited += m.now - asked if number else 0.0
        yield places.put(1)
        yield copy(host, gpu, nbytes=batch * decoded, stream=side, name="batch to device")
        yield wait((yield record(side, "batch there")), gpu)
        yield launch(train, gpu)
        steps.append((yield record(gpu, "step done")))
        if number:
            yield wait(steps[number - 1])
    yield synchronize(gpu)
    m.metric("samples per second", batches * batch / m.now, "1/s")
    m.metric("waited for data", waited, "s")
    m.metric("device busy", gpu.share.floor() / m.now, "1")
