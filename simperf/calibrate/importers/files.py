"""Files of measurements into one data set, each by what it is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from simperf.calibrate.dataset import Dataset, Value
from simperf.calibrate.importers.imported import KINDS, MOST_NAMED, Imported, Points, kind_of, read_measurements
from simperf.calibrate.importers.kineto import import_kineto
from simperf.calibrate.importers.nccl_tests import import_nccl_json, import_nccl_text
from simperf.calibrate.importers.table import as_collective, import_table, ranks_column
from simperf.errors import InputError, Problem, UnknownNameError

__all__ = ["import_file", "import_files"]


#: by what is said of files: which files it has an effect on
_REQUIRED = {
    "collective": "a log of nccl-tests, or a table of a collective's times",
    "ranks": "a log of nccl-tests, or with --collective a table without a column of ranks",
    "series": "without --collective a table without a column series",
}


def import_file(
    path: str | os.PathLike[str], *, kind: str = "", collective: str = "", ranks: int = 0, series: str = ""
) -> Imported:
    """Import one file.

    Parameters
    ----------
    path : str or os.PathLike
    kind : str
        One of `KINDS`; found out if left out.
    collective : str
        Of an nccl-tests log that does not say which; that a table is of.
    ranks : int
        Of a log or such a table that does not say how many; 0 if it does.
    series : str
        Of a table without such a column; default: the file's name.

    Raises
    ------
    InputError
        Nothing in it could be read; every reason is given.
    UnknownNameError
        There is no such kind.
    """
    if kind and kind not in KINDS:
        raise UnknownNameError("kind of measurements", kind, KINDS)
    name = os.fspath(path)
    text = read_measurements(path)
    kind = kind or kind_of(text)
    used: set[str] = set()
    if kind == "kineto":
        try:
            found = import_kineto(text, name)
        except MemoryError:
            message = "the trace needs more memory than this computer has"
            raise InputError(Problem(message, file=name, expected="a trace of fewer steps")) from None
    elif kind == "csv":
        found = import_table(text, name, series=series)
        used = {"series"} if not collective and series in found.dataset.series else set()
        if collective and found.dataset.measurements:
            used = {"collective"} if all(ranks_column(one) for one in found.dataset) else {"collective", "ranks"}
            try:
                found = as_collective(found, name, collective=collective, ranks=ranks)
            except InputError as error:
                raise InputError([replace(one, file=one.file or name) for one in error.problems]) from None
    elif kind == "nccl-tests":
        used = {"collective", "ranks"}
        if text.lstrip()[:1] in ("{", "["):
            found = import_nccl_json(text, name, collective=collective, ranks=ranks)
        else:
            found = import_nccl_text(text, name, collective=collective, ranks=ranks)
    else:
        known = ", ".join(KINDS)
        raise InputError(Problem("what this is cannot be determined", file=name, key="--kind", expected=known))
    if not found.dataset.measurements:
        raise InputError(list(found.problems) or [Problem("nothing in it could be read", file=name, expected=kind)])
    return replace(found, used=frozenset(used))


def import_files(paths: Sequence[str | os.PathLike[str]], **given: str | int) -> Imported:
    """Import files into one data set; what some of them lack does not stop the others.

    Parameters
    ----------
    paths : sequence of str or os.PathLike
    **given
        As of `import_file`.

    Raises
    ------
    InputError
        Nothing in any of them could be read, or something that was given had no effect on any.
    """
    points = Points()
    problems: list[Problem] = []
    notes: list[str] = []
    sources: list[str] = []
    unread: list[str] = []
    used = {"kind"}
    machine: dict[str, Value] = {}
    versions: dict[str, str] = {}
    for path in paths:
        try:
            found = import_file(path, **given)  # type: ignore[arg-type]
        except InputError as error:
            problems += error.problems
            unread.append(str(path))
            used |= _REQUIRED.keys()
            continue
        used |= found.used
        points.extend(found.dataset)
        problems += found.problems
        machine |= found.dataset.machine
        versions |= found.dataset.versions
        notes += found.dataset.notes
        sources.append(Path(path).name)
    if not points.all():
        more = len(problems) - MOST_NAMED
        rest = [Problem(f"and {more} problems more")] if more > 0 else []
        raise InputError([*problems[:MOST_NAMED], *rest])
    _refuse_unused({key: value for key, value in given.items() if value and key not in used})
    made: dict[str, Value] = {"command": "simperf calibrate import", "source": ", ".join(sources)}
    # without folders, which may have a user's name in them
    notes += [str(replace(problem, file=Path(problem.file).name)) for problem in problems[:MOST_NAMED]]
    if len(problems) > MOST_NAMED:
        notes.append(f"{len(problems) - MOST_NAMED} more problems are not named here")
    title = f"imported from {', '.join(sources)}"
    data = Dataset(title, machine, versions, made, points.all(), tuple(dict.fromkeys(notes)))
    return Imported(data, tuple(problems), tuple(unread))


def _refuse_unused(given: Mapping[str, str | int]) -> None:
    """Refuse what was said of files and has no effect on any of them."""
    if given:
        raise InputError(
            [
                Problem("has no effect on these files", file=f"--{key}", value=str(value), expected=_REQUIRED[key])
                for key, value in given.items()
            ]
        )
