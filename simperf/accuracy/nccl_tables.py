"""Large published tables of all-reduce times, read as `simperf calibrate import` reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from simperf.calibrate.importers import import_file

__all__ = ["LargeTable", "large_tables", "table_times", "tables_left_out"]

#: title, server, ranks and file of each table that is read
_TABLES = (
    *((f"A100 with NVSwitch, {n} ranks", "dgx-a100", n, f"a100_all_reduce_n{n}.csv") for n in range(2, 7)),
    *((f"DGX H100, {n} ranks, through torch", "dgx-h100", n, "h100_dgx_all_reduce.csv") for n in (2, 4)),
)


class LargeTable(NamedTuple):
    """All-reduce among some GPUs of a server.

    Parameters
    ----------
    title, source : str
    server : str
        Of the catalogue.
    ranks : int
    rows : list of tuple of float
        Payload [B] and time [s].
    """

    title: str
    source: str
    server: str
    ranks: int
    rows: list[tuple[float, float]]


def table_times(path: Path, *, ranks: int) -> list[tuple[float, float]]:
    """Payloads [B] and times [s] of all-reduce among so many ranks; none if there is no such file.

    Parameters
    ----------
    path : Path
        A table with units in its header.
    ranks : int
        Of the rows that are taken, or of the whole table where it does not say.
    """
    if not path.is_file():
        return []
    points = import_file(path, collective="all-reduce", ranks=ranks).dataset
    here = [point for point in points if point.number("ranks") == ranks]
    return [(point.number("nbytes"), time) for point in here for time in point.samples]


def large_tables(folder: Path) -> Iterator[LargeTable]:
    """The tables of a folder of measured data that are there."""
    sources = {"dgx-a100": "VIA-Research/vTrain, trace/", "dgx-h100": "microsoft/vidur, data/profiling/network"}
    for title, server, ranks, name in _TABLES:
        rows = table_times(folder / "nccl" / name, ranks=ranks)
        if rows:
            yield LargeTable(title, sources[server], server, ranks, rows)


def tables_left_out(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and reason of each file of ``nccl`` that is not read."""
    known = {name for *_, name in _TABLES}
    for path in sorted((folder / "nccl").glob("*")):
        if path.name not in known:
            yield f"nccl/{path.name}", "no server and number of ranks are set up for this table"
