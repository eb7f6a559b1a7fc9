"""A step that torch's profiler recorded, in parts."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from simperf.analysis.step_parts import GpuInterval, step_parts
from simperf.errors import InputError, Problem
from simperf.units import format_quantity
from simperf.workload.recorded.kernel_class import classify
from simperf.workload.recorded.trace_file import OPTIMIZER, GpuActivity, Operator, TraceFile, enclosing

__all__ = ["COPY", "ELEMENTWISE", "MESSAGES", "StepSide", "recorded_step", "step_side"]

#: class of a recorded kernel -> part
_CLASSES = {"product": "products", "convolution": "convolutions", "attention": "attention"}
#: part of a recorded kernel that is none of these, by what its name has, the first that is found
_NAMES = (
    ("optimizer", re.compile(r"adam|multi_tensor_apply|multitensor|optimizer|(?<!\{)lamb(?!d)|sgd", re.IGNORECASE)),
    ("normalization", re.compile(r"norm|softmax|batch_?norm|\bbn_", re.IGNORECASE)),
    ("reduction", re.compile(r"reduc|nll_loss|cross_?entropy|sum_kernel", re.IGNORECASE)),
    (
        "copy kernels",
        re.compile(r"(?<!float16_)copy|cat(array|_)|transpose|memset|fill|memcpy|gather|scatter", re.IGNORECASE),
    ),
)
#: kernels that communicate beside those of NCCL: DeepEP's, torch's symmetric memory, Transformer Engine's user buffers
_COMMUNICATION = (
    ("dispatch", re.compile(r"deep_ep.*dispatch")),
    ("combine", re.compile(r"deep_ep.*combine")),
    ("all-reduce", re.compile(r"(one|two)_shot_all_reduce|multimem_all_reduce")),
    ("communication", re.compile(r"deep_ep|nvshmem|userbuffers|multimem_all_")),
)
#: kernels that torch.compile writes, whose names list operations: a product, or one that reduces
_COMPILED = (
    ("products", re.compile(r"triton_tem_.*mm")),
    ("normalization", re.compile(r"triton_(red|per)_.*(rsqrt|var_mean)")),
    ("reduction", re.compile(r"triton_(red|per)_")),
)
#: part of an elementwise kernel by the operation that launched it
_OPERATIONS = (
    ("normalization", re.compile(r"norm(?!al_|al$)|softmax", re.IGNORECASE)),
    ("reduction", re.compile(r"nll_loss|cross_?entropy|\b(sum|mean)\b", re.IGNORECASE)),
    ("copy kernels", re.compile(r"\bfill|\bzero_|\bembedding$", re.IGNORECASE)),
)
ELEMENTWISE = "elementwise"
#: names of kernels that are elementwise; others that are nothing else count as such, too, and are noted
_KNOWN = re.compile(
    r"elementwise|element_wise|vectorized|unrolled|pointwise|triton|dropout|index|embedding|activation|lu_|silu|gelu|"
    r"swiglu|bias|residual|rotary|rope|mask|arange|where|compare|clamp|cast|scale|add|mul|pool|upsample|distribution|"
    r"cub|thrust|sort|scan|topk|cumsum|memcpy",
    re.IGNORECASE,
)
#: share of a step that kernels of unknown names take, from which on they are noted [1]
_NOTED = 0.01
COPY, MESSAGES = "exposed copy", "send and receive"


class StepSide(NamedTuple):
    """A recorded or simulated step: its parts, counts and time [s], and what else is to be said of it."""

    parts: Mapping[str, float]
    counts: Mapping[str, float]
    time: float
    notes: tuple[str, ...] = ()


def recorded_step(file: TraceFile, step: int) -> tuple[StepSide, int]:
    """Parts of a step of a trace, and how many steps they are the mean of.

    Parameters
    ----------
    file : TraceFile
    step : int
        Of the profiler; -1 for the mean of all, or the whole trace where the profiler counted none.

    Raises
    ------
    InputError
        No such step, or nothing of the GPU is in it.
    """
    if step >= 0 and step not in file.steps:
        known = ", ".join(map(str, sorted(file.steps)[:12])) or "-1: the profiler counted no steps"
        raise InputError(Problem("no such step", file=file.name, key="--step", value=str(step), expected=known))
    chosen = {step: file.steps[step]} if step >= 0 else file.steps
    launches: dict[int, tuple[float, Any]] = {}
    for call, operators in enclosing(file):
        if call.correlation >= 0:
            launches.setdefault(call.correlation, (call.end, operators))
    delay = _delay(file, launches)
    found, unknown = list[GpuInterval](), list[GpuActivity]()
    for one in file.activities:
        launched, operators = launches.get(one.correlation, (one.start, ()))
        launched = min(launched + delay, one.start)
        kind = classify(one, operators)
        other = next((label for label, pattern in _COMMUNICATION if pattern.search(one.name)), "")
        if other and kind.kind != "collective":
            found.append(GpuInterval(one.start, one.end, "communication", f"exposed {other}", launched))
        elif kind.kind == "collective":
            name = kind.collective.name if kind.collective is not None else ""
            messages = re.search(r"send|recv", one.name, re.IGNORECASE)
            label = name or (MESSAGES if messages else "communication")
            found.append(GpuInterval(one.start, one.end, "communication", f"exposed {label}", launched))
        elif kind.kind == "copy":
            found.append(GpuInterval(one.start, one.end, "copy", COPY, launched))
        else:
            part = _CLASSES.get(kind.kind) or _by_name(one, operators)
            if part == ELEMENTWISE and not operators and not _KNOWN.search(one.name):
                unknown.append(one)
            found.append(GpuInterval(one.start, one.end, "kernel", part, launched))
    windows = _windows(file, chosen, found)
    starts = sorted(one.start for one in found if one.end > one.start)
    if not any(_holds(starts, begin, end) for begin, end in windows):
        what = f"step {step}" if step >= 0 else "the profiler's steps" if chosen else "the trace"
        others = [number for number, (begin, end) in sorted(file.steps.items()) if _holds(starts, begin, end)]
        expected = ", ".join(map(str, others[:12])) if step >= 0 else ""
        message, key = f"no activity of the GPU takes time in {what}", "--step" if step >= 0 else ""
        problem = Problem(message, file=file.name, key=key, expected=expected or "a trace of a whole step")
        raise InputError(problem)
    steps = max(1, len(chosen))
    side = step_side(found, windows, steps)
    return side._replace(notes=tuple(_unknown(unknown, windows, steps, side.time))), steps


def _unknown(
    kernels: Sequence[GpuActivity], windows: Sequence[tuple[float, float]], steps: int, time: float
) -> Iterator[str]:
    """A note on kernels that no name tells, where they take much of a step."""
    inside = [one for one in kernels if any(begin <= one.start < end for begin, end in windows)]
    total = sum(one.end - one.start for one in inside) / steps
    if total >= _NOTED * time:
        longest = max(inside, key=lambda one: one.end - one.start)
        told = f"{format_quantity(total, 's')} of kernels whose names tell no family count as {ELEMENTWISE}"
        yield f"{told}, such as {longest.name[:60] or 'one without a name'!r}"


def _windows(
    file: TraceFile, chosen: Mapping[int, tuple[float, float]], found: Sequence[GpuInterval]
) -> list[tuple[float, float]]:
    """Begin and end of each run of steps that follow each other; of the whole trace where it counts none.

    What the last step of a run launched ends after it, up to the next step.
    """
    if not chosen:
        begin = min([one.start for one in file.calls[:1]] + [one.start for one in found])
        return [(begin, max([one.end for one in found] + [call.end for call in file.calls]))]
    windows: list[tuple[float, float]] = []
    for _, some in groupby(enumerate(sorted(chosen)), lambda one: one[1] - one[0]):
        numbers = [number for _, number in some]
        begin, end = min(chosen[one][0] for one in numbers), max(chosen[one][1] for one in numbers)
        if numbers[-1] + 1 not in file.steps:
            next_step = min((first for first, _ in file.steps.values() if first >= end), default=math.inf)
            last = max((one.end for one in found if begin <= one.launched <= end), default=end)
            end = max(end, min(last, next_step))
        windows.append((begin, end))
    return windows


def _holds(starts: Sequence[float], begin: float, end: float) -> bool:
    """Whether an activity of the GPU begins from `begin` to `end` [s]."""
    return bisect_left(starts, begin) < bisect_left(starts, end)


def _delay(file: TraceFile, launches: Mapping[int, tuple[float, Any]]) -> float:
    """Time from the end of a launch to the earliest begin of its activity, as the trace has it at its shortest [s]."""
    known = (one.start - launches[one.correlation][0] for one in file.activities if one.correlation in launches)
    found = sorted(one for one in known if one >= 0.0)
    return found[len(found) // 20] if found else 0.0


def _by_name(activity: GpuActivity, operators: Sequence[Operator]) -> str:
    """Part of a kernel that moves data: by the optimizer's step around it, its own name, and its operation's."""
    if any(one.name.startswith(OPTIMIZER) for one in operators):
        return "optimizer"
    if activity.kind == "memset":
        return "copy kernels"
    name = activity.name
    compiled = name.startswith("triton_")
    name = name.replace("_to_copy", "") if compiled else name  # a cast within a kernel
    names = (*_COMPILED[:2], *_NAMES, *_COMPILED[2:]) if compiled else _NAMES
    own = next((part for part, pattern in names if pattern.search(name)), ELEMENTWISE)
    if own != ELEMENTWISE or not operators:
        return own
    return next((part for part, pattern in _OPERATIONS if pattern.search(operators[0].name)), ELEMENTWISE)


def step_side(found: Sequence[GpuInterval], windows: Sequence[tuple[float, float]], steps: int) -> StepSide:
    """A step in parts, the mean of several: their time within windows [s], and activities that begin in these.

    Parameters
    ----------
    found : sequence of GpuInterval
    windows : sequence of (float, float)
        Begin and end of each [s].
    steps : int
        In all windows together.
    """
    parts: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for begin, end in windows:
        for name, time in step_parts(found, begin, end).items():
            parts[name] = parts.get(name, 0.0) + time
        counts.update(one.part for one in found if one.kind != "wait" and begin <= one.start < end)
    return StepSide(
        {name: time / steps for name, time in parts.items()},
        {name: count / steps for name, count in counts.items()},
        sum(end - begin for begin, end in windows) / steps,
    )
