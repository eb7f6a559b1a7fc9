"""The simulated machine at work, in a terminal: what each row does now, who waits in queues, how full links are.

The run is played back from its timeline, slowed down or sped up, so that the same run always looks the same.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from simperf.engine.recorder import Span
from simperf.report.counters import series
from simperf.report.gantt import gantt_rows, link_rates
from simperf.report.tables import COLORS
from simperf.report.terminal import bar, unicode_output
from simperf.results import Result
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Frames", "play_back"]

_ROWS = 24
_LINKS = 6
_BAR = 24


class Frames:
    """The views of a run, one for each instant.

    Parameters
    ----------
    result : Result
        With its timeline.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self._rows = [(row, [span.start for span in row.spans]) for row in gantt_rows(result)[0]]
        self._queues = series(result, "queue length")
        self._links = link_rates(result)[:_LINKS]

    def at(self, now: float) -> RenderableType:
        """The machine at `now` [s]."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        unicode = unicode_output()
        total = self.result.time
        table = Table.grid(padding=(0, 2))
        for row, starts in self._rows[:_ROWS]:
            label = f"{row.owner} {row.label}" if row.name else row.label
            span = _current(row.spans, starts, now)
            if span is None:
                table.add_row(label, Text("idle", style="dim"))
                continue
            whole = span.end - span.start
            share = (now - span.start) / whole if whole > 0 else 1.0
            style = COLORS.get(span.category, "white")
            table.add_row(label, Text(bar(share, _BAR, unicode=unicode), style=style), Text(span.name, style=style))
        if len(self._rows) > _ROWS:
            table.add_row(f"and {len(self._rows) - _ROWS} more rows")
        for track, (times, values) in self._queues.items():
            waiting = float(values[max(0, bisect.bisect_right(times, now) - 1)])
            highest = float(values.max()) or 1.0
            text = f"{waiting:g} of at most {highest:g} in the queue"
            table.add_row(f"{track} queue", Text(bar(waiting / highest, _BAR, unicode=unicode)), text)
        for name, times, shares, _ in self._links:
            share = float(shares[max(0, bisect.bisect_right(times, now) - 1)])
            table.add_row(f"link {name}", Text(bar(share, _BAR, unicode=unicode), style="magenta"), f"{share:.0%} full")
        clock = f"{format_quantity(now, 's')} of {format_quantity(total, 's')}"
        head = Text.assemble((self.result.name, "bold"), "  ", (clock, "bold green"))
        whole_bar = Text(bar(now / total if total > 0 else 1.0, 72, unicode=unicode), style="green")
        return Group(head, whole_bar, Text(""), table)

    def instants(self, seconds: float, *, rate: float = 12.0) -> Iterator[float]:
        """Instants [s] to show when the run is spread over `seconds` at `rate` views a second; the end is the last."""
        count = max(1, round(seconds * rate))
        return (self.result.time * i / count for i in range(count + 1))


def _current(spans: Sequence[Span], starts: Sequence[float], now: float) -> Span | None:
    """The innermost of the spans that holds `now`: the one that began last and has not ended."""
    index = bisect.bisect_right(starts, now)
    for span in reversed(spans[max(0, index - 64) : index]):
        if span.end >= now:
            return span
    return None


def play_back(result: Result, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Show a run in the terminal within `seconds` of a person's time; Ctrl-C ends it early."""
    from rich.console import Console
    from rich.live import Live

    frames, rate = Frames(result), 12.0
    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    with Live(console=console, refresh_per_second=rate, transient=False) as live:
        for now in frames.instants(seconds, rate=rate):
            live.update(frames.at(now), refresh=True)
            sleep(1 / rate)
