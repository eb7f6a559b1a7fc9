"""Logs of nccl-tests as people keep them: the table that the program prints, with whatever stands around it.

The layout is described in doc/PERFORMANCE.md of nccl-tests; columns are recognised by the header, so that logs of old
versions (``error``, no ``root``) and new ones (``#wrong``) are both read. Names of hosts, which a log has, are not
kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from simperf.calibrate.dataset import Dataset, Value
from simperf.calibrate.importers.imported import Imported, Points
from simperf.errors import Problem

__all__ = ["COLLECTIVES", "import_nccl_text", "known_collective", "ranks_from"]

#: as nccl-tests names its programs -> as simperf names them
COLLECTIVES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "all-to-all",
    "sendrecv": "send",
    "gather": "gather",
    "scatter": "scatter",
    "hypercube": "hypercube",
}
#: types of nccl-tests -> simperf's precisions
_DTYPES = {"float": "fp32", "half": "fp16", "double": "fp64", "bfloat16": "bf16"}
_PROGRAM = re.compile(rf"\b({'|'.join(COLLECTIVES)})_perf\b")
_RANK = re.compile(r"#\s*Rank\s+(\d+).*?(?:\son\s+(\S+)\s+)?device\s+\d+\s+\[[^\]]*\]\s*(.*)")
_COLUMNS = ("size", "count", "type", "redop", "root")
#: algbw is printed with two decimals: a line that is farther off than this is damaged
_TOLERANCE = 0.03


@dataclass
class _Head:
    """What stands before the rows."""

    columns: tuple[str, ...] = ()
    collective: str = ""
    ranks: int = 0
    gpu: str = ""
    threads: int = 1
    gpus: int = 1
    version: str = ""
    hosts: set[str] = field(default_factory=set)


def known_collective(name: str) -> str:
    """Simperf's name of a collective, from that of a program, a file or simperf itself; empty if it is none.

    Examples
    --------
    >>> known_collective("./build/all_reduce_perf"), known_collective("all-gather"), known_collective("x")
    ('all-reduce', 'all-gather', '')
    """
    if name in COLLECTIVES.values():
        return name
    plain = name.lower().replace("-", "_")
    for word, known in sorted(COLLECTIVES.items(), key=lambda pair: -len(pair[0])):
        if word in plain:
            return known
    return ""


def ranks_from(collective: str, factor: float) -> int:
    """Ranks that make busbw so many times algbw; 0 if that cannot be determined.

    Examples
    --------
    >>> ranks_from("all-reduce", 1.75), ranks_from("all-gather", 0.75), ranks_from("broadcast", 1.0)
    (8, 4, 0)
    """
    part = factor / 2 if collective == "all-reduce" else factor
    if collective not in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all") or not 0 < part < 0.999:
        return 0
    count = 1 / (1 - part)
    return round(count) if abs(count - round(count)) < 0.05 * count else 0


def _head(head: _Head, line: str) -> None:
    words = line.lstrip("# ").split()
    if {"size", "time", "algbw", "busbw"}.issubset(words):
        head.columns = tuple(words)
    found = _PROGRAM.search(line)
    if found and not head.collective:
        head.collective = COLLECTIVES[found.group(1)]
    rank = _RANK.search(line)
    if rank:
        head.ranks = max(head.ranks, int(rank.group(1)) + 1)
        head.gpu = rank.group(3).strip()
        head.hosts.add(rank.group(2) or "")  # empty: not named
    settings = re.search(r"nThread (\d+) nGpus (\d+)", line)
    if settings:
        head.threads, head.gpus = (int(each) for each in settings.groups())
    version = re.search(r"NCCL version ([\w.+-]+)", line)
    if version:
        head.version = version.group(1)


def import_nccl_text(text: str, name: str, *, collective: str = "", ranks: int = 0) -> Imported:
    """Import the text of a log.

    Parameters
    ----------
    text, name : str
        The log, and the file's name for messages.
    collective, ranks : str, int
        What the log does not say.

    Returns
    -------
    Imported
        Series ``<collective>/nccl`` with ``nbytes`` [B], ``ranks``, ``dtype`` and ``in_place``, ``servers`` where the
        log names the ranks' hosts, and ``launches`` where one thread drives several GPUs, a reading (the mean of
        nccl-tests' iterations) each; and the lines that were not read.
    """
    head, points, problems = _Head(), Points(), []
    rows: list[tuple[int, dict[str, Value], list[tuple[bool, float]], float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped:
            continue
        if not re.match(r"\d+\s+\d+\s", stripped):
            _head(head, stripped)
            continue
        row = _row(stripped.split(), head.columns)
        if isinstance(row, str):
            problems.append(Problem(f"not read: {row}", file=name, line=number, value=stripped[:80]))
        else:
            rows.append((number, *row))
    kind = known_collective(collective) or head.collective or known_collective(Path(name).name)
    if collective and not known_collective(collective):
        expected = ", ".join(COLLECTIVES.values())
        problems.append(Problem("no such collective", key="--collective", value=repr(collective), expected=expected))
        kind = ""
    if not kind and rows:
        message = "the log does not say which collective it is of"
        problems.append(Problem(message, file=name, key="--collective", expected=", ".join(COLLECTIVES.values())))
        return Imported(Dataset(""), tuple(problems))
    if collective and head.collective not in ("", kind):
        message = f"the log is of {head.collective}"
        told = f"{head.collective}, or none"
        problems.append(Problem(message, file=name, key="--collective", value=collective, expected=told))
        return Imported(Dataset(""), tuple(problems))
    if ranks and head.ranks and ranks != head.ranks:
        message = f"the log names {head.ranks} ranks"
        problems.append(Problem(message, file=name, key="--ranks", value=str(ranks), expected=f"{head.ranks}, or none"))
        return Imported(Dataset(""), tuple(problems))
    count = ranks or head.ranks or _counted(kind, [factor for *_, factor in rows]) or head.threads * head.gpus
    setup: dict[str, Value] = {"servers": len(head.hosts)} if head.hosts and "" not in head.hosts else {}
    if head.gpus > 1:
        setup["launches"] = head.gpus
    for _, at, times, _ in rows:
        for in_place, time in times:
            points.add(f"{kind}/nccl", {**at, "ranks": count, **setup, "in_place": in_place}, [time])
    machine: dict[str, Value] = {"ranks": count}
    if head.gpu:
        machine["gpu"] = head.gpu
    versions = {"nccl": head.version} if head.version else {}
    if not rows and not problems:
        problems.append(
            Problem("no rows of nccl-tests in it", file=name, expected="size count type redop time algbw ...")
        )
    return Imported(Dataset(f"{kind} by nccl-tests", machine, versions, {}, points.all()), tuple(problems))


def _counted(kind: str, factors: list[float]) -> int:
    """Ranks from the ratio of the bandwidths, by the row where they are printed with most digits."""
    found = [count for factor in factors if (count := ranks_from(kind, factor)) > 1]
    return max(set(found), key=lambda count: (found.count(count), -count)) if found else 0


def _row(fields: list[str], columns: tuple[str, ...]) -> tuple[dict[str, Value], list[tuple[bool, float]], float] | str:
    """Conditions, times by in_place, and busbw over algbw; or why the row cannot be read."""
    if not columns:
        return "there is no header before it, from which the columns could be determined"
    if len(fields) < columns.index("busbw") + 1:
        return f"{len(fields)} of {len(columns)} columns, the line is cut off: a whole one is expected"
    table: dict[str, list[str]] = {}
    for column, value in zip(columns, fields, strict=False):
        table.setdefault(column, []).append(value)
    at: dict[str, Value] = {}
    try:
        at["nbytes"] = int(table["size"][0])
        for column in ("type", "redop"):
            if column in table:
                key = "dtype" if column == "type" else "redop"
                at[key] = _DTYPES.get(table[column][0], table[column][0])
        times, factor = [], 0.0
        for turn, (time, rate, bus) in enumerate(zip(table["time"], table["algbw"], table["busbw"], strict=False)):
            seconds, speed, busbw = float(time) * 1e-6, float(rate) * 1e9, float(bus) * 1e9
            if not 0 < seconds < float("inf"):
                return f"a time of {time} us"
            told = float(str(at["nbytes"])) / seconds
            if abs(told - speed) > _TOLERANCE * told + 0.006e9:
                return f"{at['nbytes']} B in {time} us are {told / 1e9:.2f} GB/s, but it says {rate}"
            times.append((turn == 1, seconds))
            if speed >= 0.5e9:
                factor = busbw / speed
    except (ValueError, KeyError) as error:
        return f"no number: {error}"
    return at, times, factor
