"""The driver of training jobs: the same set-up for every strategy, then what the strategy's type simulates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from simperf.execution import Program
from simperf.execution.session import Session
from simperf.training.data.run import ReplicatedRun
from simperf.training.execution_mode import kernel_by_kernel
from simperf.training.fitting import fit_speed
from simperf.training.job import Job
from simperf.training.replica import Dimensions, Traced, faster
from simperf.training.servers.run import ServedRun
from simperf.training.step import ReplicaStep
from simperf.training.strategies import ModelParallel, Servers

__all__ = ["Run", "train"]


class Run(Protocol):
    """A job on a machine, as a strategy simulates it."""

    def steps(self) -> list[ReplicaStep]:
        """The step of each device; devices that do the same share one object."""

    def time_alone(self, step: ReplicaStep) -> float:
        """Time of a step of one device by itself [s]."""

    def paced(self, steps: Sequence[ReplicaStep]) -> list[ReplicaStep]:
        """The steps at the pace that each device keeps among the others."""

    @property
    def machines(self) -> int:
        """Servers of the machine that take part, which fail one by one."""

    @property
    def long_run(self) -> float:
        """Time of the whole run with all its steps, once `play` is over [s]; 0 if nobody asked."""

    def play(self, steps: Sequence[ReplicaStep], nominal: ReplicaStep) -> Program:
        """Simulate the job and report what came of it; `nominal` is the first device's step at its mean speed."""


def train(m: Session, job: Job) -> Program:
    """Simulate a training job and report what came of it.

    Parameters
    ----------
    m : Session
    job : Job

    Raises
    ------
    InputError
        All that has no meaning, or no effect, on this machine.
    DeviceMemoryError
        A device's memory does not hold its part of the training.
    """
    kernel_by_kernel(m)
    if isinstance(job.strategy, ModelParallel):
        from simperf.training.pipelined.run import train_divided

        m.assumed |= _assumed(job)
        yield train_divided(m, job)
        return
    run: Run = ServedRun(m, job) if isinstance(job.strategy, Servers) else ReplicatedRun(m, job)
    steps = run.steps()
    if alone := job.devices.alone:
        speed = fit_speed(steps[0], alone / job.input.counted, run.time_alone)
        m.notes.append(f"kernels at {speed:.3f} times the catalogue's speed, so that one device does {alone:g}/s")
        steps = _each(steps, speed)
    nominal = steps[0]
    m.assumed |= _assumed(job)
    yield run.play(run.paced(steps), nominal)
    if job.failures is not None:
        from simperf.training.failures.history import tell_long_run

        tell_long_run(m, job.failures, nodes=run.machines, work=run.long_run)


def _assumed(job: Job) -> dict[str, str]:
    """Options that the job has as its stack sets them, with their sources."""
    parts: list[Any] = [job.strategy, job.stack.transport, job.stack.serving]
    if isinstance(job.model, Traced):
        parts += [replace(job.stack, optimizer=job.model.optimizer), job.model.model.kernels]
    if isinstance(job.model, Dimensions):
        parts += [replace(job.stack, optimizer=job.model.optimizer), job.model.kernels]
    if isinstance(job.strategy, ModelParallel):
        parts += [job.strategy.messages]
    if isinstance(job.strategy, Servers):
        parts += [job.strategy.consistency, job.strategy.compression, job.strategy.update]
    return {f"{job.stack.name}: {name}": source for name, source in job.stack.in_use(parts).items()}


def _each(steps: Sequence[ReplicaStep], speed: float) -> list[ReplicaStep]:
    """All steps so many times as fast; those that were one object stay one."""
    if speed == 1.0:
        return list(steps)
    different = {id(step): step for step in steps}
    scaled = {key: faster(step, speed) for key, step in different.items()}
    return [scaled[id(step)] for step in steps]
