"""Pictures of sweeps: lines, scaling with its ideal, heat maps, and the front of time and cost."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from simperf.answer import better_of
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.report.labels import name_points
from simperf.report.language import say
from simperf.report.lines import legend, line_look, nest, panels
from simperf.report.style import NARROW, Scale, byte_scale, figure, figure_width, heading, save, time_scale, written
from simperf.study.pareto import pareto_front
from simperf.study.table import Table

__all__ = ["KINDS", "draw_table", "plot_table"]

_RATE, _COST = "metrics.samples per second", "metrics.cost per step"
_BLUE, _RED, _GREY = "#0072B2", "#D55E00", "#888888"


def plot_table(table: Table, path: str | os.PathLike[str], kind: str = "auto", *, metric: str = "") -> None:
    """Write a picture of a sweep; see `draw_table`."""
    save(draw_table(table, kind, metric=metric), path)


def draw_table(table: Table, kind: str = "auto", *, metric: str = "") -> Any:
    """Make the figure of a sweep.

    Parameters
    ----------
    table : Table
    kind : str
        ``"lines"``: a metric over the first key, a line for each value of the others. ``"scaling"``: throughput over
        the first key with what it would ideally be, and the efficiency. ``"heatmap"``: a metric over two keys.
        ``"pareto"``: time and cost, and the points that no other beats in both. ``"auto"`` takes what fits.
    metric : str
        Column that lines and heat maps show; if empty the metric that is asked for, or else the time.

    Raises
    ------
    InputError
        The sweep does not hold what the picture shows.
    UnknownNameError
        No such kind or metric.
    """
    if kind == "auto":
        kind = "heatmap" if len(table.keys) == 2 and _is_grid(table) else "lines"
    if kind not in KINDS:
        raise UnknownNameError("kind of picture", kind, KINDS)
    asked = table.answer.metric if table.answer is not None and kind != "scaling" else "time"
    return KINDS[kind](table, metric or asked)


def _numbers(table: Table, column: str) -> list[Any]:
    """Values of a column as numbers where they are, quantities such as ``"10 MB"`` too."""
    return [number_of(value) for value in table.column(column)]


def number_of(value: Any) -> Any:
    """A number that a value of a file stands for; the value itself if it stands for none.

    Examples
    --------
    >>> number_of("10 MB"), number_of(3), number_of("ring")
    (10000000.0, 3, 'ring')
    """
    from simperf.errors import UnitError
    from simperf.units import DIMENSIONS, parse

    if isinstance(value, str):
        for dimension in DIMENSIONS:
            try:
                return parse(value, dimension)
            except UnitError:
                continue
    return value


def _is_grid(table: Table) -> bool:
    return len({tuple(map(str, row["set"].values())) for row in table.rows}) == len(table.rows) and (
        len(set(map(str, table.column(table.keys[0])))) * len(set(map(str, table.column(table.keys[1])))) == len(table)
    )


def _full(table: Table, metric: str) -> str:
    """Name of the column of a metric, with its complaint if there is none."""
    table.column(metric)
    return metric if metric in table.columns else f"metrics.{metric}"


def _scale(table: Table, column: str) -> tuple[str, float]:
    """Label of an axis in a unit in which the column is easily read, and what its SI values are divided by."""
    unit = table.unit(column) or _unit_of(table.column(column))
    largest = max((abs(x) for x in _numbers(table, column) if _is_number([x])), default=0.0)
    scale = Scale(1.0, unit)
    if unit == "s":
        scale = time_scale(largest)
    elif unit in ("B", "B/s"):
        factor, name = byte_scale(largest)
        scale = Scale(factor, name + unit[1:])
    name = column.removeprefix("metrics.")
    return f"{name} [{scale.unit}]" if unit not in ("", "1") else name, scale.factor


def _fit_numbers(*axes: Any) -> None:
    """Write numbers too long or too small for an axis with k, M, ... or m, µ, ... in place of a power far from them."""
    from matplotlib.ticker import EngFormatter, ScalarFormatter

    for axis in axes:
        largest = max(map(abs, axis.get_view_interval()))
        if isinstance(axis.get_major_formatter(), ScalarFormatter) and not 1e-2 <= largest < 1e5:
            axis.set_major_formatter(EngFormatter(sep=""))


def _unit_of(values: Sequence[Any]) -> str:
    """SI unit of quantities that a file writes, such as ``"10 MB"``; empty for anything else."""
    from simperf.errors import UnitError
    from simperf.units import DIMENSIONS, parse

    for dimension in DIMENSIONS if all(isinstance(value, str) for value in values) else ():
        try:
            for value in values:
                parse(value, dimension)
        except UnitError:
            continue
        return dimension
    return ""


def _ends(record: Mapping[str, Any], column: str) -> tuple[float, float] | None:
    """Interval of a column in a row, if it has one."""
    low, high = record.get(f"{column}.low"), record.get(f"{column}.high")
    if low is None or high is None:  # the table names the intervals of metrics without their prefix
        plain = column.removeprefix("metrics.")
        low, high = record.get(f"{plain}.low"), record.get(f"{plain}.high")
    return None if low is None or high is None else (low, high)


def _title(table: Table) -> str:
    """What was swept, with the answer."""
    told = "" if table.ranking.refusal or len(table) < 2 else table.ranking.headline
    return f"{table.title}. {told}" if told else table.title


def _series(table: Table, column: str) -> dict[str, tuple[list[Any], list[float], list[tuple[float, float]]]]:
    """For each combination of the keys but the first: its values, the column's, and its intervals."""
    xs = _numbers(table, table.keys[0])
    found: dict[str, tuple[list[Any], list[float], list[tuple[float, float]]]] = {}
    for x, row, record in zip(xs, table.rows, table.records(), strict=True):
        value = record[column]
        if value is None:
            continue
        label = ", ".join(f"{key.rpartition('.')[2]} {row['set'][key]}" for key in table.keys[1:])
        group = found.setdefault(label, ([], [], []))
        group[0].append(x)
        group[1].append(value)
        ends = row.get("intervals", {}).get(column.removeprefix("metrics."))
        group[2].append((ends[0], ends[1]) if ends else (value, value))
    if not found:
        raise InputError(Problem("nothing to draw: every point failed", expected="a sweep with results"))
    return found


def _lines(table: Table, metric: str) -> Any:
    column = _full(table, metric)
    series = _series(table, column)

    along, step = _scale(table, table.keys[0])
    up, unit = _scale(table, column)

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, _title(table))
        drawn = {}
        for number, (label, (xs, ys, ends)) in enumerate(series.items()):
            order, look = _order(xs), line_look(number)
            places = [xs[i] / step if _is_number(xs) else str(xs[i]) for i in order]
            (drawn[label],) = axes.plot(places, [ys[i] / unit for i in order], label=label or None, **look)
            if any(low != high for low, high in ends):
                lows, highs = [ends[i][0] / unit for i in order], [ends[i][1] / unit for i in order]
                axes.fill_between(places, lows, highs, color=look["color"], alpha=0.2, lw=0)
        axes.set_xlabel(along)
        axes.set_ylabel(up)
        axes.set_ylim(bottom=0)
        _fit_numbers(axes.xaxis, axes.yaxis)
        if len(series) > 1:
            nest(axes, drawn)
            legend(axes)

    return figure(fill)


def _scaling(table: Table, metric: str) -> Any:
    column = _RATE if metric == "time" and _RATE in table.columns else _full(table, metric)
    series = _series(table, column)
    inverse = column == "time"
    along, step = _scale(table, table.keys[0])
    up, unit = ("1 / time [1/s]", 1.0) if inverse else _scale(table, column)

    def fill(made: Any) -> None:
        left, right = panels(made, (1, 1))
        heading(made, _title(table))
        drawn = {}
        for number, (label, (xs, values, ends)) in enumerate(series.items()):
            order, look = _order(xs), line_look(number)
            numbers = [float(xs[i]) / step for i in order]
            if any(low != high for low, high in ends):
                bounds = [[1.0 / end if inverse else end / unit for end in ends[i]] for i in order]
                band = [min(pair) for pair in bounds], [max(pair) for pair in bounds]
                left.fill_between(numbers, *band, color=look["color"], alpha=0.2, lw=0)
            rates = [1.0 / values[i] if inverse else values[i] / unit for i in order]
            ideal = [rates[0] / numbers[0] * x for x in numbers]
            left.plot(numbers, rates, label=label or say("simulated"), **look)
            last = say("ideal") if number == len(series) - 1 else None
            left.plot(numbers, ideal, "--", lw=0.9, color=_GREY, label=last)
            shares = [100 * rate / best for rate, best in zip(rates, ideal, strict=True)]
            (drawn[label or say("simulated")],) = right.plot(numbers, shares, **look)
        for axes in (left, right):
            axes.set_xlabel(along)
            axes.set_ylim(bottom=0)
            _fit_numbers(axes.xaxis, axes.yaxis)
        left.set_ylabel(up)
        right.set_ylabel(say("efficiency [%]"))
        right.set_ylim(top=max(105.0, right.get_ylim()[1]))  # points at 100 % are whole
        right.axhline(100, ls="--", lw=0.9, color=_GREY)
        nest(right, drawn)
        legend(right, left.get_legend_handles_labels()[0])

    if not all(_is_number(xs) and min(map(float, xs)) > 0 for xs, _, _ in series.values()):
        raise InputError(Problem("scaling is over numbers above 0", key=table.keys[0], expected="--plot-kind lines"))
    return figure(fill, height=4.0 if figure_width() >= NARROW else 6.0)


def _heatmap(table: Table, metric: str) -> Any:
    column = _full(table, metric)
    if len(table.keys) != 2:
        problem = Problem("a heat map is over two keys", value=", ".join(table.keys), expected="--plot-kind lines")
        raise InputError(problem)
    first, second = (_distinct(table.column(key)) for key in table.keys)
    up, unit = _scale(table, column)
    cells = [[float("nan")] * len(first) for _ in second]
    ends: dict[tuple[int, int], tuple[float, float]] = {}
    for row, record in zip(table.rows, table.records(), strict=True):
        if record[column] is not None:
            place = second.index(str(row["set"][table.keys[1]])), first.index(str(row["set"][table.keys[0]]))
            cells[place[0]][place[1]] = record[column]
            found = _ends(record, column)
            if found:
                ends[place] = found

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, _title(table))
        asked = table.answer if table.answer is not None and table.answer.metric == metric else None
        better = asked.better if asked else better_of(table.unit(column))
        colours = "viridis_r" if better == "lower" else "viridis"  # what is better is brighter
        shown = [[value / unit for value in line] for line in cells]
        picture = axes.imshow(shown, origin="lower", aspect="auto", cmap=colours)
        axes.set_xticks(range(len(first)), first, rotation=30 if max(map(len, first)) > 5 else 0)
        axes.set_yticks(range(len(second)), second)
        axes.set_xlabel(table.keys[0])
        axes.set_ylabel(table.keys[1])
        axes.grid(visible=False)
        made.colorbar(picture, label=up)
        if len(first) * len(second) <= 100:
            for y, line in enumerate(cells):
                for x, value in enumerate(line):
                    si = table.unit(column) or "1"
                    text = "failed" if math.isnan(value) else written(value, si, digits=3)
                    if (y, x) in ends:
                        text += "\n" + " .. ".join(written(end, si, digits=3) for end in ends[y, x])
                    box = {"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 1}
                    axes.text(x, y, text, ha="center", va="center", fontsize=6.5, bbox=box)

    return figure(fill, height=max(3.0, 1.5 + 0.35 * len(second)))


def _pareto(table: Table, metric: str) -> Any:
    if _COST not in table.columns:
        raise InputError(Problem("no point has a cost", expected="a machine of servers with prices"))
    rows = [record for record in table.records() if record["time"] is not None and record[_COST] is not None]
    times = [1.0 / record[_RATE] if record.get(_RATE) else record["time"] for record in rows]
    costs = [record["metrics.cost per million samples"] or record[_COST] for record in rows]
    labels = [", ".join(str(record[key]) for key in table.keys) for record in rows]

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, _title(table))
        front = draw_front(axes, [1e6 * time for time in times], costs)
        for record, time, cost in zip(rows, times, costs, strict=True):
            rates, prices = _ends(record, _RATE), _ends(record, "metrics.cost per million samples")
            if rates:
                axes.plot([1e6 / rate for rate in rates], [cost, cost], color=_GREY, lw=0.8)
            if prices:
                axes.plot([1e6 * time, 1e6 * time], prices, color=_GREY, lw=0.8)
        axes.set_xlabel("time of a million samples [s]")
        axes.set_ylabel("cost of a million samples [USD]")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        legend(axes)
        points = [(1e6 * time, cost) for time, cost in zip(times, costs, strict=True)]
        name_points(axes, [(labels[index], points[index]) for index in front], points)

    return figure(fill)


def draw_front(axes: Any, times: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Points of time and cost, and the line of those that none beats in both; `name_points` gives them their names."""
    front = pareto_front(list(zip(times, costs, strict=True)))
    axes.plot(times, costs, "o", ms=3.5, color=_GREY, alpha=0.7)
    style = {"ms": 5, "lw": 1.2, "color": _RED, "label": say("Pareto-optimal")}
    axes.plot([times[i] for i in front], [costs[i] for i in front], "o-", **style)
    return list(front)


def _order(xs: Sequence[Any]) -> list[int]:
    return sorted(range(len(xs)), key=lambda i: xs[i]) if _is_number(xs) else list(range(len(xs)))


def _is_number(xs: Sequence[Any]) -> bool:
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)


def _distinct(values: Sequence[Any]) -> list[str]:
    """Values once each as texts: numbers in their order, others as they come."""
    found = list(dict.fromkeys(values))
    numbers = [number_of(value) for value in found]
    order = sorted(range(len(found)), key=lambda i: numbers[i]) if _is_number(numbers) else range(len(found))
    return [str(found[i]) for i in order]


#: What can be drawn of a sweep.
KINDS = {"lines": _lines, "scaling": _scaling, "heatmap": _heatmap, "pareto": _pareto}
