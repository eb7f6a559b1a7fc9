"""A result as a notebook shows it: the answer, the other numbers, and where the time went."""

from __future__ import annotations

from simperf.analysis.breakdown import breakdown
from simperf.outputs import html_table
from simperf.report.phrases import answer_words, interval_words, limit_words
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["result_html"]

#: metrics that are shown
_METRICS = 12


def result_html(result: Result) -> str:
    """One result as a table of HTML."""
    rows = [["time", str(result.number("time"))]]
    listed = list(result.metrics.items())
    rows += [[name, str(metric)] for name, metric in listed[:_METRICS]]
    if len(listed) > _METRICS:
        rows.append(["", f"and {len(listed) - _METRICS} more: .metrics"])
    parts = {name: time for name, time in breakdown(result).items() if time > 0}
    rows += [
        [f"of it {name}", f"{format_quantity(time, 's')}, {time / result.time:.1%}"] for name, time in parts.items()
    ]
    rows += [list(row) for row in limit_words(result)]
    rows.append(["", interval_words(result)])
    return html_table(["", "value"], rows, caption=f"{result.name}: {answer_words(result)}")
