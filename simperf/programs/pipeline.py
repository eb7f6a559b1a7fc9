"""The input pipeline: storage, decode workers, pinned buffer, copy to the device, step.

"Dive into Deep Learning", sections 12.4.1 and 12.4.3.
"""

from __future__ import annotations

from simperf.engine.kernel import Kernel
from simperf.errors import ProgramError
from simperf.execution import Program, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.programs.unused import deviates, refuse_unused
from simperf.training.input import InputPipeline, Samples
from simperf.training.jitter import Family, distribution
from simperf.units import Bytes, Ratio, Seconds

__all__ = ["input_pipeline"]


@program("input-pipeline", rules=lambda given: [deviates(given, "decode_jitter", "decode_cv")])
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
    decode_jitter: Family = "constant",
    decode_cv: Ratio = 0.1,
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
    decode_jitter : str
        how the time to decode a mini-batch varies, each worker's by itself
    decode_cv : float
        standard deviation of that time over its mean
    disk : str
        storage node that holds the samples
    """
    if batches < 1:
        raise ProgramError("batches must be 1 or more")
    refuse_unused("input-pipeline", locals())
    gpu, steps = m.gpu(), []
    samples = Samples(batch, stored, decoded, decode, distribution(decode_jitter, cv=decode_cv))
    pipeline = InputPipeline(m, samples, workers=workers, prefetch=prefetch, disk=disk, batches=batches)
    train, side = Kernel("step", step, launch=0.0, result=0.0), gpu.stream(1)
    for number in range(batches):
        yield from pipeline.load(gpu, side)
        yield launch(train, gpu)
        steps.append((yield record(gpu, "step done")))
        if number:
            yield wait(steps[number - 1])
    yield synchronize(gpu)
    m.work("samples", batches * batch)
    m.rate("samples per second", batches * batch)
    m.metric("waited for data", pipeline.waited, "s")
    m.metric("starved steps", pipeline.starved / batches)
    m.rate("device busy", gpu.share.floor(), "1")
