"""The input pipeline: storage, decode workers, pinned buffer, copy to the device, step.

"Dive into Deep Learning", sections 12.4.1 and 12.4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simperf.engine.kernel import Kernel
from simperf.errors import ProgramError
from simperf.execution import Program, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.programs.rules import deviates
from simperf.training.input import DataLoading
from simperf.training.jitter import Family, distribution
from simperf.units import Ratio, Seconds

__all__ = ["FedTraining", "input_pipeline"]


@dataclass(frozen=True, slots=True)
class FedTraining:
    """A training loop that is fed from a disk.

    Parameters
    ----------
    batches : int
        mini-batches
    batch : int
        samples of one
    loading : DataLoading
        the samples, and how they are loaded
    workers : int
        decode processes; more than there are cores do not help
    step : float
        time of the device for one mini-batch
    decode_jitter : str
        how the time to decode a mini-batch varies, each worker's by itself
    decode_cv : float
        standard deviation of that time over its mean
    """

    batches: int = 50
    batch: int = 256
    loading: DataLoading = field(default_factory=DataLoading)
    workers: int = 4
    step: Seconds = 0.35
    decode_jitter: Family = "constant"
    decode_cv: Ratio = 0.1


@program(
    "input-pipeline",
    rules=lambda given: [deviates(given, "decode_jitter", "decode_cv")],
    events=lambda given: 8.0 * given["batches"] + 2.0 * given["workers"],
)
def input_pipeline(m: Session, options: FedTraining) -> Program:
    """Feed a training loop from a disk through decode workers, and see what it waits for."""
    if options.batches < 1:
        raise ProgramError("batches must be 1 or more")
    gpu, steps = m.gpu(), []
    batches, batch, jitter = options.batches, options.batch, distribution(options.decode_jitter, cv=options.decode_cv)
    pipeline = options.loading.pipeline(m, batch, options.workers, jitter=jitter, batches=batches)
    train, side = Kernel("step", options.step, launch=0.0, result=0.0), gpu.stream(1)
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
