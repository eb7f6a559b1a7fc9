"""Output that results, tables and plans share: figures, pages and data frames, made when they are asked for.

What a run or a study returns stands below `simperf.report`, which draws it. Its methods reach the report through
`report_module` alone, and load it when they are called: a plain run loads neither matplotlib nor pandas.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from simperf.errors import InputError, Problem
from simperf.files import write_packed

__all__ = [
    "DATA",
    "PAGE",
    "PICTURE",
    "check_name",
    "data_frame",
    "drawn",
    "html_table",
    "report_module",
    "write_document",
    "write_page",
]

#: how names of files of a kind end, what is said of others, and what is expected
Kind = tuple[tuple[str, ...], str, str]
PICTURE: Kind = ((".png", ".svg", ".pdf"), "no picture format is known for this name", "FILE.png, .svg or .pdf")
DATA: Kind = ((".json", ".json.gz"), "the name must end in .json or .json.gz", "FILE.json or .json.gz")
PAGE: Kind = ((".html", ".htm"), "the name must end in .html or .htm", "FILE.html")


def report_module(name: str) -> Any:
    """Load a module of `simperf.report`."""
    return import_module(f"simperf.report.{name}")


def check_name(path: str | os.PathLike[str], kind: Kind) -> None:
    """Refuse a name that does not say what the file is to be.

    Raises
    ------
    InputError
        With the names that would do.
    """
    endings, message, expected = kind
    if not isinstance(path, str | os.PathLike):
        raise InputError(Problem("the name of a file is expected", value=repr(path), expected=expected))
    if not os.fspath(path).lower().endswith(endings):
        raise InputError(Problem(message, file=os.fspath(path), expected=expected))


def write_document(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write plain data as ``.json`` or ``.json.gz``, whole or not at all; the same data give the same bytes.

    Raises
    ------
    InputError
        Another name, or the file cannot be written.
    """
    check_name(path, DATA)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_packed(path, text.encode("utf-8"))


def write_page(path: str | os.PathLike[str], made: Callable[[Any], str]) -> None:
    """Write a page, which is made of `simperf.report.html` after its file's name is known to be one of a page.

    Raises
    ------
    InputError
        The name does not end in ``.html``, or the file cannot be written.
    """
    check_name(path, PAGE)
    pages = report_module("html")
    pages.save_page(made(pages), path)


def drawn(figure: Any, path: str | os.PathLike[str] | None) -> Any:
    """The figure, written to `path` unless that is None."""
    if path is not None:
        check_name(path, PICTURE)
        report_module("style").save(figure, path)
    return figure


def data_frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Any:
    """Rows as a `pandas.DataFrame`.

    Raises
    ------
    InputError
        pandas is not installed.
    """
    try:
        pandas = import_module("pandas")
    except ImportError:
        message = "pandas is not installed, which a data frame needs"
        raise InputError(Problem(message, expected="pip install pandas")) from None
    return pandas.DataFrame(list(rows), columns=list(columns))


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """A plain table for notebooks."""
    return str(report_module("html.page").plain_table(header, rows, caption=caption))
