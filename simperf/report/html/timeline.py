"""The timeline of a report: what the page's script draws, small enough to open at once.

Streams, threads, copies, disks, the busiest links, and below each node what was counted there (queues, memory).

Up to `MOST` spans are handed over one by one. In a longer run, spans that are shorter than a
2,000th part of the time are put together, a block for each category and part of the time, with the
share of the block that they fill; the page says how many. Parts are larger where there are still more than
`MOST_BLOCKS` blocks in all rows, so that a page of a large job can be sent by mail. Sums over them stay exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from simperf.engine.recorder import CATEGORIES, Span
from simperf.report.gantt import link_rates
from simperf.report.html.page import table
from simperf.report.html.steps import counter_rows
from simperf.report.html.templating import component
from simperf.report.lanes import TimelineRow, rows
from simperf.report.language import named, worded
from simperf.report.style import COLORS, HATCHES, letters_on, written
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["MOST", "MOST_BLOCKS", "Block", "timeline", "timeline_data"]

#: spans above which short ones are put together
MOST = 12_000
#: parts into which a long run's time is cut
PARTS = 2000
#: blocks above which the parts are made larger, down to so few
MOST_BLOCKS = 48_000
_FEWEST = 250
#: steps of a time [1] and of a share [1] in which the blocks of a long run are handed over
_STEPS, _SHARES = 2_000_000, 1000
_ROWS = 64
_LINKS = 8
_SAMPLES = 4000
_ACTIONS = (
    ("in", "+", "Zoom in"),
    ("out", "−", "Zoom out"),
    ("left", "←", "Earlier"),
    ("right", "→", "Later"),
    ("all", "All", "Show the whole run"),
)
Block = tuple[float, float, str, str, float]  # start [s], length [s], category, name, share of it that is busy [1]


def timeline(result: Result, *, name: str = "timeline-box", most: int = MOST) -> str:
    """The part of a page that shows a result's timeline, with its buttons; empty if none was recorded.

    Parameters
    ----------
    result : Result
    name : str
        Unique on the page.
    most : int
        Spans above which short ones are put together; fewer where several timelines share a page.
    """
    if not (result.spans or link_rates(result)):
        return ""
    data, remark = timeline_data(result, most=most)
    kinds = [kind for kind in data["kinds"] if kind["used"]]
    numbers = _in_numbers(data)
    return component("timeline", name, _ACTIONS, kinds, _packed(data), remark, numbers)


def _packed(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a long run as whole numbers: differences of starts, lengths, shares; the page's script undoes it."""
    flats = [row.get("spans", ()) for row in data["rows"]]
    if sum(map(len, flats)) <= 5 * MOST or not data["time"]:
        return data
    unit, packed = data["time"] / _STEPS, []
    for row, flat in zip(data["rows"], flats, strict=True):
        if not flat:
            packed.append(row)
            continue
        whole, before = list[int](), 0
        for i in range(0, len(flat), 5):
            start, length, share = round(flat[i] / unit), round(flat[i + 1] / unit), round(_SHARES * flat[i + 4])
            whole += [start - before, max(1, length), flat[i + 2], flat[i + 3], max(1, share)]
            before = start
        packed.append({"label": row["label"], "packed": whole})
    return {**data, "rows": packed, "unit": unit, "shares": _SHARES}


def _in_numbers(data: dict[str, Any]) -> str:
    """The rows as a table, for readers who do not see them."""
    cells = []
    for row in data["rows"]:
        if "steps" in row:
            top = format_quantity(row["top"], row["unit"]) if row["unit"] != "1" else f"{row['top']:g}"
            cells.append((row["label"], "", "", "", top))
            continue
        flat = row["spans"]
        busy = sum(flat[i + 1] * flat[i + 4] for i in range(0, len(flat), 5))
        share = f"{busy / data['time'] * 100:.1f} %" if data["time"] > 0 else ""
        cells.append((row["label"], f"{len(flat) // 5:,}", format_quantity(busy, "s"), share, ""))
    text = "The rows of the timeline; waits count as busy, and a link by its rate over its capacity"
    return table(("row", "spans or blocks", "busy", "share", "highest"), cells, caption=text, numbers=(1, 2, 3, 4))


def timeline_data(result: Result, *, most: int = MOST) -> tuple[dict[str, Any], str]:
    """Data that the script draws, and what is to be said of it.

    Returns
    -------
    dict
        ``time`` [s], ``kinds``, ``names``, and ``rows``, each with its ``label`` and flat ``spans``: start [s],
        length [s], index of the kind, index of the name, share that is busy; or with ``steps``, see `counter_rows`.
    str
        What was put together or left out; empty if nothing.
    """
    found, remarks = _fewer(rows(result))
    total = sum(len(row.spans) for row in found)
    width, blocks = 0.0, [list(_blocks(row.spans, 0.0)) for row in found] if total <= most else []
    if total > most:
        blocks, width = _fitting(found, result.time)
    counted, told = counter_rows(result)
    names: dict[str, int] = {}
    kinds = {category: index for index, category in enumerate((*CATEGORIES, "link rate / capacity"))}
    used: set[str] = set()
    drawn: list[dict[str, Any]] = []
    whole = 0
    for index, row in enumerate(found):
        flat: list[float] = []
        for start, length, category, label, share in blocks[index]:
            whole += share == 1.0 and not label.endswith(" together")
            used.add(category)
            flat += [_short(start), _short(length), kinds[category], names.setdefault(label, len(names)), share]
        drawn.append({"label": f"{row.owner} {named(row.label)}" if row.name else named(row.label), "spans": flat})
        if index + 1 == len(found) or found[index + 1].owner != row.owner:
            drawn += counted.pop(row.owner, [])
    drawn += [row for rest in counted.values() for row in rest]
    if width and whole < total:
        remarks.insert(
            0,
            f"Of {total:,} spans, the {total - whole:,} that are shorter than {written(width, 's', digits=3)} are "
            "drawn together in blocks, whose height is the share of the time that they fill; a trace "
            "(--trace FILE) has each.",
        )
    if told:
        remarks.append(told)
    moving = link_rates(result)
    for link, times, shares, _ in moving[:_LINKS]:
        flat = []
        step = max(1, -(-len(times) // _SAMPLES))
        for i in range(0, len(times) - 1, step):
            j = min(i + step, len(times) - 1)
            length = float(times[j] - times[i])
            share = float((shares[i:j] * (times[i + 1 : j + 1] - times[i:j])).sum() / length) if length > 0 else 0.0
            if share > 0:
                used.add("link rate / capacity")
                place = names.setdefault(link, len(names))
                flat += [_short(float(times[i])), _short(length), len(CATEGORIES), place, round(min(share, 1.0), 4)]
        drawn.append({"label": named(f"link {link}"), "spans": flat})
    if len(moving) > _LINKS:
        remarks.append(f"The {_LINKS} busiest of {len(moving)} links are shown.")
    listed = [
        {
            "name": worded(kind),
            "color": COLORS.get(kind, "#777777"),
            "hatch": kind in HATCHES,
            "dark": letters_on(COLORS.get(kind, "#777777")) == "white",
            "used": kind in used,
        }
        for kind in kinds
    ]
    data = {"time": result.time, "kinds": listed, "names": [named(name) for name in names], "rows": drawn}
    return data, " ".join(remarks)


def _fewer(found: list[TimelineRow]) -> tuple[list[TimelineRow], list[str]]:
    """At most as many rows as a page shows: sends put together first, then whatever a node has; and what to say."""
    remarks = []
    if len(found) > _ROWS:
        number = len(found)
        found = _together(found, lambda row: (row.owner, "sends" if row.name.startswith("to ") else row.label))
        remarks.append(f"{number} rows are put together: all sends of a device or host into one.")
    if len(found) > _ROWS:
        number = len(found)
        found = _together(found, lambda row: (row.owner, ""))
        remarks = [f"{number} rows are put together into one a device or host."]
    if len(found) > _ROWS:
        remarks.append(f"The first {_ROWS} of {len(found)} are shown.")
    return found[:_ROWS], remarks


def _together(found: list[TimelineRow], key: Callable[[TimelineRow], tuple[str, str]]) -> list[TimelineRow]:
    """One row for each run of rows with the same owner and name."""
    merged = []
    for (owner, name), group in groupby(found, key=key):
        members = list(group)
        if len(members) == 1:
            merged.append(members[0])
            continue
        spans = sorted((span for row in members for span in row.spans), key=lambda span: span.start)
        merged.append(TimelineRow(owner, f"all {len(members)} {name or 'rows'}", 0, spans))
    return merged


def _fitting(found: Sequence[TimelineRow], time: float) -> tuple[list[list[Block]], float]:
    """Blocks of each row, in the smallest parts of the time [s] of which a page holds all; and the length of a part."""
    parts = PARTS
    while True:
        width = time / parts
        blocks = [list(_blocks(row.spans, width)) for row in found]
        if sum(map(len, blocks)) <= MOST_BLOCKS or parts <= _FEWEST:
            return blocks, width
        parts //= 2


def _short(value: float) -> float:
    return float(f"{value:.7g}")


def _blocks(spans: Sequence[Span], width: float) -> Iterator[Block]:
    """Spans as they are; those shorter than `width` [s] together by category and part of the time."""
    held: dict[tuple[int, str], list[float]] = {}  # part and category: number, busy time
    blocks: list[Block] = []
    for span in spans:
        length = span.end - span.start
        if length >= width:
            blocks.append((span.start, length, span.category, span.name, 1.0))
            continue
        entry = held.setdefault((int(span.start / width), span.category), [0, 0.0])
        entry[0] += 1
        entry[1] += length
    for (part, category), (number, busy) in held.items():
        share = round(min(1.0, busy / width), 4)
        blocks.append((part * width, width, category, f"{int(number)} {category} together", share))
    blocks.sort(key=lambda block: (block[0], -block[1]))
    yield from blocks
