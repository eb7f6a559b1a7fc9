"""The frame of a report: header, contents, sections, and the style and script that they share, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from simperf.errors import InputError, Problem
from simperf.files import write_text
from simperf.report.phrases import numbers

__all__ = ["PageSection", "definitions", "numeric", "page", "paragraphs", "save_page", "table"]


@dataclass(frozen=True, slots=True)
class PageSection:
    """One part of a report.

    Parameters
    ----------
    title : str
        Its heading, plain text.
    body : str
        HTML, everything that came from outside escaped.
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


def page(title: str, sections: Sequence[PageSection], *, question: str = "", answer: str = "", lead: str = "") -> str:
    """A whole report.

    Parameters
    ----------
    title, question : str
        Plain text.
    answer : str
        The number that was asked for, with its unit; plain text.
    lead : str
        What stands under the answer; HTML.
    sections : sequence of PageSection

    Returns
    -------
    str
        HTML that refers to nothing outside itself.
    """
    from simperf.version import __version__

    assets = files(__package__).joinpath("assets")
    style, script = (assets.joinpath(name).read_text("utf-8") for name in ("report.css", "timeline.js"))
    contents = "".join(f'<li><a href="#{part.anchor}">{escape(part.title)}</a></li>' for part in sections)
    bodies = "".join(
        f'<section id="{part.anchor}" aria-labelledby="{part.anchor}-h">'
        f'<h2 id="{part.anchor}-h">{escape(part.title)}</h2>{part.body}</section>\n'
        for part in sections
    )
    head = f"<h1>{escape(title)}</h1>"
    head += f'<p class="question">{escape(question)}</p>' if question else ""
    head += f'<p class="answer">{escape(answer)}</p>' if answer else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">To the answer</a>\n'
        f'<header>{head}{lead}<nav aria-label="Contents"><ul>{contents}</ul></nav></header>\n'
        f'<main id="main">\n{bodies}</main>\n'
        f"<footer>simperf {escape(__version__)}. Times are simulated unless marked measured.</footer>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
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
) -> str:
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
    head, rows = [head[i] for i in kept], [[row[i] for i in kept] for row in rows]
    kinds = ["n" if i in numbers else "long" if i in long else "" for i in kept]

    def cell(index: int, value: Any) -> str:
        kind = f' class="{kinds[index]}"' if kinds[index] else ""
        return f"<td{kind}>{escape(str(value))}</td>"

    heads = "".join(
        f'<th scope="col"{" class=n" if kind == "n" else ""}>{escape(text)}</th>'
        for text, kind in zip(head, kinds, strict=True)
    )
    body = "".join(f"<tr>{''.join(cell(i, value) for i, value in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def numeric(rows: Sequence[Sequence[Any]]) -> list[int]:
    """Columns whose cells are all numbers, with or without a unit."""
    return [i for i in range(len(rows[0]) if rows else 0) if numbers([row[i] for row in rows])]


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """Names with their texts, both plain."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows) + "</dl>"


def paragraphs(lines: Iterable[str]) -> str:
    """A list of plain sentences."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
