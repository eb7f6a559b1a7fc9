"""Words that a terminal and a page say alike: what limits a run, and which cells of a table are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from simperf.analysis.limits import busiest, headroom
from simperf.analysis.overlap import overlap
from simperf.analysis.regime import regime
from simperf.engine.recorder import Category
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["limit_words", "numbers"]

#: begins as a number does, but is no count of things, as in ``2 x dgx-1v``
_NUMBER = re.compile(r"[-+]?\d(?!\d* x )")


def limit_words(result: Result) -> list[tuple[str, str]]:
    """What limits a run: its regime, the busiest resource, the floor, and what is hidden, each with its words."""
    rows = []
    bound, limit, room = regime(result), busiest(result), headroom(result)
    if result.spans:
        state = "nothing is active" if bound.name == "idle" else "busy"
        rows.append(("regime", f"{bound.name} ({state} for {_percent(bound.share)} of the time)"))
    if limit is not None:
        share = _percent(limit.utilisation)
        state = f"{share} used" if limit.kind in ("link", "host") else f"at work for {share} of the time"
        rows.append(("busiest", f"{limit.name} ({limit.kind}), {state}"))
    if room is not None:
        above = "the run is at its floor" if room.ratio < 1 + 1e-6 else f"the run takes {room.ratio:.4g} times that"
        if 1 + 1e-6 <= room.ratio < 1.01:
            above = f"the run takes {(room.ratio - 1) * 100:.2g} % more"
        rows.append(("floor", f"{format_quantity(room.floor, 's')} set by {room.name}; {above}"))
    moving: tuple[Category, ...] = ("communication", "copy")
    for category in moving:
        found = overlap(result, category)
        if found.total > 0:
            text = f"{_percent(found.share)} of {format_quantity(found.total, 's')} hidden under kernels"
            rows.append((category, text))
    return rows


def numbers(cells: Iterable[object]) -> bool:
    """Whether all cells of a column that say something are numbers, with or without a unit.

    Examples
    --------
    >>> numbers(["1.5 ms", "-3 %", ""]), numbers(["1 x dgx-1v", "2 x dgx-1v"]), numbers(["ring", "2"])
    (True, False, False)
    """
    said = [str(cell) for cell in cells if str(cell) not in ("", "-")]
    return bool(said) and all(_NUMBER.match(cell) for cell in said)


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
