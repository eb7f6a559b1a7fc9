"""Passes of a pipeline on the timeline of a recorded run, and the memory that each stage holds meanwhile.

Which kernels a pass has is known from its layers, and a stream runs them in order: so the kernels of the compute stream
are those of the passes, one pass after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simperf.engine.recorder import Recorder, Span
from simperf.memory import Moment, StageMemory, TensorKind
from simperf.schedules import Pass
from simperf.training.pipelined.stage import StageProcess
from simperf.training.pipelined.work import StepWork
from simperf.workload.op import Op
from simperf.workload.transformers.passes import Item

__all__ = ["record_passes"]

#: counter of a device for each kind of pass: the number of the micro-batch, from 1; 0 while none runs
_PASS_COUNTERS = {"F": "forward pass", "B": "backward pass", "W": "gradients of weights"}


def record_passes(recorder: Recorder, processes: Sequence[StageProcess], memory: Sequence[StageMemory]) -> None:
    """Record which pass each simulated rank does when, and what it holds at most during it.

    Nothing is recorded of a rank whose stream has other kernels than its passes, such as copies of gathered weights.

    Parameters
    ----------
    recorder : Recorder
    processes : sequence of StageProcess
        After the run.
    memory : sequence of StageMemory
        Of each stage.
    """
    kernels: dict[str, list[Span]] = {one.device.stream().track: [] for one in processes}
    for span in recorder.spans:
        if span.track in kernels and span.category != "wait":
            kernels[span.track].append(span)
    for one in processes:
        own, work = kernels[one.device.stream().track], one.work
        end = work.ends[one.stage]
        before, behind = _kernels(end.begin), sum(map(_kernels, (end.replicated, end.norm, end.update)))
        turns = [(turn, sum(_of_pass(work, one.stage, each, turn) for each in turn)) for turn in _turns(one)]
        if len(own) != one.steps * (before + sum(count for _, count in turns) + behind):
            continue
        place = 0
        for kind in memory[one.stage].kinds:  # before its first pass a stage has what it keeps
            recorder.held(one.device.name, kind, 0.0, memory[one.stage].resident.get(kind, 0.0))
        for _ in range(one.steps):
            moments, kinds = iter(memory[one.stage].moments), memory[one.stage].kinds
            place += before
            for turn, count in turns:
                start, stop = own[place].start, own[place + count - 1].end
                _held(recorder, one, start, next(moments), kinds)
                if len(turn) > 1:  # of passes beside each other the second one's are told from the middle on
                    _held(recorder, one, (start + stop) / 2, next(moments), kinds)
                for each in turn[:2]:
                    name = _PASS_COUNTERS[each.kind] + (f" of chunk {each.chunk}" if work.plan.chunks > 1 else "")
                    recorder.counter(one.device.name, name, start, each.microbatch + 1.0)
                    recorder.counter(one.device.name, name, stop, 0.0)
                place += count
            last = own[place].start if behind else own[place - 1].end
            _held(recorder, one, last, next(moments), kinds)
            place += behind


def _turns(one: StageProcess) -> Iterator[tuple[Pass, ...]]:
    return one.work.plan.turns(one.stage)


def _of_pass(work: StepWork, stage: int, one: Pass, turn: tuple[Pass, ...]) -> int:
    """Kernels of a pass, with those that a message needs before it."""
    total = _kernels(work.received) if work.place(stage, one).receives is not None else 0
    for layer in work.layers(stage, one.chunk):
        if one.kind == "F":
            total += _kernels(layer.forward)
        elif one.kind == "W":
            total += _kernels(layer.weight_gradients) if len(turn) == 1 else 0
        else:
            split = work.plan.split and len(turn) < 3
            total += _kernels(layer.input_gradients if split else layer.backward)
    return total


def _kernels(items: Iterable[Item]) -> int:
    return sum(isinstance(one, Op) for one in items)


def _held(recorder: Recorder, one: StageProcess, time: float, moment: Moment, kinds: Iterable[TensorKind]) -> None:
    for kind in kinds:
        recorder.held(one.device.name, kind, time, moment.held.get(kind, 0.0))
