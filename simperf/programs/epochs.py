"""Whole epochs, and the checkpoints of one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.execution import Program, copy, launch, record, synchronize, wait
from simperf.execution.drives import find_disk
from simperf.execution.session import Session
from simperf.programs.parameters import Unless
from simperf.programs.registry import program
from simperf.programs.rules import deviates
from simperf.training.input import DataLoading, open_disk
from simperf.training.jitter import Family, distribution, scaled, stream
from simperf.training.steady import Steady, long_run
from simperf.units import Bytes, Ratio, Seconds

__all__ = ["Epoch", "checkpointed_training", "epoch"]


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    loading = ("prefetch", "stored", "decoded", "decode")
    inside = "without workers the data lie in device memory"
    return deviates(given), Unless(given["workers"] > 0, loading, inside, "workers = 1 or more")


def _epoch_events(given: Mapping[str, Any]) -> float:
    """About how many events an epoch is: with jitter all steps are simulated, without it those until they repeat."""
    steps = given["samples"] / max(given["batch"], 1)
    played = steps if given["jitter"] != "constant" else min(steps, given["settle"])
    return float(2.0 * played + 4.0 * given["workers"])


@dataclass(frozen=True, slots=True)
class Epoch:
    """A pass through a data set.

    Parameters
    ----------
    samples : int
        of the data set; the last, smaller mini-batch is dropped
    batch : int
        samples of one mini-batch
    step : float
        time of the device for one mini-batch
    jitter : str
        how the time of a step varies from one to the next; with any jitter all steps are simulated
    cv : float
        standard deviation of the step time over its mean
    workers : int
        decode processes of the input pipeline; 0 has the data in device memory
    loading : DataLoading
        the samples, and how they are loaded
    settle : int
        steps that are simulated in any case

    Raises
    ------
    InputError
        Fewer samples than a mini-batch has.
    """

    samples: int = 1_281_167
    batch: int = 256
    step: Seconds = 0.35
    jitter: Family = "constant"
    cv: Ratio = 0.05
    workers: int = 0
    loading: DataLoading = field(default_factory=DataLoading)
    settle: int = 8

    def __post_init__(self) -> None:
        if self.batch < 1 or self.samples < self.batch:
            message = f"{self.samples} samples make no mini-batch of {self.batch}"
            raise InputError(
                Problem(
                    message,
                    key="batch",
                    value=str(self.batch),
                    expected="a batch of 1 or more samples, at most as many as there are",
                )
            )


@program("epoch", rules=_rules, events=_epoch_events)
def epoch(m: Session, options: Epoch) -> Program:
    """Train an epoch: as many steps as it takes until they repeat, the rest as their continuation."""
    gpu, batch, workers = m.gpu(), options.batch, options.workers
    steps = options.samples // batch
    factors = stream(distribution(options.jitter, cv=options.cv), m.rng("jitter"))
    kernel, side = Kernel("step", options.step, launch=0.0, result=0.0), gpu.stream(1)
    pipeline, done = options.loading.pipeline(m, batch, workers) if workers else None, []

    def one(number: int) -> Program:
        if pipeline is not None:
            yield from pipeline.load(gpu, side)
        yield launch(scaled(kernel, next(factors)), gpu)
        done.append((yield record(gpu, "step done")))
        if len(done) > 1:  # the next mini-batch is on its way while this step runs
            yield wait(done.pop(0))

    if pipeline is None and m.simulation.machine is not None and options.loading.disk != DataLoading().disk:
        open_disk(m, options.loading.disk)
    fill = (lambda: pipeline.fill) if pipeline is not None else None
    run = yield from long_run(m, one, steps, state=fill, watch=Steady(settle=options.settle))
    drained = m.now
    yield synchronize(gpu)
    time = run.time + m.now - drained
    m.work("samples", run.simulated * batch)
    m.metric("epoch time", time, "s")
    m.rate("samples per second", run.steps * batch, time=time)
    m.metric("simulated steps", run.simulated)
    m.metric("extrapolated steps", run.extrapolated)
    m.metric("period", run.period)
    if pipeline is not None:
        m.metric("starved steps", pipeline.starved / run.simulated)
    m.notes.append(f"{run.reason}; the timeline shows the simulated steps only")


@program("checkpointed-training", events=lambda given: 2.0 * given["steps"])
def checkpointed_training(
    m: Session,
    *,
    steps: int = 100,
    step: Seconds = 0.1,
    every: int = 20,
    size: Bytes = 4e9,
    asynchronous: bool = False,
    disk: str = "disk0",
) -> Program:
    """Save a device's state through the host to a disk, while training stops or continues.

    Parameters
    ----------
    steps : int
        steps of training
    step : float
        time of the device for one step
    every : int
        steps between two checkpoints
    size : float
        weights and states of the optimizer
    asynchronous : bool
        training stops for the copy to the host only; the write continues beside it
    disk : str
        storage node that the checkpoint goes to
    """
    if steps < 1:
        raise InputError(Problem("one step or more is expected", key="steps", value=str(steps)))
    if not 1 <= every <= steps:
        expected = f"1 to {steps}, the steps of the run"
        raise InputError(Problem("no such step has a checkpoint", key="every", value=str(every), expected=expected))
    drive, gpu = find_disk(m, disk), m.gpu()
    kernel, writing, stopped, saved = Kernel("step", step, launch=0.0, result=0.0), None, 0.0, 0

    def write() -> Program:
        yield drive.write(size, sequential=True)

    for number in range(1, steps + 1):
        yield launch(kernel, gpu)
        if number % every or number == steps:
            continue
        yield synchronize(gpu)
        started = m.now
        if writing is not None:  # the host's buffer is in use until the write before is over
            yield wait(writing, why="wait: last checkpoint")
        yield copy(gpu, m.host, nbytes=size, name="state to host")
        yield synchronize(gpu)
        thread = m.spawn(write(), f"checkpoint{saved}")
        if asynchronous:
            writing = thread.done
        else:
            yield wait(thread.done, why="wait: checkpoint")
        stopped, saved = stopped + m.now - started, saved + 1
    yield synchronize(gpu)
    if writing is not None:
        yield wait(writing, why="wait: last checkpoint")
    m.work("steps", steps)
    m.metric("checkpoints", saved)
    m.metric("training stopped", stopped, "s")
    m.metric("stopped for one checkpoint", stopped / saved if saved else 0.0, "s")
