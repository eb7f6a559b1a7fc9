"""Tables of a collective's times: columns of a benchmark as the conditions that a log of nccl-tests has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.importers.imported import Imported, Points
from simperf.calibrate.importers.nccl_text import COLLECTIVES, known_collective
from simperf.errors import InputError, Problem

__all__ = ["as_collective", "ranks_column"]

#: what the columns of benchmarks call the number of ranks
_RANKS = ("ranks", "n", "num_gpus", "gpus", "world_size")


def ranks_column(point: Measurement) -> str:
    """The column of a table that says among how many ranks a point was measured; empty if there is none."""
    return next((word for word in _RANKS if word in point.at), "")


def as_collective(found: Imported, name: str, *, collective: str, ranks: int = 0) -> Imported:
    """The points of a table as times of a collective by NCCL.

    A reading is the column called ``median`` where there is one; what else was measured is left out.

    Parameters
    ----------
    found : Imported
        What `simperf.calibrate.importers.import_table` read.
    name : str
        The file's, for messages.
    collective : str
        Which one.
    ranks : int
        Where no column says how many.

    Raises
    ------
    InputError
        No such collective, or a table without sizes or ranks.
    """
    kind = known_collective(collective)
    if not kind:
        expected = ", ".join(COLLECTIVES.values())
        raise InputError(Problem("no such collective", key="--collective", value=repr(collective), expected=expected))
    points = Points()
    for point in found.dataset:
        column = ranks_column(point)
        count = int(point.number(column)) if column else ranks
        if "nbytes" not in point.at or point.unit != "s":
            message = "a collective's table has the size of its payload and a time"
            raise InputError(Problem(message, file=name, expected="size [B], time [us]"))
        if count < 2:
            message = "the table does not say among how many ranks"
            raise InputError(Problem(message, file=name, key="--ranks", expected="a column ranks, or --ranks 8"))
        at: dict[str, Value] = {"nbytes": int(point.number("nbytes")), "ranks": count, "in_place": False}
        points.add(f"{kind}/nccl", at, [_reading(point)])
    title = f"{kind} of {Path(name).name}"
    return replace(found, dataset=replace(found.dataset, title=title, measurements=points.all()))


def _reading(point: Measurement) -> float:
    median = point.at.get("median")
    return float(median) if isinstance(median, int | float) and median > 0 else point.median
