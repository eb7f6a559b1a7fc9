"""The frame of a report and the parts that it is made of: tables, lists, shares of a time; all from templates."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simperf.errors import InputError, Problem
from simperf.files import write_text
from simperf.report.html.templating import component, render
from simperf.report.language import current, worded
from simperf.report.phrases import numbers
from simperf.report.style import COLORS, HATCHES
from simperf.units import format_quantity

if TYPE_CHECKING:
    from markupsafe import Markup

#: names of languages as HTML has them, where they are not ours
_TAGS = {"zh": "zh-Hans"}

__all__ = [
    "PageSection",
    "definitions",
    "numeric",
    "page",
    "paragraphs",
    "plain_table",
    "reproduction",
    "save_page",
    "shares",
    "table",
]


@dataclass(frozen=True, slots=True)
class PageSection:
    """One part of a report.

    Parameters
    ----------
    title : str
        Its heading, plain text.
    body : Markup
        What a template made; plain text is escaped.
    name : str
        Where links of the contents lead; default: made of the title.
    """

    title: str
    body: str
    name: str = ""

    @property
    def anchor(self) -> str:
        """The identifier of the section on its page."""
        return self.name or "".join(c if c.isalnum() else "-" for c in self.title.lower()).strip("-")


def page(
    title: str,
    sections: Sequence[PageSection],
    *,
    question: str = "",
    answer: str = "",
    lead: Sequence[str] = (),
    winner: str = "",
) -> str:
    """A whole report.

    Parameters
    ----------
    title, question : str
        Plain text.
    answer : str
        The number that was asked for, with its unit: the headline. The title stands in its place if it is empty.
    lead : sequence of str
        Lines below the answer, plain text.
    sections : sequence of PageSection
    winner : str
        Name of the section that the answer leads to, if it names one of several.

    Returns
    -------
    str
        HTML that refers to nothing outside itself.
    """
    from simperf.version import __version__

    return render(
        "page.html",
        title=title,
        sections=sections,
        question=question,
        answer=answer,
        lead=[line for line in lead if line],
        winner=winner,
        version=__version__,
        language=_TAGS.get(current().name, current().name),
    )


def save_page(text: str, path: str | os.PathLike[str]) -> None:
    """Write a report whole or not at all.

    Raises
    ------
    InputError
        The name does not end in ``.html``, or the file cannot be written.
    """
    if not os.fspath(path).lower().endswith((".html", ".htm")):
        raise InputError(Problem("a report is a web page", file=os.fspath(path), expected="a name ending in .html"))
    write_text(path, text)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str,
    numbers: Sequence[int] = (),
    optional: Sequence[int] = (),
    long: Sequence[int] = (),
) -> Markup:
    """A table; cells are plain text.

    Parameters
    ----------
    head : sequence of str
    rows : iterable of sequence
    caption : str
    numbers : sequence of int
        Columns that are set to the right.
    optional : sequence of int
        Columns that are left out where all their cells are empty.
    long : sequence of int
        Columns of sentences, which are kept wide enough to be read.
    """
    rows = list(rows)
    kept = [i for i in range(len(head)) if i not in optional or any(str(row[i]) for row in rows)]
    kinds = ["n" if i in numbers else "long" if i in long else "" for i in kept]
    return component("table", [head[i] for i in kept], [[row[i] for i in kept] for row in rows], kinds, caption)


def plain_table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "") -> Markup:
    """A table without looks, as a notebook shows it."""
    return component("grid", head, rows, [""] * len(head), caption)


def numeric(rows: Sequence[Sequence[Any]]) -> list[int]:
    """Columns whose cells are all numbers, with or without a unit."""
    return [i for i in range(len(rows[0]) if rows else 0) if numbers([row[i] for row in rows])]


def definitions(rows: Iterable[tuple[str, str]]) -> Markup:
    """Names with their texts, both plain."""
    return component("definitions", list(rows))


def paragraphs(lines: Iterable[str]) -> Markup:
    """A list of plain sentences."""
    return component("bullets", list(lines))


def shares(parts: Mapping[str, float], whole: float) -> Markup:
    """A bar of the parts [s] of a time [s], and the same in numbers."""
    there = {name: time for name, time in parts.items() if time > 0}
    if not there or whole <= 0:
        return component("paragraph", "Nothing was recorded on a timeline.", "faint")
    shown = [
        {
            "name": name,
            "color": COLORS.get(name, "#777777"),
            "hatched": name in HATCHES,
            "share": time / whole,
            "time": format_quantity(time, "s"),
            "percent": f"{time / whole * 100:.1f} %",
        }
        for name, time in there.items()
    ]
    return component("shares", shown, ", ".join(f"{worded(str(one['name']))} {one['percent']}" for one in shown))


def reproduction(command: str, remark: str = "") -> list[PageSection]:
    """The section that says how the page is made again; none without a command and a remark."""
    parts = [component("code", command)] if command else []
    parts += [component("paragraph", remark)] if remark else []
    return [PageSection("How to reproduce it", component("sequence", parts))] if parts else []
