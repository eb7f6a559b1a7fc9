"""Pictures of a pipeline: passes of each stage over time, memory by kind, and where a step of each stage goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from simperf.errors import SimperfError
from simperf.hardware import Catalog
from simperf.memory import KINDS
from simperf.report.lanes import natural
from simperf.report.language import named, say
from simperf.report.stages import Stages, stages_of
from simperf.report.style import COLORS, HATCHES, NARROW, byte_scale, columns, letters_on, note, time_scale, written
from simperf.results import Result

__all__ = [
    "PassBar",
    "draw_pipeline",
    "draw_stage_memory",
    "draw_stage_times",
    "is_pass",
    "pass_bars",
    "stage_devices",
]


class PassBar(NamedTuple):
    """A pass of a stage.

    Parameters
    ----------
    stage : int
    kind : str
        ``"F"``, ``"B"`` or ``"W"``.
    chunk, microbatch : int
        From 0.
    start, end : float
        [s]
    """

    stage: int
    kind: str
    chunk: int
    microbatch: int
    start: float
    end: float


#: colour of each kind of pass; light, dark and between, so that they differ in grey, too
_PASSES = {
    "F": ("forward pass", "#BFE3F7"),
    "B": ("backward pass", "#0072B2"),
    "W": ("gradients of weights", "#E69F00"),
}
#: colours and hatches of times and of kinds of memory in their order: without colours they differ, too
_LOOKS = (
    ("#0072B2", ""),
    ("#F0E442", ""),
    ("#D55E00", "\\\\\\\\"),
    ("#BFE3F7", "||||"),
    ("#009E73", ""),
    ("#E69F00", "xxxx"),
    ("#CC79A7", "----"),
    ("#999999", "++++"),
)
#: the same of times that have their own
_OF_TIMES = {"kernels": (COLORS["compute"], "")} | {name: (COLORS[name], HATCHES[name]) for name in ("bubble", "idle")}
#: passes above which they are dots, and share of the time below which one is too narrow for an edge [1]
_DRAWN, _NARROW = 1000, 0.003
#: stages of which memory is drawn
_MOST = 3
#: kinds that take less of the peak are drawn as one [1]
_SMALL = 0.03
#: capacity over the highest peak above which it is only told [1]
_FAR = 2.0
_HEIGHT = 0.8


def stage_devices(result: Result) -> dict[int, str]:
    """The first simulated device of each stage that has passes on the timeline."""
    known = {sample.track for sample in result.samples if _kind(sample.name)}
    found: dict[int, str] = {}
    for device in sorted(known, key=natural):
        if device in result.ranks:
            found.setdefault(result.ranks[device].stage, device)
    return dict(sorted(found.items()))


def is_pass(counter: str) -> bool:
    """Whether a counter tells of passes of a stage."""
    return bool(_kind(counter))


def _kind(counter: str) -> str:
    """The kind of pass that a counter tells of; empty if of none."""
    return next((kind for kind, (name, _) in _PASSES.items() if counter.startswith(name)), "")


def pass_bars(result: Result) -> list[PassBar]:
    """Passes of the first simulated device of each stage, in the order of their ends."""
    stages = {device: stage for stage, device in stage_devices(result).items()}
    running: dict[tuple[str, str], tuple[float, int]] = {}
    found = []
    for track, name, time, value in result.samples:
        if track not in stages or not (kind := _kind(name)):
            continue
        if value:
            running[track, name] = time, int(value) - 1
        elif (track, name) in running:
            start, microbatch = running.pop((track, name))
            chunk = int(name.rpartition(" of chunk ")[2]) if " of chunk " in name else 0
            found.append(PassBar(stages[track], kind, chunk, microbatch, start, time))
    return found


def draw_pipeline(axes: Any, result: Result) -> None:
    """Passes of each stage, coloured by kind, with the number of the micro-batch where it has room."""
    from matplotlib.patches import Patch

    bars, scale = pass_bars(result), time_scale(result.time)
    stages = sorted({one.stage for one in bars})
    many = len(bars) > _DRAWN  # are dots in a file of vectors, which would be large otherwise
    groups: dict[tuple[float, float, str, bool], list[PassBar]] = defaultdict(list)
    for one, halved in zip(bars, _beside(bars), strict=True):
        height = _HEIGHT / 2 if halved else _HEIGHT
        middle = stages.index(one.stage) + (0.0 if not halved else (-1 if one.kind == "F" else 1) * height / 2)
        groups[middle, height, one.kind, bool(one.chunk)].append(one)
    letter = 0.075 / (axes.figure.get_figwidth() - 1.0)
    for (middle, height, kind, chunk), own in groups.items():
        colour = _PASSES[kind][1]
        spans = [(one.start / scale.factor, (one.end - one.start) / scale.factor) for one in own]
        wide = max(one.end - one.start for one in own) > _NARROW * result.time
        style = {"facecolor": colour, "edgecolor": _edge(colour) if wide else colour, "linewidth": 0.4 if wide else 0.0}
        hatch = "////" if chunk and wide else None
        axes.broken_barh(spans, (middle - height / 2, height), hatch=hatch, rasterized=many, **style)
        for one in own:
            text = str(one.microbatch)
            if (one.end - one.start) / result.time > letter * (len(text) + 0.8):
                box = {"facecolor": colour, "edgecolor": "none", "pad": 0.6} if chunk else None
                place = (one.start + one.end) / 2 / scale.factor, middle
                look = {"ha": "center", "va": "center", "fontsize": 7, "color": letters_on(colour), "bbox": box}
                axes.text(*place, text, clip_on=True, **look)
    axes.set_yticks(range(len(stages)), [say("stage {}").format(stage) for stage in stages])
    axes.set_ylim(len(stages) - 0.45, -0.55)
    axes.set_xlim(0, result.time / scale.factor)
    axes.set_xlabel(say("time ({})").format(scale.unit))
    axes.grid(visible=False, axis="y")
    used = {one.kind for one in bars}
    handles = [
        Patch(facecolor=c, edgecolor="#555555", label=say(n)) for kind, (n, c) in _PASSES.items() if kind in used
    ]
    if any(one.chunk for one in bars):
        handles.append(Patch(facecolor="white", edgecolor="#555555", hatch="////", label=say("second chunk of layers")))
    _above(axes, handles, [str(one.get_label()) for one in handles])


def _edge(colour: str) -> str:
    """Colour of edges and hatches that is seen on a colour."""
    return "white" if letters_on(colour) == "white" else "#555555"


def _beside(bars: Sequence[PassBar]) -> list[bool]:
    """Whether each pass is done beside another one of its stage."""
    count: dict[tuple[int, float, float], int] = defaultdict(int)
    for one in bars:
        count[one.stage, one.start, one.end] += 1
    return [count[one.stage, one.start, one.end] > 1 for one in bars]


def _above(axes: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    axes.legend(handles, names, ncols=columns(axes, min(5, len(handles))), **place)


def draw_stage_times(axes: Any, result: Result) -> None:
    """A bar for each stage: where a step of it goes, by kernels, bubble and exposed communication by dimension."""
    stages = stages_of(result.metrics)
    assert isinstance(stages, Stages)
    scale, names = time_scale(stages.step), stages.columns
    rest = cycle(look for look in _LOOKS if look not in _OF_TIMES.values())
    looks = {name: _OF_TIMES.get(name) or next(rest) for name in names}
    numbers = sorted(stages.times)
    left = np.zeros(len(numbers))
    bars = []
    for name in names:
        times = np.array([stages.times[stage].get(name, 0.0) for stage in numbers]) / scale.factor
        colour, hatch = looks[name]
        style = {"facecolor": colour, "edgecolor": _edge(colour), "linewidth": 0.4, "hatch": hatch}
        bars.append(axes.barh(range(len(numbers)), times, 0.75, left=left, **style))
        for y, time in enumerate(times):
            share = time * scale.factor / stages.step
            if share > 0.06 and name not in HATCHES:
                box = {"facecolor": colour, "edgecolor": "none", "pad": 0.8}
                place = {"ha": "center", "va": "center", "fontsize": 7.5, "color": letters_on(colour), "bbox": box}
                axes.text(left[y] + time / 2, y, f"{100 * share:.0f} %", **place)
        left += times
    axes.set_yticks(range(len(numbers)), [say("stage {}").format(stage) for stage in numbers])
    axes.set_ylim(len(numbers) - 0.45, -0.55)
    axes.set_xlim(0, stages.step / scale.factor)
    axes.set_xlabel(say("time of a step ({})").format(scale.unit))
    axes.grid(visible=False, axis="y")
    _above(axes, bars, [named(name) for name in names])


def draw_stage_memory(made: Any, result: Result) -> None:
    """Memory by kind over time, one above the other: of the first stage, the one that holds most, and the last."""
    held = _held(result)
    peaks = {stage: float(sum(series.values(), start=np.zeros(1)).max()) for stage, (_, series) in held.items()}
    worst = max(peaks, key=lambda stage: peaks[stage])
    chosen = sorted({min(held), worst, max(held)})[:_MOST]
    kinds = _kinds(held, peaks[worst])
    scale, span = byte_scale(peaks[worst]), time_scale(result.time)
    devices = stage_devices(result)
    limits = {stage: _capacity(result, devices[stage]) for stage in chosen}
    # a capacity is drawn where the memory that is held can still be read below it
    near = max((limit for limit in limits.values() if limit <= _FAR * peaks[worst]), default=0.0)
    all_axes = made.subplots(len(chosen), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, stage in zip(all_axes, chosen, strict=True):
        times, series = held[stage]
        low = np.zeros(len(times))
        for number, (name, members) in enumerate(kinds.items()):
            high = low + sum((series[kind] for kind in members if kind in series), start=np.zeros(len(times)))
            colour, hatch = _LOOKS[number % len(_LOOKS)]
            style = {"facecolor": colour, "edgecolor": _edge(colour), "linewidth": 0.3, "hatch": hatch}
            ends = low / scale.factor, high / scale.factor
            axes.fill_between(times / span.factor, *ends, step="post", label=say(name), **style)
            low = high
        told = say("stage {}: {} at most").format(stage, written(peaks[stage], "B", digits=3))
        if limits[stage] < float("inf"):
            share = f"{100 * peaks[stage] / limits[stage]:.0f} %"
            told += say(", {} of {}").format(share, written(limits[stage], "B", digits=3))
            if limits[stage] <= near:
                axes.axhline(limits[stage] / scale.factor, color="#D55E00", linestyle="--", linewidth=1)
        axes.set_title(told, fontsize=8.5, loc="right")
        axes.set_ylabel(say("held ({})").format(scale.unit))
        axes.set_xlim(0, result.time / span.factor)
        axes.set_ylim(0, 1.05 * max(peaks[worst], near) / scale.factor)
    all_axes[-1].set_xlabel(say("time ({})").format(span.unit))
    handles, names = all_axes[0].get_legend_handles_labels()
    if made.get_figwidth() < NARROW:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1.12), "borderaxespad": 0.2}
        all_axes[0].legend(handles, names, ncols=3, fontsize=8, **place)
    else:
        made.legend(handles[::-1], names[::-1], loc="outside right upper", fontsize=8)
    if len(chosen) < len(held):
        told = say("The first and the last of {} stages are shown, and the one that holds most.")
        note(all_axes[-1], told.format(len(held)))


def _capacity(result: Result, device: str) -> float:
    """Memory that a device has [B], by the run or else by the catalogue; infinite if that is not known."""
    use = result.resources.get(f"{device} memory")
    if use is not None:
        return use.capacity
    ceiling = result.ceilings.get(device)
    try:
        return float("inf") if ceiling is None else Catalog.load().gpu(ceiling.part).memory_capacity
    except SimperfError:  # a part of one's own
        return float("inf")


def _held(result: Result) -> dict[int, tuple[Any, Mapping[str, Any]]]:
    """Times [s] and bytes by kind of each stage."""
    found: dict[int, tuple[Any, Mapping[str, Any]]] = {}
    for stage, device in stage_devices(result).items():
        own = [sample for sample in result.memory if sample.track == device]
        times = sorted({0.0, *(sample.time for sample in own), result.time})
        place = {time: index for index, time in enumerate(times)}
        series: dict[str, Any] = {}
        for _, kind, time, nbytes in own:
            values = series.setdefault(kind, np.full(len(times), np.nan))
            values[place[time]] = nbytes
        for values in series.values():
            last = values[np.flatnonzero(~np.isnan(values))[0]]
            for index, value in enumerate(values):
                last = values[index] = last if np.isnan(value) else value
        if series:
            found[stage] = np.array(times), series
    return found


def _kinds(held: Mapping[int, tuple[Any, Mapping[str, Any]]], peak: float) -> dict[str, tuple[str, ...]]:
    """Kinds of memory that are drawn, each with those that it stands for."""
    most: dict[str, float] = {}
    for _, series in held.values():
        for kind, values in series.items():
            most[kind] = max(most.get(kind, 0.0), float(values.max()))
    large: dict[str, tuple[str, ...]] = {kind: (kind,) for kind in KINDS if most.get(kind, 0.0) >= _SMALL * peak}
    small = tuple(kind for kind in most if kind not in large and most[kind])
    return {**large, **({"others": small} if small else {})}
