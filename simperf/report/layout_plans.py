"""Output of `simperf plan --layouts`: the ranking of layouts, what was not simulated and why."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from simperf.json_format import json_text
from simperf.report.rows import rows_text
from simperf.report.terminal import columns
from simperf.study.layouts import LayoutPlan, RankedLayout
from simperf.study.layouts.ties import TIE
from simperf.study.planning.rounding import hours
from simperf.units import format_quantity

__all__ = ["layouts_output", "summary"]

#: how columns of the parts of a step begin
_PART = "part: "


def layouts_output(found: LayoutPlan, form: Literal["table", "json", "csv"], *, all_rows: bool = False) -> str:
    """A search as a table of its first layouts, or of all, or as JSON or CSV of all."""
    if form == "table":
        return _format_layouts(found, most=10**6 if all_rows else 10)
    document = found.to_dict()
    if form == "json":
        return json_text(document)
    units = dict.fromkeys(("step", "step_low", "step_high", "bound", "time"), "s")
    units |= {"tokens_per_second": "1/s", "memory": "B", "cost": "USD", "price": "USD/h"}
    ranked = [_flat(row) for row in document["ranked"]]
    keys = dict.fromkeys(key for row in ranked for key in row)
    parts = [key for key in keys if key.startswith(_PART)]
    order = [*(key for key in keys if key not in parts), *parts]
    rows = [{key: row.get(key) for key in order} for row in ranked]
    return rows_text(rows, "csv", units=units | dict.fromkeys(parts, "s"))


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A ranked layout with a number or a text under each key."""
    low, high = row["step_interval"] or (None, None)
    ends = {"step_low": low, "step_high": high}
    found: dict[str, Any] = {}
    for key, value in row.items():
        found |= ends if key == "step_interval" else {key: value}
    if "stage_layers" in found:
        found["stage_layers"] = " ".join(map(str, row["stage_layers"]))
    return found | {f"{_PART}{name}": value for name, value in found.pop("parts").items()}


def _format_layouts(found: LayoutPlan, *, most: int = 10) -> str:
    """As text: the question, the ranked layouts (at most so many), and what became of all others."""
    request = found.request
    lines = _fill(request.title, "")
    lines += _fill(f"{request.name}, {request.batch} samples of {request.model.sequence} tokens a step", "")
    lines += _fill(f"Assumed: {'; '.join(request.assumed)}.", "") if request.assumed else []
    lines.append("")
    several = len(request.machines) > 1
    for one in found.ranked[:most]:
        lines += _block(one, several=several)
    if len(found.ranked) > most:
        lines.append(f"{len(found.ranked) - most} more were simulated: --all lists them")
    lines.append("")
    for line in summary(found):
        text = line.lstrip()
        lines += _fill(text, line.removesuffix(text))
    return "\n".join(lines)


def _block(one: RankedLayout, *, several: bool) -> Iterator[str]:
    """Lines of a layout: what it is, its numbers, and why it stands where it does."""
    where = f"{one.machine.gpus} GPUs of {one.machine.name}: " if several else ""
    yield from _fill(where + one.choice.name, f"{one.number:>3}{'*' if one.best else ' '} ")
    step = format_quantity(one.step, "s", digits=4)
    if one.interval:
        step += " [{} .. {}]".format(*(format_quantity(end, "s", digits=3) for end in one.interval))
    facts = [step, f"MFU {100 * one.used:.3g} %" if one.used else "", f"{one.tokens:,.0f} tokens/s"]
    facts.append(f"{format_quantity(one.memory, 'B', digits=3)} per GPU")
    facts += [hours(one.time)] if one.time is not None else []
    facts += [f"goodput {100 * one.goodput:.1f} %"] if one.goodput < 1.0 else []
    facts += [f"{one.cost:,.2f} USD"] if one.cost is not None else []
    yield from _fill("  ".join(filter(None, facts)), " " * 5)
    yield from _fill(one.reason, " " * 5)


def summary(found: LayoutPlan) -> Iterator[str]:
    """Layouts that were looked at, how sure the answer is, and prices; a sentence each, details indented."""
    counts, request = found.counts(), found.request
    said = {
        "do not fit": ("does not fit in memory", "do not fit in memory"),
        "simulated": ("was simulated", "were simulated"),
        "without result": ("gave no result", "gave no result"),
        "ruled out by bound": (
            "is ruled out by a lower bound on its step",
            "are ruled out by a lower bound on their step",
        ),
        "not reached": ("was not reached", "were not reached"),
    }
    rare = ("without result", "not reached")
    parts = [
        f"{counts[key]:,} {words[counts[key] != 1]}" for key, words in said.items() if counts[key] or key not in rare
    ]
    told = f"{counts['layouts']:,} layouts: {', '.join(parts)}"
    yield f"{told}."
    if counts["cannot be simulated"]:
        yield f"{counts['cannot be simulated']:,} more cannot be simulated:"
        reasons = dict.fromkeys(why for one in found.searched for why in one.machine.refusals)
        for why in list(reasons)[:3]:
            yield f"  {why}"
    for name, why in found.failed[:3]:
        yield f"{name} was not simulated: {why}"
    gap = found.gap()
    others = "no other layout that can be simulated" if counts["cannot be simulated"] else "no other layout"
    fastest = f"The search is complete: {others} is faster."
    if gap > 0:
        fastest = f"A layout that was not simulated may be faster by {100 * gap:.1f} % at most."
    yield f"{fastest} The fastest is {100 * found.bound_gap():.1f} % above its own bound."
    told = (
        f"Steps of one machine that differ by less than {100 * (TIE - 1):.2g} % cannot be distinguished: "
        "errors of nine in ten published pairs were smaller."
    )
    if near := found.near():
        told += f" Of layouts that were not simulated, {near:,} may be as near."
    yield told
    if not any(one.feasible for one in found.ranked):
        asked = [f"deadline of {hours(request.deadline)}"] if request.deadline < math.inf else []
        asked += [f"budget of {request.budget:,.2f} USD"] if request.budget < math.inf else []
        yield f"No layout meets the {' and the '.join(asked)}: the fastest stands first."
    else:
        yield "* Pareto-optimal in time, cost and GPUs"
    if found.why_not:
        yield f"No 90 % intervals: {found.why_not}"
    elif any(one.interval for one in found.ranked):
        told = "90 % intervals are of each step by itself; most of the error is common to layouts of one model."
        yield told
    for machine in request.machines:
        if machine.price is None:
            other = f" ({machine.other_price})" if machine.other_price else ""
            yield f"No price is known for {machine.name}{other}: --price or [prices] own gives one."
        elif machine.price_source:
            price = f"{machine.name}: {machine.price:,.2f} USD/h for {machine.gpus} GPUs ({machine.price_source})"
            yield price


def _fill(text: str, lead: str) -> list[str]:
    """A text in lines of the width, with a lead before the first and as many spaces before the others."""
    more = " " * len(lead)
    return textwrap.wrap(text, columns(), initial_indent=lead, subsequent_indent=more, break_on_hyphens=False)
