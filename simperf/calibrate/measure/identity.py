"""The machine and set-up that the parts of a data set have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping

from simperf.calibrate.dataset import Dataset, Value
from simperf.errors import InputError, Problem

__all__ = ["refuse_another"]

#: versions that must not change between the parts of one data set
_SAME = ("torch", "cuda", "driver")
#: facts that may: memory by some pages between two starts of a system
_MAY_DIFFER = frozenset({"memory"})


def refuse_another(
    old: Dataset,
    path: str | os.PathLike[str],
    machine: Mapping[str, Value],
    versions: Mapping[str, str],
    *,
    conditions: Mapping[str, Value],
) -> None:
    """Refuse to continue with a file of another machine, another torch or other conditions.

    Parameters
    ----------
    old : Dataset
        What is in the file.
    path : str or os.PathLike
        The file, for messages.
    machine, versions, conditions : mapping
        As they are now.

    Raises
    ------
    InputError
        All that differs.
    """
    pairs: list[tuple[str, object, object]] = []
    for name in dict.fromkeys((*old.machine, *machine)):
        if name not in _MAY_DIFFER:
            pairs.append((name, old.machine.get(name), machine.get(name)))
    pairs += [(name, old.versions.get(name), versions.get(name)) for name in _SAME]
    pairs += [(name, old.made.get(name), value) for name, value in conditions.items()]
    problems = [
        Problem(
            "holds measurements of another machine or set-up",
            file=os.fspath(path),
            key=name,
            value=repr(was),
            expected=f"{is_!r}, as here; --fresh begins again, another -o keeps both",
        )
        for name, was, is_ in pairs
        if was != is_
    ]
    if problems:
        raise InputError(problems)
