"""Results of nccl-tests: the table that the program prints, and its JSON file (``-J``).

The table's layout is described in doc/PERFORMANCE.md of nccl-tests; columns are recognised by the header, so that logs
of old versions (``error``, no ``root``) and new ones (``#wrong``) are both read, with whatever stands around them.
Names of hosts, which a log has, are not kept. `simperf collective --json` writes the layout of the JSON file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simperf.calibrate.dataset import Dataset, Value
from simperf.calibrate.importers.imported import Imported, Points, parsed_json
from simperf.errors import Problem

__all__ = ["COLLECTIVES", "import_nccl_json", "import_nccl_text", "known_collective", "ranks_from"]

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
#: algbw is printed with two decimals: a line that is farther off than this is damaged
_TOLERANCE = 0.03


@dataclass
class _Head:
    """Header before the rows."""

    columns: tuple[str, ...] = ()
    collective: str = ""
    ranks: int = 0
    gpu: str = ""
    threads: int = 1
    gpus: int = 1
    version: str = ""
    hosts: set[str] = field(default_factory=set)

    def setup(self, ranks: int, *, driven: bool) -> dict[str, Value]:
        """Conditions that all points share; `driven` is whether a thread's GPUs are launched one after the other."""
        servers: dict[str, Value] = {"servers": len(self.hosts)} if self.hosts and "" not in self.hosts else {}
        return {"ranks": ranks, **servers} | ({"launches": self.gpus} if driven and self.gpus > 1 else {})

    def dataset(self, kind: str, ranks: int, points: Points) -> Dataset:
        """The points with what is known of the machine."""
        machine: dict[str, Value] = {"ranks": ranks}
        if self.gpu:
            machine["gpu"] = self.gpu
        versions = {"nccl": self.version} if self.version else {}
        return Dataset(f"{kind} by nccl-tests", machine, versions, {}, points.all())


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


def _collective_of(head: _Head, name: str, *, collective: str, ranks: int) -> tuple[str, Problem | None]:
    """The collective that a file is of; and what is missing, or contradicts the file."""
    kind = known_collective(collective) or ("" if collective else head.collective)
    if not kind:
        message = "no such collective" if collective else "the file does not say which collective it is of"
        expected = ", ".join(COLLECTIVES.values())
        return "", Problem(message, file=name, key="--collective", value=collective, expected=expected)
    if head.collective not in ("", kind):
        message, expected = f"the file is of {head.collective}", f"{head.collective}, or none"
        return kind, Problem(message, file=name, key="--collective", value=collective, expected=expected)
    if ranks and head.ranks and ranks != head.ranks:
        message, expected = f"the file names {head.ranks} ranks", f"{head.ranks}, or none"
        return kind, Problem(message, file=name, key="--ranks", value=str(ranks), expected=expected)
    return kind, None


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
    head.collective = head.collective or ("" if collective else known_collective(Path(name).name))
    kind, wrong = _collective_of(head, name, collective=collective, ranks=ranks)
    if wrong is not None and rows:
        return Imported(Dataset(""), (*problems, wrong))
    count = ranks or head.ranks or _counted(kind, [factor for *_, factor in rows]) or head.threads * head.gpus
    setup = head.setup(count, driven=True)
    for _, at, times, _ in rows:
        for in_place, time in times:
            points.add(f"{kind}/nccl", {**at, **setup, "in_place": in_place}, [time])
    if not rows and not problems:
        problems.append(
            Problem("no rows of nccl-tests in it", file=name, expected="size count type redop time algbw ...")
        )
    return Imported(head.dataset(kind, count, points), tuple(problems))


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


def import_nccl_json(text: str, name: str, *, collective: str = "", ranks: int = 0) -> Imported:
    """Import a JSON file.

    Parameters
    ----------
    text, name : str
        The file and its name for messages.
    collective, ranks : str, int
        What the file does not say.

    Returns
    -------
    Imported
        As of `import_nccl_text`; what `simperf collective --json` wrote gets its algorithm in place of ``nccl``.

    A file that breaks off is read up to there.
    """
    members = ("args", "config", "nccl_version")
    data, broken = parsed_json(text, name, "results", members, what="rows", writer="nccl-tests")
    if not isinstance(data, Mapping) or not isinstance(data.get("results"), list):
        problem = Problem("no results of nccl-tests in it", file=name, expected='{"results": [{"size": ...}, ...]}')
        return Imported(Dataset(""), broken or (problem,))
    args = data.get("args")
    words = [str(word) for word in args] if isinstance(args, list) else []
    ours = words[:1] == ["simperf"]
    head = _json_head(data, words)
    kind, wrong = _collective_of(head, name, collective=collective, ranks=ranks)
    if wrong is not None:
        return Imported(Dataset(""), (*broken, wrong) if data["results"] or not broken else broken)
    count = ranks or head.ranks or head.threads * head.gpus
    points, problems = Points(), list(broken)
    setup = head.setup(count, driven=not ours)
    for index, row in enumerate(data["results"]):
        try:
            _json_row(points, row, kind=kind, setup=setup, ours=ours)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(Problem(f"not read: {reason}", file=name, key=f"results[{index}]"))
    return Imported(head.dataset(kind, count, points), tuple(problems))


def _json_head(data: Mapping[str, Any], words: Sequence[str]) -> _Head:
    given = data.get("config")
    config: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    listed = config.get("devices")
    devices = listed if isinstance(listed, list) else []
    threads, gpus = (value if isinstance(value := config.get(key), int) else 1 for key in ("nthreads", "ngpus"))
    first = devices[0] if devices and isinstance(devices[0], Mapping) else {}
    return _Head(
        collective=next((found for word in words if (found := known_collective(word))), ""),
        ranks=len(devices),
        gpu=next((str(first[key]) for key in ("device_info", "device_name", "name", "gpu") if first.get(key)), ""),
        threads=threads,
        gpus=gpus,
        version=str(data.get("nccl_version") or ""),
        hosts={str(one.get("hostname") or "") if isinstance(one, Mapping) else "" for one in devices},
    )


#: longest time [s] and largest size [B] that are taken for such
_LONGEST, _LARGEST = 3e8, 10**18


def _json_row(points: Points, row: Any, *, kind: str, setup: Mapping[str, Value], ours: bool) -> None:
    if not isinstance(row, Mapping):
        raise TypeError(f"not a row of a table: {type(row).__name__}")
    algorithm = str(row.get("experiment_name") or "nccl") if ours else "nccl"
    dtype = str(row.get("type", "float"))
    nbytes = int(row["size"])
    if not 0 <= nbytes <= _LARGEST:
        raise ValueError(f"a size of {nbytes:.3g} B, and 0 to {_LARGEST:.0e} B is expected")
    at: dict[str, Value] = {"nbytes": nbytes, "dtype": _DTYPES.get(dtype, dtype)}
    if row.get("redop"):
        at["redop"] = str(row["redop"])
    seen = False
    for key in ("out_of_place", "in_place"):
        body = row.get(key)
        if body is None:
            continue
        time = float(body["time"]) * 1e-6
        if not 0 < time <= _LONGEST:
            raise ValueError(f"a time of {body['time']} us, and above 0 is expected, at most {_LONGEST * 1e6:.0e} us")
        wrong = body.get("nwrong")
        doubts = ("wrong results were counted",) if isinstance(wrong, int | float) and wrong > 0 else ()
        where = {**at, **setup, "in_place": key == "in_place"}
        points.add(f"{kind}/{algorithm}", where, [time], warnings=doubts)
        seen = True
    if not seen:
        raise ValueError("neither out_of_place nor in_place")
