"""Every row behind docs/accuracy.md: a data file, and the page that says what is in it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from simperf.accuracy.tables import QUOTED
from simperf.accuracy.validation import ValidationRow
from simperf.report.validation import by_size

if TYPE_CHECKING:
    from simperf.calibrate.cluster.accuracy import PredictedPoint

__all__ = ["rows_csv", "rows_page"]

_FIELDS = {
    "section": "where the row belongs",
    "case": "case of the source, or recording",
    "title": "scenario, or series of a recording",
    "variant": "variant, size or stage",
    "quantity": "which number",
    "question": "which question of the front page it is counted for",
    "class": "fitted, nearly linear, predicted",
    "unit": "of `measured` and `predicted`",
    "measured": "or a range; only of what scenarios quote, and of what was recorded for the project",
    "predicted": "of the same rows",
    "error": "predicted over measured, less one [%]",
    "linear": "error of linear scaling [%]",
    "ring": "error of one GPU and a ring [%]",
    "simple": "error of a ring by data sheets, of the family's median FLOP/s, or of two constants [%]",
    "rests_on": "choices that were made with figures in view",
    "fitted": "what was fitted to anything, of a title's first row",
    "source": "of a title's first row",
    "failure": "why there is no prediction",
}


def rows_csv(
    sections: Mapping[str, Sequence[ValidationRow]],
    clusters: Iterable[tuple[str, Sequence[PredictedPoint]]] = (),
) -> str:
    """Every row as CSV, errors in per cent.

    Parameters
    ----------
    sections : mapping of str to sequence of ValidationRow
    clusters : iterable of (str, sequence of PredictedPoint)
        Recorded clusters in a box, by name.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(_FIELDS), lineterminator="\n", restval="")
    writer.writeheader()
    for section, rows in sections.items():
        writer.writerows(_section(section, rows))
    for name, points in clusters:
        writer.writerows(_cluster(name, points))
    return stream.getvalue()


def _section(section: str, rows: Sequence[ValidationRow]) -> Iterator[dict[str, str]]:
    titles: set[str] = set()
    for row in rows:
        line = {
            "section": section,
            "case": row.case,
            "title": row.title if section == QUOTED else "",
            "variant": row.variant,
            "quantity": row.quantity.removeprefix("metrics."),
            "question": row.question,
            "class": row.kind,
            "error": _percent(row.error),
            **{name: _percent(row.error_of(getattr(row, name))) for name in ("linear", "ring", "simple")},
            "rests_on": row.rests_on,
            "failure": row.failure,
        }
        if section == QUOTED and not row.failure:
            measured = f"{row.low:.6g}" if row.low == row.high else f"{row.low:.6g} to {row.high:.6g}"
            line |= {"unit": row.unit, "measured": measured, "predicted": f"{row.predicted:.6g}"}
        if row.title not in titles:
            titles.add(row.title)
            line |= {"fitted": row.fitted, "source": row.source}
        yield line


def _cluster(name: str, points: Sequence[PredictedPoint]) -> Iterator[dict[str, str]]:
    from simperf.calibrate.cluster.accuracy import conditions

    for one in points:
        yield {
            "section": "A cluster in one box",
            "case": name,
            "title": one.point.series,
            "variant": conditions(one.point),
            "class": "fitted" if one.fitted else "predicted",
            "unit": one.point.unit,
            "measured": f"{one.point.median:.6g}",
            "predicted": f"{one.predicted:.6g}",
            "error": _percent(one.error),
            "simple": _percent(math.nan if one.plain_error is None else one.plain_error),
        }


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.2f}"


_HEAD = """# Every row behind the accuracy page

Predictions beside [published measurements](accuracy.md), row by row, are in
[accuracy-rows.csv](_static/accuracy-rows.csv). Errors are predicted over measured, less one. Its columns:
"""


def rows_page(sections: Mapping[str, Sequence[ValidationRow]]) -> str:
    """The page docs/accuracy-rows.md: the columns of the data file, and how many rows each section has."""
    parts = [_HEAD, "| column | what it has |", "|---|---|"]
    parts += [f"| `{name}` | {text} |" for name, text in _FIELDS.items()]
    parts += ["", "| section | rows |", "|---|--:|"]
    parts += [f"| {title} | {len(rows)} |" for title, rows in sections.items()]
    for title, rows in sections.items():
        if rows and all(row.variant.endswith(" B") for row in rows):
            parts += ["", f"## {title}", "", by_size(rows)]
    return "\n".join(parts) + "\n"
