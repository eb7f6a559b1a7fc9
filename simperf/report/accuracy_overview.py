"""The overview of accuracy by question, for the terminal and for docs/accuracy.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

from simperf.accuracy.coverage import grade_intervals
from simperf.accuracy.fitted_constants import ListedConstant
from simperf.accuracy.overview import PASSES, STEPS, ChoiceLine, OverviewLine, QuestionSummary
from simperf.accuracy.questions import SCALING
from simperf.accuracy.validation import ValidationRow
from simperf.analysis.left_out import FILES, read_errors
from simperf.analysis.questions import ONE_GPU_GROUPS

__all__ = [
    "choices_markdown",
    "constants_markdown",
    "expectations_markdown",
    "families_markdown",
    "overview_markdown",
    "overview_text",
    "scaling_counts",
]

_NOTES = (
    "Only figures that need a prediction are counted: neither those that restate what was given (fitted), nor those "
    "within 3 % of linear scaling from one GPU's speed. Bias is the median signed error, as of a time; below 0, "
    "predictions are too fast. The lines below a question are its parts, and baselines on the same points; nearer is "
    "the share of points at which the prediction is nearer than the baseline. Interval is the share of published "
    "figures that lie in the 90 % interval which a run prints, made without their family (How sure a prediction is). "
    "Kernels are of shapes that nothing was fitted to; their baselines are fitted to the shapes that the constants "
    "were fitted to. The error of a large model is that of an iteration's time; ratios of schedules and verdicts on "
    "what fits are not counted."
)


def _percent(value: float, *, sign: bool = False) -> str:
    if math.isnan(value):
        return "-"
    digits = ".1f" if abs(value) < 10 else ".3g"
    return f"{100 * value:{'+' if sign else ''}{digits}} %"


#: parts of a question that stand in front -> their group of errors
_IN_FRONT = {STEPS: ONE_GPU_GROUPS[0], PASSES: ONE_GPU_GROUPS[1]}


def _held(question: str, group: str = "") -> str:
    """Share of a question's figures, or a group's, that lie in their intervals while their family is left out."""
    errors = [one for one in read_errors(question) if group in ("", one.group)] if question in FILES else ()
    return _percent(grade_intervals(question, errors).share) if errors else "none"


def _cells(line: OverviewLine) -> list[str]:
    nearer = "" if math.isnan(line.nearer) else f"{100 * line.nearer:.0f} %"
    return [str(line.points), _percent(line.median), _percent(line.p90), _percent(line.bias, sign=True), nearer]


def overview_text(summaries: Sequence[QuestionSummary]) -> str:
    """Lines of 80 characters: a line a question, lines of its parts and baselines, and what is not counted."""
    head = ["points", "median", "90 %", "bias", "nearer"]
    lines = [f"{'what to expect':<33}" + "".join(f"{each:>9}" for each in head)]
    for one in summaries:
        lines.append(f"{one.question:<33}" + "".join(f"{each:>9}" for each in _cells(one.whole)))
        lines += [f"{'  ' + part.name:<33}" + "".join(f"{each:>9}" for each in _cells(part)) for part in one.parts]
        lines.append(f"  not counted: {_left(one)}")
    return "\n".join([*(line.rstrip() for line in lines), "", *wrap(_NOTES, 80)])


def expectations_markdown(summaries: Sequence[QuestionSummary]) -> str:
    """Expected accuracy, a line a question: errors that need a prediction, intervals, and the best baseline."""
    own = ("median error", "90th percentile", "bias", "90 % intervals hold")
    heads = ("your question", *own, "best baseline", "its median error", "nearer than it")
    lines = [f"| {' | '.join(heads)} |", "|---|--:|--:|--:|--:|---|--:|--:|"]
    for one in summaries:
        _, middle, most, bias, _ = _cells(one.whole)
        cells = [f"**{one.question}**", middle, most, bias, _held(one.question), *_best_baseline(one)]
        lines.append(f"| {' | '.join(cells)} |")
        for part in one.parts:
            if part.name in _IN_FRONT:
                _, middle, most, bias, _ = _cells(part)
                cells = [f"&ensp;{part.name}", middle, most, bias, _held(one.question, _IN_FRONT[part.name])]
                lines.append(f"| {' | '.join(cells)} | | | |")
    told = "*Median error* and *90th percentile* are of absolute errors. *Bias* is the median signed error, as of a "
    told += "time; below 0, predictions are too fast (of memory, too small). *90 % intervals hold* is the share of the "
    told += "figures that lie in their intervals. In brackets behind a baseline's median error stands simperf's on the "
    told += "same figures; *nearer than it* is the share of these figures at which simperf is nearer than the baseline."
    return "\n".join([*lines, "", *wrap(told, 120)])


def _best_baseline(one: QuestionSummary) -> tuple[str, str, str]:
    """The baseline whose worst median is least: its name, medians, and shares of points that are nearer."""
    beside = [part for part in one.parts if not math.isnan(part.nearer)]
    if not beside:
        return "none", "", ""
    names = dict.fromkeys(part.name for part in beside)
    best = min(names, key=lambda name: max(part.median for part in beside if part.name == name))
    own = [part for part in beside if part.name == best]
    medians, shares = (sorted(getattr(part, key) for part in own) for key in ("median", "nearer"))
    told = _range([_percent(each) for each in medians])
    same = [part for part in one.parts if part.name.startswith("where ")]  # the figures that baselines are defined of
    if same:
        told += f" (simperf {_percent(same[0].median)})"
    return best, told, _range([f"{100 * each:.0f} %" for each in shares])


def _range(ordered: Sequence[str]) -> str:
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def overview_markdown(summaries: Sequence[QuestionSummary]) -> str:
    """The same as a table of the page."""
    head = "| your question | points | median | 90th percentile | bias | interval | nearer | fitted | nearly linear |"
    lines = [head, "|---|--:|--:|--:|--:|---|--:|--:|--:|"]
    for one in summaries:
        points, middle, most, bias, nearer = _cells(one.whole)
        lines.append(
            f"| **{one.question}** | {points} | {middle} | {most} | {bias} | {_held(one.question)} | {nearer} "
            f"| {one.fitted} | {one.nearly_linear} |"
        )
        for part in one.parts:
            points, middle, most, bias, nearer = _cells(part)
            lines.append(f"| &ensp;{part.name} | {points} | {middle} | {most} | {bias} | | {nearer} | | |")
    failed = sum(one.failed for one in summaries)
    return "\n".join([*lines, "", *wrap(_NOTES, 120), *([f"Without a prediction: {failed}."] if failed else [])])


def scaling_counts(rows: Sequence[ValidationRow]) -> str:
    """One line that distinguishes the numbers of figures of scaling; empty without any."""
    own = [row for row in rows if row.question == SCALING and not math.isnan(row.error)]
    asked = [row for row in own if row.kind == "predicted"]
    linear = [row for row in asked if not math.isnan(row.linear)]
    ring = [row for row in linear if not math.isnan(row.ring)]
    near = sum(row.kind == "nearly linear" for row in own)
    if not linear:
        return ""
    told = (
        f"Of the figures of scaling {len(asked)} need a prediction. For {len(linear)} of them the speed of one GPU is "
    )
    told += (
        f"published, so that lost throughput is defined; for {len(ring)} the baseline of a ring is defined as well. "
    )
    told += f"Intervals are made of {len(read_errors(SCALING))} figures: without efficiencies, with those that are "
    told += f"nearly linear: {near}."
    return "\n".join(wrap(told, 120))


def families_markdown(families: Sequence[Sequence[OverviewLine]]) -> str:
    """Large models by family: the prediction, and the baseline beside it."""
    errors = ("median", "90th percentile")
    heads = ("family", "points", *errors, "bias", "median FLOP/s: points", *errors, "nearer")
    lines = [f"| {' | '.join(heads)} |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for own, simple in families:
        points, middle, most, _, nearer = _cells(simple)
        cells = (own.name, *_cells(own)[:4], points, middle, most, nearer)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def choices_markdown(choices: Sequence[ChoiceLine]) -> str:
    """Listed choices: medians of the figures that rest on each, and of the others of their question."""
    lines = ["| choice | question | points | median error | of the others |", "|---|---|--:|--:|--:|"]
    for one in choices:
        medians = f"{_percent(one.having)} | {_percent(one.without)}"
        lines.append(f"| {one.choice} | {one.question} | {one.points} | {medians} |")
    return "\n".join(lines)


def _left(one: QuestionSummary) -> str:
    counts = [f"{one.fitted} fitted", f"{one.nearly_linear} nearly linear"]
    return ", ".join([*counts, *([f"{one.failed} without a prediction"] if one.failed else [])])


def constants_markdown(constants: Sequence[ListedConstant]) -> str:
    """The list of constants that were read off published figures: one line a constant, whatever files have it."""
    lines = ["| constant | value | set in | read off |", "|---|---|---|---|"]
    for name in dict.fromkeys(one.name for one in constants):
        own = [one for one in constants if one.name == name]
        values = dict.fromkeys(_value(one) for one in own)
        places = f"`{own[0].file}`" + (f" and {len(own) - 1} more" if len(own) > 1 else "")
        told = ", ".join(values) if len(values) <= 2 else "several"
        kind = " (a choice)" if own[0].choice else ""
        kind += f"; {own[0].only} alone" if own[0].only else ""
        lines.append(f"| {name}{kind} | {told} | {places} | {own[0].source} |")
    return "\n".join(lines)


def _value(one: ListedConstant) -> str:
    if one.value is None or isinstance(one.value, dict):
        return "several"
    if isinstance(one.value, list):
        return ", ".join(map(str, one.value))
    value = str(one.value).lower() if isinstance(one.value, bool) else one.value
    return f"{one.key} = {value}" if one.key else str(value)
