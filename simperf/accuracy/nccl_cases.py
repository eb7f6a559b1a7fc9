"""Measured collectives as series of times: which machine each ran on, and how its table is read.

What the source of a case does not say, or what cannot be modelled, is data as well: such a
case is left out with its reason (``data/nccl_cases.toml``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from simperf.collectives.nccl import Tuner
from simperf.collectives.plan import bus_factor
from simperf.collectives.settings import NcclSettings
from simperf.errors import InputError, Problem
from simperf.files import TomlFile, read_toml
from simperf.hardware import Catalog, Machine
from simperf.hardware.cluster import cluster_of
from simperf.units import parse

__all__ = ["KINDS", "Measured", "Series", "cases_known", "cases_left_out", "points_left_out", "series_of", "tuner_of"]

_DATA = Path(__file__).parent / "data"

#: kinds of measured cases, and what nccl-tests calls the collective
KINDS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "all-to-all",
}

#: columns of a time with their unit, the first that a table has is read; then those of bus bandwidth
_TIMES = {"time_us_out_of_place": "us", "median_ms": "ms", "time_us": "us"}
_RATES = ("busbw_ip", "busbw")
_SIZES = ("size_B", "bytes", "size")


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured time [s], or a range of times, at a size [B]."""

    nbytes: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one case that one machine and choice of algorithms stand for.

    Parameters
    ----------
    case : str
        Its id.
    name : str
        Which of the case's series, empty if it has one.
    label : str
        What tells its points from others of the same name.
    setup : Mapping
        Machine and choices, as in the file.
    points : tuple of Measured
        By size.
    """

    case: str
    name: str
    label: str
    setup: Mapping[str, Any]
    points: tuple[Measured, ...]


@lru_cache(maxsize=1)
def _cases() -> Mapping[str, Mapping[str, Any]]:
    return read_toml(_DATA / "nccl_cases.toml").data


def cases_known() -> dict[str, Mapping[str, Any]]:
    """The set-up of each case that can be predicted."""
    return {name: setup for name, setup in _cases().items() if "left_out" not in setup}


def cases_left_out() -> dict[str, str]:
    """Reasons why the other cases cannot be predicted, by name."""
    return {name: setup["left_out"] for name, setup in _cases().items() if "left_out" in setup}


def series_of(case: Mapping[str, Any]) -> Iterator[tuple[Series, Tuner]]:
    """Each series of a case with the tuner of its machine.

    Raises
    ------
    InputError
        The case has no such column or value.
    """
    whole = cases_known()[case["id"]]
    collective = KINDS[case["kind"]]
    for own in whole.get("series", [{}]):
        setup = {key: value for key, value in {**whole, **own}.items() if key not in {"series", "name", "label"}}
        tuner = tuner_of(setup, collective)
        points = tuple(_points(case, setup, collective, len(tuner.ranks)))
        yield Series(case["id"], own.get("name", ""), own.get("label", ""), setup, points), tuner


def points_left_out(case: Mapping[str, Any]) -> int:
    """Rows of a known case's table without a payload, or without a time in the column that is read."""
    whole = cases_known().get(case["id"])
    if whole is None or case["kind"] not in KINDS or "columns" not in case["measured"]:
        return 0
    columns, found = list(case["measured"]["columns"]), set[int]()
    for own in whole.get("series", [{}]):
        setup = {**whole, **own}
        if "value" in setup:
            continue
        at, _ = _column(columns, setup, str(case["measured"]["unit"]))
        sizes = next((columns.index(name) for name in _SIZES if name in columns and "size" not in setup), None)
        for place, row in enumerate(case["measured"]["table"]):
            chosen = all(row[columns.index(key)] == value for key, value in setup.get("rows", {}).items())
            if chosen and not (row[at] and (sizes is None or row[sizes])):
                found.add(place)
    return len(found)


def tuner_of(setup: Mapping[str, Any], collective: str) -> Tuner:
    """The tuner of the machine that a set-up describes."""
    machine = _machine(setup)
    settings = NcclSettings(
        network=setup.get("network", ""),
        in_network=setup.get("in_network", False),
        launches=setup.get("launches", 1),
        version=tuple(int(part) for part in setup["version"].split(".")) if "version" in setup else (),
        only=tuple(setup.get("only", ())),
        timing=setup.get("timing", "loop"),
    )
    return Tuner(machine, _ranks(machine, setup.get("each", 0)), collective, settings)


@lru_cache(maxsize=1)
def _catalog() -> Catalog:
    return Catalog.load([_DATA / "machines"])


def _machine(setup: Mapping[str, Any]) -> Machine:
    if "machine" in setup:
        return _catalog().machine(setup["machine"])
    cables = {key: setup[key] for key in ("link", "count", "bandwidth", "latency") if key in setup}
    spec = {
        "kind": "cluster",
        "server": setup["server"],
        "count": setup["servers"],
        "fabric": {"type": setup.get("fabric", "star"), **cables},
    }
    return cluster_of(spec, _catalog(), TomlFile("", {}, ""), name=f"{setup['servers']} x {setup['server']}", at=())


def _ranks(machine: Machine, each: int) -> list[str]:
    """All GPUs, or the first `each` of every server."""
    seen: dict[str, int] = {}
    kept = []
    for node in machine.gpus:
        server = machine.nodes[node].server
        seen[server] = seen.get(server, 0) + 1
        if not each or seen[server] <= each:
            kept.append(node)
    return kept


def _points(case: Mapping[str, Any], setup: Mapping[str, Any], collective: str, nranks: int) -> Iterator[Measured]:
    measured = case["measured"]
    factor = bus_factor(collective, nranks)
    if "value" in setup:
        value = measured["value"][setup["value"]] if setup["value"] else measured["value"]
        yield _measured(parse(setup["size"], "B"), value, str(measured["unit"]), factor)
        return
    columns = list(measured["columns"])
    at, unit = _column(columns, setup, str(measured["unit"]))
    sizes = next((columns.index(name) for name in _SIZES if name in columns), None)
    for row in measured["table"]:
        if any(row[columns.index(key)] != value for key, value in setup.get("rows", {}).items()):
            continue
        nbytes = float(row[sizes]) if sizes is not None and "size" not in setup else parse(setup["size"], "B")
        if nbytes and row[at]:
            yield _measured(nbytes, row[at], unit, factor)


def _column(columns: Sequence[str], setup: Mapping[str, Any], unit: str) -> tuple[int, str]:
    """Which column is read, and its unit."""
    asked = setup.get("column", "")
    name = asked or next((one for one in (*_TIMES, *_RATES) if one in columns), "")
    if name not in columns:
        raise InputError(Problem(f"the table has no column {asked or 'of times'}", expected=", ".join(columns)))
    if name in _TIMES:
        return columns.index(name), _TIMES[name]
    if name.startswith("busbw"):
        return columns.index(name), "Gbit/s" if unit == "Gbit/s" else "GB/s"
    return columns.index(name), name.rpartition("_")[2]


def _measured(nbytes: float, value: Any, unit: str, factor: float) -> Measured:
    """A value or a range of them, of time or of bus bandwidth, as times."""
    values = [float(one) for one in (value if isinstance(value, list) else [value])]
    if unit in {"s", "ms", "us"}:
        times = [parse(f"{one!r} {unit}", "s") for one in values]
    else:
        times = [nbytes * factor / parse(f"{one!r} {unit}", "B/s") if one else math.inf for one in values]
    if not all(0.0 < time < math.inf for time in times):
        raise InputError(Problem("a time or a rate above 0 is expected", key="measured.table", value=str(value)))
    return Measured(nbytes, min(times), max(times))
