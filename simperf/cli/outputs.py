"""Files that commands write: names that are refused before anything is run, and a result's files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simperf.cli.terminal import note
from simperf.outputs import DATA, PAGE, PICTURE

if TYPE_CHECKING:
    from simperf.results import Result

__all__ = ["read_ranks", "verify_outputs", "write_outputs", "write_report"]

#: ranks that a trace shows by their numbers, at most
MOST_RANKS = 1024

#: files that commands write: the option of each, how its name may end, and what to say when it does not
_OUTPUTS: Mapping[str, tuple[str, tuple[tuple[str, ...], str, str]]] = {
    "trace": ("--trace", DATA),
    "plot": ("--plot", PICTURE),
    "save": ("--save", DATA),
    "map_file": ("--map", PICTURE),
    "report": ("--report", PAGE),
    "page": ("FILE", PAGE),
    "output": ("--output", DATA),
    "profile": ("--output", ((".toml",), "the name must end in .toml", "FILE.toml")),
    "text": ("--output", (("",), "", "")),
}


def verify_outputs(
    *, kind: str = "overview", folder: Path | None = None, reads: Iterable[str | Path] = (), **files: Path | None
) -> None:
    """Refuse, before anything is run, a file that could not be written after, and a kind of picture without one.

    `files` are named as in `_OUTPUTS`, `folder` is that of ``--plots``, `kind` that of ``--plot-kind``. `reads` are the
    files that the command reads: none of them may be written.

    Raises
    ------
    InputError
        All that is wrong with the names.
    """
    from simperf.errors import InputError, Problem
    from simperf.files import is_special

    problems = []
    given = ((_OUTPUTS[name], path) for name, path in files.items() if path is not None)
    outputs = [(option, path, ending) for (option, ending), path in given]
    for option, path, _ in outputs:
        if is_special(path):
            continue
        if path.is_dir():
            problems.append(Problem("this is a directory, a file is expected", file=option, key=str(path)))
        elif not path.absolute().parent.is_dir():
            message = f"there is no folder {str(path.parent)!r}"
            problems.append(Problem(message, file=option, key=str(path), expected="an existing folder"))
        elif not os.access(path.absolute().parent, os.W_OK):
            message = f"no files may be written in {str(path.parent)!r}"
            problems.append(Problem(message, file=option, key=str(path), expected="a folder that you may write in"))
    for option, path, (known, message, expected) in outputs:
        if path.is_dir() or (is_special(path) and option in ("--trace", "--save", "--output")):
            continue
        if not path.name.lower().endswith(known):
            problems.append(Problem(message, file=option, key=str(path), expected=expected))
    named = [(option, path) for option, path, _ in outputs if not is_special(path)]
    for index, (option, path) in enumerate(named):
        twin = next((other for other, one in named[:index] if one.absolute() == path.absolute()), "")
        if twin or any(Path(one).absolute() == path.absolute() for one in reads):
            message = f"{twin or 'the command'} {'writes' if twin else 'reads'} the same file"
            problems.append(Problem(message, file=option, key=str(path), expected="another name"))
    if folder is not None and folder.exists() and not folder.is_dir():
        problems.append(Problem("this is a file, a folder is expected", file="--plots", key=str(folder)))
    if files.get("plot") is None and kind != "overview":
        problems.append(Problem("a kind of picture without a picture", file="--plot-kind", expected="--plot FILE too"))
    if problems:
        raise InputError(problems)


def read_ranks(text: str) -> tuple[int, ...] | None:
    """Ranks by their numbers, from a text such as ``"0,8,17"`` or ``"0-3,16"``; None if there is none.

    Raises
    ------
    InputError
        The text names no ranks, or more than `MOST_RANKS`.
    """
    if not text:
        return None
    from simperf.errors import InputError, Problem

    expected = "numbers and ranges of them, such as 0,8,17 or 0-3"
    found: list[int] = []
    for part in text.split(","):
        first, several, last = part.partition("-")
        ends = [one.strip() for one in (first, last if several else first)]
        if not all(one.isascii() and one.isdigit() and len(one) <= 9 for one in ends) or int(ends[0]) > int(ends[1]):
            raise InputError(Problem("no ranks", file="--trace-ranks", value=repr(part), expected=expected))
        if len(found) + int(ends[1]) - int(ends[0]) >= MOST_RANKS:
            message = f"more than {MOST_RANKS} ranks"
            raise InputError(Problem(message, file="--trace-ranks", value=repr(part), expected=f"{MOST_RANKS} at most"))
        found += range(int(ends[0]), int(ends[1]) + 1)
    return tuple(found)


def write_outputs(
    result: Result,
    *,
    trace: Path | None = None,
    ranks: Sequence[int] | None = None,
    plot: Path | None = None,
    kind: str = "overview",
    save: Path | None = None,
) -> None:
    """Write the files that were asked for, each whole or not at all."""
    if save is not None:
        result.save(save)
        note(f"wrote {save}: `simperf show {save}` prints it")
    if trace is not None:
        from simperf.errors import InputError
        from simperf.report.trace import save_trace

        try:
            save_trace(result, trace, ranks=ranks)
        except InputError as error:
            named = [
                replace(one, file="--trace-ranks", key="") if one.key == "ranks" else one for one in error.problems
            ]
            raise InputError(named) from None
        note(f"wrote {trace}: open it at https://ui.perfetto.dev")
    if plot is not None:
        from simperf.report.plots import plot as draw

        draw(result, plot, kind)
        note(f"wrote {plot}")


def write_report(path: Path, made: Callable[[Any], str], language: str = "en") -> None:
    """Write a page that `made` makes of `simperf.report.html`, in a language, and say where it is."""
    from simperf.report import html
    from simperf.report.language import spoken

    with spoken(language, drawn=False):
        html.save_page(made(html), path)
    note(f"wrote {path}: open it in a browser")
