"""Metrics of a run of a divided model: throughput, use of the arithmetic, and each stage's time by kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simperf.execution.session import Session
from simperf.layout.layout import DIMENSION_WORDS
from simperf.memory import DRIVER, StageMemory
from simperf.training.job import Job
from simperf.training.outcome import tell_cost, tell_use
from simperf.training.pipelined.play import Pipeline
from simperf.training.pipelined.stage import StageProcess
from simperf.training.pipelined.stage_time import Reading
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel, Strategy
from simperf.units import format_quantity
from simperf.workload.mixed import training_precision
from simperf.workload.transformers.flops import again_flops, tuning_flops

__all__ = ["tell"]

#: part of a time within which ranks take as long
_ALIKE = 1e-9
#: what ranks wait for, by the words that metrics have
_WORDS = {**DIMENSION_WORDS, "norm": "norm", "host": "host"}


def tell(
    m: Session,
    job: Job,
    pipeline: Pipeline,
    processes: Sequence[StageProcess],
    memory: Sequence[StageMemory],
) -> None:
    """Report the metrics of a run.

    Parameters
    ----------
    m : Session
    job : Job
    pipeline : Pipeline
    processes : sequence of StageProcess
        After the run.
    memory : sequence of StageMemory
        Of each stage.
    """
    model, ranks = job.model, pipeline.layout.ranks
    assert isinstance(model, Dimensions)
    ends = [0.0, *(max(one.spent.readings[step].time for one in processes) for step in range(job.steps))]
    first = 1 if job.steps > 1 else 0
    time = (ends[-1] - ends[first]) / (job.steps - first)
    rate = job.batch / time if time else 0.0
    tokens = job.batch * model.model.sequence
    m.metric("time per step", time, "s")
    m.rate("tokens per second", tokens, time=time)
    m.rate("tokens per second per GPU", tokens / ranks, time=time)
    m.rate("samples per second", job.batch, time=time)
    m.metric("GPUs", ranks)
    flops = tuning_flops(model.model, model.adapters, model.documents) * job.batch / ranks
    m.rate("model FLOP per second per GPU", flops, "FLOP/s", time=time)
    peak = _peak(processes[0], model.precision)
    if time and peak:
        m.metric("model FLOP utilisation", flops / time / peak)
        again = _again(model, pipeline, job.strategy) * job.batch / ranks
        if again:
            m.metric("hardware FLOP utilisation", (flops + again) / time / peak)
        m.notes.append(_convention(processes[0], model, peak))
    tell_cost(m, time, rate)
    m.metric("memory", max(one.peak.total for one in memory), "B")
    _tell_memory(m, memory)
    if job.stack.allocator != "none":
        _tell_reserved(m, processes, memory)
    _tell_slowest(m, processes, time, first)
    _tell_stages(m, processes, time, first)
    for stage, one in enumerate(memory):
        m.metric(f"memory of stage {stage}", one.peak.total, "B")
    tell_use(m, [one.device for one in processes])
    if m.simulation.recorder is not None:
        from simperf.training.pipelined.timeline import record_passes

        record_passes(m.simulation.recorder, processes, memory)


def _again(model: Dimensions, pipeline: Pipeline, strategy: Strategy) -> float:
    """Arithmetic that the backward pass of one sample computes again, by the convention of `again_flops` [FLOP]."""
    assert isinstance(strategy, ModelParallel)
    again = again_flops(model.model, strategy.recompute, model.adapters, model.documents)
    first, counts = strategy.recompute_layers, [sum(one.is_block for one in part) for part in pipeline.work.parts]
    if not first or not again:
        return again
    return again * sum(min(first, count) for count in counts) / sum(counts)


def _convention(process: StageProcess, model: Dimensions, peak: float) -> str:
    """The convention of model FLOPs, and the peak of which their share is reported."""
    told, matrix = format_quantity(peak, "FLOP/s"), training_precision(model.precision).matrix
    name = getattr(process.device.part, "name", process.device.name)
    frozen, inside = ", 4 of a frozen one" if model.adapters else "", " of documents" if model.documents else ""
    return (
        f"model FLOP: 6 for each weight of a matrix and token{frozen}, and attention{inside} without its causal mask; "
        f"utilisation is of {told}, the dense {matrix} peak of {name}"
    )


def _tell_memory(m: Session, memory: Sequence[StageMemory]) -> None:
    """Note where, when and of what most memory is held."""
    stage = max(range(len(memory)), key=lambda one: memory[one].peak.total)
    peak = memory[stage].peak
    parts = sorted(((size, kind) for kind, size in peak.held.items() if size), reverse=True)
    told = ", ".join(f"{kind} {format_quantity(size, 'B')}" for size, kind in parts)
    m.notes.append(f"most memory: {format_quantity(peak.total, 'B')} on stage {stage}, {peak.when}: {told}")


def _tell_reserved(m: Session, processes: Sequence[StageProcess], memory: Sequence[StageMemory]) -> None:
    """Report what the allocator has taken; where it would take more than there is, it gives back what is free."""
    room = min(getattr(one.device.part, "memory_capacity", math.inf) for one in processes) - DRIVER
    wanted = max(one.reserved for one in memory)
    m.metric("reserved memory", min(wanted, room), "B")
    if wanted > room:
        m.notes.append(
            f"the allocator would take {format_quantity(wanted, 'B')} of {format_quantity(room, 'B')}, and gives back "
            "what is free: time for that is not simulated"
        )


def _tell_slowest(m: Session, processes: Sequence[StageProcess], time: float, first: int) -> None:
    """Note the rank whose kernels take longest, where ranks differ by more than a thousandth of a step.

    Of those that take as long, but for rounding, the first.
    """
    kernels = {one.rank: _in_step([each.kernels for each in one.spent.readings], first) for one in processes}
    most, least = max(kernels.values()), min(kernels.values())
    longest = (one for one in processes if kernels[one.rank] >= most * (1 - _ALIKE))
    slowest = min(longest, key=lambda one: one.rank)
    if most - least > 1e-3 * time:
        most_told, least_told = format_quantity(most, "s"), format_quantity(least, "s")
        node = slowest.device.name
        m.notes.append(
            f"slowest: rank {slowest.rank} ({node}, stage {slowest.stage}), whose kernels take {most_told} of a step; "
            f"the least of any rank is {least_told}"
        )


def _in_step(totals: Sequence[float], first: int) -> float:
    """Mean of one step, of running totals at the end of each step, the first ones left out."""
    return (totals[-1] - (totals[first - 1] if first else 0.0)) / (len(totals) - first)


def _peak(process: StageProcess, precision: str) -> float:
    """Dense peak of a device in the precision of matrix products [FLOP/s]; 0 if it is not known."""
    peaks = getattr(process.device.part, "peak", {})
    return float(peaks.get(training_precision(precision).matrix, 0.0))


def _tell_stages(m: Session, processes: Sequence[StageProcess], time: float, first: int) -> None:
    """Report each stage's time in a step by kind, of the first of its processes; the kinds add up to the step."""
    told: set[int] = set()
    for one in sorted(processes, key=lambda each: each.rank):
        if one.stage in told:
            continue
        told.add(one.stage)
        readings = one.spent.readings
        before = readings[first - 1] if first else Reading(0.0, 0.0, 0.0, {}, {})
        steps, last = len(readings) - first, readings[-1]
        kinds = {"kernels": (last.kernels - before.kernels) / steps, "bubble": (last.waiting - before.waiting) / steps}
        if last.slowed > before.slowed:
            kinds["slowed"] = (last.slowed - before.slowed) / steps
        for dimension, word in _WORDS.items():
            exposed, moving = (
                (of.get(dimension, 0.0) - earlier.get(dimension, 0.0)) / steps
                for of, earlier in ((last.exposed, before.exposed), (last.moving, before.moving))
            )
            if moving:
                kinds[f"exposed {word}"] = exposed
                m.metric(f"stage {one.stage}: hidden {word}", max(0.0, moving - exposed), "s")
        for kind, spent in kinds.items():
            m.metric(f"stage {one.stage}: {kind}", spent, "s")
        m.metric(f"stage {one.stage}: idle", max(0.0, time - sum(kinds.values())), "s")
