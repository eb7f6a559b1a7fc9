"""Pictures of results: one figure a kind, and an overview.

`draw` gives the figure, for a notebook; `plot` writes it.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from simperf.analysis.breakdown import PARTS, breakdown
from simperf.analysis.ranking import Ranking, rank_results
from simperf.answer import TIME
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.report.counters import draw_memory, draw_queue, series
from simperf.report.data import FailedRun
from simperf.report.gantt import draw_gantt, gantt_rows, link_rates
from simperf.report.language import named, say
from simperf.report.pipelines import draw_pipeline, draw_stage_memory, draw_stage_times, stage_devices
from simperf.report.roofline import draw_roofline
from simperf.report.stages import stages_of
from simperf.report.style import (
    COLORS,
    HATCHES,
    NARROW,
    columns,
    figure,
    figure_width,
    heading,
    save,
    time_scale,
    written,
)
from simperf.results import Result
from simperf.units import format_ratio

__all__ = ["KINDS", "draw", "draw_comparison", "plot", "plot_comparison"]


def plot(result: Result, path: str | os.PathLike[str], kind: str = "overview") -> None:
    """Write a picture of `result`.

    Parameters
    ----------
    result : Result
    path : path
        PNG, SVG or PDF by its end.
    kind : str
        One of `KINDS`.

    Raises
    ------
    InputError
        The result does not hold what the picture shows, or the file cannot be written.
    UnknownNameError
        No such kind.
    """
    save(draw(result, kind), path)


def plot_comparison(results: Sequence[Result | FailedRun], path: str | os.PathLike[str]) -> None:
    """Write the bar chart of several results; see `draw_comparison`."""
    save(draw_comparison(results), path)


def draw(result: Result, kind: str = "overview") -> Any:
    """The figure that `plot` writes (a `matplotlib.figure.Figure`)."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnknownNameError("kind of picture", kind, KINDS)
    return KINDS[kind](result)


def _missing(result: Result, what: str, expected: str) -> InputError:
    return InputError(Problem(f"{result.name}: nothing to draw, the run has no {what}", expected=expected))


_RECORD = "a run whose timeline was recorded"


def _title(result: Result) -> str:
    name, number = result.headline
    value = written(number.value, number.unit)
    if name == TIME:
        return say("{}: {}").format(result.name, value)
    return say("{}: {} {}").format(result.name, say(name), value)


def _gantt_height(result: Result) -> float:
    rows, _ = gantt_rows(result)
    return 0.9 + 0.27 * (len(rows) + min(8, len(link_rates(result))))


def _gantt(result: Result) -> Any:
    if not result.spans and not link_rates(result):
        raise _missing(result, "timeline", _RECORD)

    def fill(made: Any) -> None:
        heading(made, _title(result))
        draw_gantt(made.subplots(), result)

    return figure(fill, height=max(2.2, 0.5 + _gantt_height(result)))


def _single(what: str, drawer: Callable[[Any, Result], None], counter: str, expected: str) -> Callable[[Result], Any]:
    def make(result: Result) -> Any:
        if not series(result, counter):
            raise _missing(result, what, expected)

        def fill(made: Any) -> None:
            axes = made.subplots()
            heading(made, _title(result))
            drawer(axes, result)

        return figure(fill, height=3.0)

    return make


def _pipeline(result: Result) -> Any:
    stages = stage_devices(result)
    if not stages:
        raise _missing(result, "passes of a pipeline's stages", "a recorded run of a model that a layout divides")

    def fill(made: Any) -> None:
        heading(made, _title(result))
        draw_pipeline(made.subplots(), result)

    return figure(fill, height=max(2.2, 1.4 + 0.3 * len(stages)))


def _stages(result: Result) -> Any:
    stages = stages_of(result.metrics)
    if stages is None:
        raise _missing(result, "stages", "a run of a model that a layout divides")

    def fill(made: Any) -> None:
        heading(made, _title(result))
        draw_stage_times(made.subplots(), result)

    return figure(fill, height=max(2.2, 1.5 + 0.3 * len(stages.times)))


def _memory(result: Result) -> Any:
    stages = stage_devices(result)
    if not stages:
        return _DEVICE_MEMORY(result)

    def fill(made: Any) -> None:
        heading(made, _title(result))
        draw_stage_memory(made, result)

    return figure(fill, height=1.3 + 1.6 * min(3, len(stages)))


def _roofline(result: Result) -> Any:
    if not result.ceilings:
        raise _missing(result, "operations on devices of the catalogue", "a program that runs networks or operations")

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, say("{}: roofline").format(result.name))
        draw_roofline(axes, result)

    return figure(fill, height=5.0)


def _overview(result: Result) -> Any:
    panels: list[tuple[float, Callable[[Any, Result], None]]] = []
    if result.spans or link_rates(result):
        panels.append((_gantt_height(result), draw_gantt))
    if series(result, "queue length"):
        panels.append((1.5, draw_queue))
    if any(values.max() > 0 for _, values in series(result, "memory held").values()):
        panels.append((1.5, draw_memory))
    if not panels:
        raise _missing(result, "timeline", _RECORD)

    def fill(made: Any) -> None:
        heading(made, _title(result))
        heights = [height for height, _ in panels]
        axes = made.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for each, (_, drawer) in zip(axes, panels, strict=True):
            drawer(each, result)
            if each is not axes[-1]:
                each.set_xlabel("")
        made.align_ylabels(axes[1:])

    return figure(fill, height=max(2.2, 0.6 + sum(height for height, _ in panels)))


def draw_comparison(results: Sequence[Result | FailedRun]) -> Any:
    """Bars of several results, a figure: the number that ranks them, and their times by category.

    Raises
    ------
    InputError
        There is nothing to compare.
    """
    good = [result for result in results if isinstance(result, Result)]
    if not good:
        raise InputError(Problem("there is no result to draw", expected="at least one that could be simulated"))
    ranking, title = rank_results(good), _common_title(results)
    apart = not ranking.answer.is_time and not ranking.refusal

    def fill(made: Any) -> None:
        if title:
            heading(made, title)
        if not apart:
            axes = made.subplots()
            _times(axes, results, ranking)
            _named(axes, results)
            return
        beside = made.get_figwidth() >= NARROW
        shape = {"ncols": 2, "width_ratios": [2, 3]} if beside else {"nrows": 2}
        first, second = made.subplots(**shape)
        _answers(first, results, ranking)
        _times(second, results, ranking)
        _named(first, results)
        _named(second, results)
        if beside:
            second.tick_params(labelleft=False)

    rows = 2 if apart and figure_width() < NARROW else 1
    return figure(fill, height=0.3 * bool(title) + rows * (1.3 + 0.4 * len(results)))


def _named(axes: Any, results: Sequence[Result | FailedRun]) -> None:
    """The results' names at their bars, the first on top."""
    axes.set_yticks(range(len(results)), [named(result.name) for result in results])
    axes.set_ylim(len(results) - 0.45, -0.55)
    axes.grid(visible=False, axis="y")


def _answers(axes: Any, results: Sequence[Result | FailedRun], ranking: Ranking) -> None:
    """Bars of the number that ranks the results, with the values written."""
    metric = ranking.answer.metric
    good = [each for each in results if isinstance(each, Result)]
    numbers = {place: each.number(metric) for place, each in enumerate(good) if each.has(metric)}
    reach = max(max(0.0, number.value, number.high or 0.0) for number in numbers.values())
    place = 0
    for y, result in enumerate(results):
        if isinstance(result, FailedRun):
            axes.text(0, y, f" {say('failed')}", va="center", fontsize=8, color="#D55E00")
            continue
        if place not in numbers:
            axes.text(0, y, " -", va="center", fontsize=8)
            place += 1
            continue
        number = numbers[place]
        axes.barh(y, number.value, 0.65, color="#555555" if place in ranking.best else "#BBBBBB")
        end = max(0.0, number.value)
        if number.low is not None and number.high is not None:
            axes.plot([number.low, number.high], [y, y], color="black", lw=1, marker="|", ms=6)
            end = max(end, number.high)
        ratio = ranking.ratio(place)
        told = "" if place in ranking.best or ratio is None else f"  ({format_ratio(ratio)})"
        axes.text(end, y, f" {written(number.value, number.unit)}{told}", va="center", ha="left", fontsize=8)
        place += 1
    low = min(0.0, *(min(number.value, number.low or 0.0) for number in numbers.values()))
    axes.set_xlim(low, reach * _room(axes) if reach > 0 else 1)
    axes.set_xticks([])
    better = say("{} lower is better" if ranking.answer.better == "lower" else "{} higher is better")
    axes.set_title(better.format(say(metric) + "\n"), fontsize=9)


def _times(axes: Any, results: Sequence[Result | FailedRun], ranking: Ranking) -> None:
    """Bars of the times by category, with the values written; with ratios where time ranks them."""
    good = [result for result in results if isinstance(result, Result)]
    longest = max(result.time for result in good)
    scale, shown, place = time_scale(longest), {}, 0
    for y, result in enumerate(results):
        if isinstance(result, FailedRun):
            axes.text(0, y, f" {textwrap.shorten(result.error, 80)}", va="center", fontsize=8, color="#D55E00")
            continue
        left = 0.0
        for name, time in (breakdown(result) or {"time": result.time}).items():
            if time <= 0:
                continue
            style = {"color": COLORS.get(name, "#0072B2"), "hatch": HATCHES.get(name), "edgecolor": "white"}
            bar = axes.barh(y, time / scale.factor, 0.65, left=left / scale.factor, linewidth=0.5, **style)
            shown[name] = bar
            left += time
        reach = result.time
        if "time" in result.intervals:
            ends = [end / scale.factor for end in result.intervals["time"]]
            axes.plot(ends, [y, y], color="black", lw=1, marker="|", ms=6)
            reach = max(reach, *result.intervals["time"])
        ratio = ranking.ratio(place) if ranking.answer.is_time and place not in ranking.best else None
        text = f" {written(result.time, 's')}" + (f"  ({format_ratio(ratio)})" if ratio is not None else "")
        axes.text(reach / scale.factor, y, text, va="center", ha="left", fontsize=8)
        place += 1
    axes.set_xlim(0, longest / scale.factor * _room(axes) if longest > 0 else 1)
    axes.set_xlabel(say("time ({})").format(scale.unit))
    names = [name for name in PARTS if name in shown]
    if names:
        bars = [shown[name] for name in names]
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
        share = min(1.0, axes.get_position().width / 0.775)
        axes.legend(bars, [say(name) for name in names], ncols=max(1, round(share * columns(axes, len(bars)))), **above)


def _room(axes: Any) -> float:
    """Length of an axis over its longest bar [1]: the values at the bars' ends need as much in any width."""
    width = axes.figure.get_figwidth() * axes.get_position().width / 0.775
    return 1 + 0.22 * 6.8 / max(1.2, float(width) - 1.2)


def _common_title(results: Sequence[Result | FailedRun]) -> str:
    """The title of the file whose variants all of these are; empty if they come from several."""
    heads = [result.scenario.get("scenario", {}) for result in results if isinstance(result, Result)]
    titles = dict.fromkeys(str(head.get("title", "")) for head in heads)
    return next(iter(titles)) if len(titles) == 1 else ""


_DEVICE_MEMORY = _single(
    "memory held by operations", draw_memory, "memory held", "a program whose operations hold memory"
)

#: Kinds of picture of one result.
KINDS: dict[str, Callable[[Result], Any]] = {
    "overview": _overview,
    "gantt": _gantt,
    "queue": _single("launch queue", draw_queue, "queue length", "a program that launches operations"),
    "memory": _memory,
    "roofline": _roofline,
    "pipeline": _pipeline,
    "stages": _stages,
}
