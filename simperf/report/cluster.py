"""Prediction beside measurement of a boxed cluster, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from simperf.report.fitted_table import FittedTable
from simperf.report.terminal import to_text

if TYPE_CHECKING:
    from rich.text import Text

    from simperf.calibrate.cluster.accuracy import GroupErrors, PredictedPoint
    from simperf.calibrate.cluster.fitting import FittedBox
    from simperf.hardware.profile import FittedModel

__all__ = ["box_text", "cluster_markdown", "cluster_text", "prediction_text", "stack_text"]

#: heading of what a model without bursts, cores and waiting gets
_PLAIN = "two constants"


def cluster_text(box: FittedBox, rows: Sequence[PredictedPoint], *, points: bool = False) -> str:
    """The fitted constants, the points if they are wanted, and a line a group."""
    from rich.console import Group
    from rich.text import Text

    from simperf.calibrate.cluster.accuracy import calm, conditions, summaries

    parts: list[FittedTable | Text] = [Text(box.report()), Text("")]
    if points:
        drawn = any(row.interval for row in rows)
        header = ["series", "conditions", "measured", "predicted", *(["90 %"] if drawn else []), "error", "cores"]
        cells = []
        for row in rows:
            measured, predicted = (_reading(value, row.point.unit) for value in (row.point.median, row.predicted))
            mark = " (fitted)" if row.fitted else ""
            between = [" to ".join(_reading(one, row.point.unit) for one in row.interval or ())] if drawn else []
            words = [row.point.series, conditions(row.point), measured, predicted, *between, f"{row.error:+.1%}{mark}"]
            cells.append([*words, f"{row.load:.0%}"])
        parts += [FittedTable(header, cells, heads=2), Text("")]
    lines = summaries(rows)
    told, beside = any(line.coverage is not None for line in lines), any(line.plain is not None for line in lines)
    parts.append(_groups("prediction meets reality", lines, told=told, beside=beside))
    if beside:
        parts += [
            Text(""),
            Text(f"{_PLAIN}: the mean error of the smallest send's time and the largest one's rate alone"),
        ]
    if told:
        parts += [Text(""), Text(_held(rows))]
    if left := calm(rows):
        less = _groups("calm points", summaries(left), told=told, beside=beside)
        parts += [Text(""), Text(_taken(rows, left)), Text(""), less]
    return to_text(Group(*parts))


def _groups(title: str, lines: Sequence[GroupErrors], *, told: bool, beside: bool) -> FittedTable:
    """A line a group; `told`: with what intervals hold, `beside`: with what a model of two constants gets."""
    more = [*([_PLAIN] if beside else []), *(["in 90 % interval"] if told else [])]
    header = [title, "points", "mean error", "bias", "worst", *more]
    return FittedTable(header, [_cells(line, told=told, beside=beside) for line in lines])


def _cells(line: GroupErrors, *, told: bool, beside: bool, none: str = "") -> list[str]:
    cells = [line.group, str(line.points), f"{line.mape:.1%}", f"{line.bias:+.1%}", f"{line.worst:+.1%}"]
    cells += [none if line.plain is None else f"{line.plain:.1%}"] if beside else []
    return cells + ([none if line.coverage is None else f"{line.coverage:.0%}"] if told else [])


def _taken(rows: Sequence[PredictedPoint], left: Sequence[PredictedPoint]) -> str:
    return (
        f"During {len(rows) - len(left)} of {len(rows)} points the host of this machine gave its processors to others. "
        "Without them:"
    )


def box_text(models: Mapping[str, FittedModel]) -> str:
    """Contents of a profile of a boxed cluster: its constants, training steps, and what predictions miss."""
    from rich.console import Group
    from rich.text import Text

    from simperf.calibrate.cluster.profile import MISS, NAME, STEP
    from simperf.calibrate.fit.model import quantity

    constants, misses = list[list[str]](), list[list[str]]()
    for name, model in models.items():
        if name.startswith(MISS):
            ratio = model.constant["ratio"]
            between = f"{ratio.low - 1.0:+.0%} and {ratio.high - 1.0:+.0%}"
            misses.append([model.series, str(model.points), f"{model.error:.1%}", between])
            continue
        head = "" if name == NAME else name.removeprefix(STEP)
        for key, one in model.constant.items():
            low, high = (quantity(end, one.unit) for end in (one.low, one.high))
            constants.append([f"{head} {key}".strip(), quantity(one.value, one.unit), f"{low} to {high}"])
    told = f"fitted to {models[NAME].points} sends, mean error {models[NAME].error:.1%}"
    fitted = FittedTable(("constant", "value", "90 %"), constants)
    missed = FittedTable(("what is predicted", "points", "mean error", "90 % lie between"), misses)
    return to_text(Group(fitted, Text(""), Text(told), Text(""), missed))


def stack_text(models: Mapping[str, FittedModel]) -> str:
    """A network stack that was fitted to sends alone."""
    from rich.console import Group
    from rich.text import Text

    from simperf.calibrate.fit.model import quantity

    (model,) = models.values()
    rows = []
    for key, one in model.constant.items():
        low, high = (quantity(end, one.unit) for end in (one.low, one.high))
        rows.append([key, quantity(one.value, one.unit), f"{low} to {high}"])
    told = f"fitted to sends of {model.points} sizes, mean error {model.error:.1%}"
    table = FittedTable(("constant", "value", "90 %"), rows)
    return to_text(Group(table, Text(""), Text(told)))


def cluster_markdown(rows: Sequence[PredictedPoint], *, title: str = "", points: bool = True) -> str:
    """The groups, and every point if they are wanted, as tables for a page, under a heading if there is a title."""
    from simperf.calibrate.cluster.accuracy import calm, conditions, summaries

    groups = summaries(rows)
    told, beside = any(one.coverage is not None for one in groups), any(one.plain is not None for one in groups)
    more = [*([_PLAIN] if beside else []), *(["in 90 % interval"] if told else [])]
    lines = [_line("boxed cluster", "points", "mean error", "bias", "worst", *more), "|---|" + "--:|" * (4 + len(more))]
    lines += [_line(*_cells(one, told=told, beside=beside, none="-")) for one in groups]
    if told:
        lines += ["", _held(rows)]
    if beside:
        lines += ["", f"*{_PLAIN.capitalize()}* are the time of the smallest send and the rate of the largest."]
    if left := calm(rows):
        lines += ["", _taken(rows, left), "", *lines[:2]]
        lines += [_line(*_cells(one, told=told, beside=beside, none="-")) for one in summaries(left)]
    if not points:
        return "\n".join([f"## {title}", "", *lines] if title else lines) + "\n"
    more = [_PLAIN] if beside else []
    lines += ["", _line("series", "conditions", "measured", "predicted", "error", *more, "cores")]
    lines.append("|---|---|" + "--:|" * (4 + len(more)))
    for row in rows:
        measured, predicted = (_reading(value, row.point.unit) for value in (row.point.median, row.predicted))
        mark = " (fitted)" if row.fitted else ""
        where = conditions(row.point).replace("|", "\\|")
        cells = [row.point.series, where, measured, predicted, f"{row.error:+.1%}{mark}"]
        cells += ["" if row.plain_error is None else f"{row.plain_error:+.1%}"] if beside else []
        lines.append(_line(*cells, f"{row.load:.0%}"))
    return "\n".join([f"## {title}", "", *lines] if title else lines) + "\n"


def prediction_text(rows: Sequence[PredictedPoint]) -> str:
    """Predictions of a profile for points without measurements, a line each."""
    from simperf.calibrate.cluster.accuracy import conditions

    cells = []
    for row in rows:
        unit = row.point.unit
        between = " to ".join(_reading(one, unit) for one in row.interval) if row.interval else ""
        where, value = conditions(row.point), _reading(row.predicted, unit)
        cells.append([row.point.series, where, value, between, f"{row.load:.0%}"])
    return to_text(FittedTable(("series", "conditions", "predicted", "90 %", "cores"), cells, heads=2))


def _line(*cells: str) -> str:
    """A line of a table of a page."""
    return f"| {' | '.join(cells)} |"


def _held(rows: Sequence[PredictedPoint]) -> str:
    """How many of the points that were not fitted lie in their intervals, and how wide these are."""
    told = [row for row in rows if row.interval is not None and not row.fitted]
    if not told:
        return "No point that was not fitted has an interval."
    inside = sum(row.covered for row in told) / len(told)
    wide = sorted((high / low) ** 0.5 - 1.0 for low, high in (row.interval for row in told if row.interval))
    middle, far = wide[len(wide) // 2], wide[(9 * len(wide)) // 10]
    return (
        f"90 % intervals hold {inside:.0%} of the {len(told)} points that were not fitted; "
        f"half of them reach {middle:.1%} to either side or less, nine of ten {far:.0%}."
    )


def _reading(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:.2f} {unit}"
    return f"{value * 1e3:.2f} ms"
