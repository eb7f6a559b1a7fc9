"""The JSON file of nccl-tests (``-J``), and of `simperf collective --json`, which has its layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from simperf.calibrate.dataset import Dataset, Value
from simperf.calibrate.importers.imported import Imported, Points, member, rows_of
from simperf.calibrate.importers.nccl_text import _DTYPES, COLLECTIVES, known_collective
from simperf.errors import Problem

__all__ = ["import_nccl_json"]


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
    data, broken = _parsed(text, name)
    if not isinstance(data, Mapping) or not isinstance(data.get("results"), list):
        problem = Problem("no results of nccl-tests in it", file=name, expected='{"results": [{"size": ...}, ...]}')
        return Imported(Dataset(""), broken or (problem,))
    args = data.get("args")
    words = [str(word) for word in args] if isinstance(args, list) else []
    told = next((found for word in words if (found := known_collective(word))), "")
    kind = known_collective(collective) or ("" if collective else told)
    if told and kind not in ("", told):
        message, expected = f"the file is of {told}", f"{told}, or none"
        wrong = Problem(message, file=name, key="--collective", value=collective, expected=expected)
        return Imported(Dataset(""), (*broken, wrong))
    if not kind:
        expected = ", ".join(COLLECTIVES.values())
        message = "no such collective" if collective else "the file does not say which collective it is of"
        unsaid = Problem(message, file=name, key="--collective", value=collective, expected=expected)
        return Imported(Dataset(""), (*broken, unsaid) if data["results"] or not broken else broken)
    given = data.get("config")
    config: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    listed = config.get("devices")
    devices = listed if isinstance(listed, list) else []
    threads, gpus = (value if isinstance(value := config.get(key), int) else 1 for key in ("nthreads", "ngpus"))
    if ranks and devices and ranks != len(devices):
        message, expected = f"the file names {len(devices)} ranks", f"{len(devices)}, or none"
        wrong = Problem(message, file=name, key="--ranks", value=str(ranks), expected=expected)
        return Imported(Dataset(""), (*broken, wrong))
    count = ranks or len(devices) or threads * gpus
    hosts = {str(one.get("hostname") or "") if isinstance(one, Mapping) else "" for one in devices}
    ours = words[:1] == ["simperf"]
    setup: dict[str, Value] = {"servers": len(hosts)} if hosts and "" not in hosts else {}
    if gpus > 1 and not ours:
        setup["launches"] = gpus
    points, problems = Points(), list(broken)
    for index, row in enumerate(data["results"]):
        try:
            _row(points, row, kind=kind, setup={"ranks": count, **setup}, ours=ours)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(Problem(f"not read: {reason}", file=name, key=f"results[{index}]"))
    machine: dict[str, Value] = {"ranks": count}
    first = devices[0] if devices and isinstance(devices[0], Mapping) else {}
    gpu = next((str(first[key]) for key in ("device_info", "device_name", "name", "gpu") if first.get(key)), "")
    if gpu:
        machine["gpu"] = gpu
    version = data.get("nccl_version")
    versions = {"nccl": str(version)} if version else {}
    return Imported(Dataset(f"{kind} by nccl-tests", machine, versions, {}, points.all()), tuple(problems))


def _parsed(text: str, name: str) -> tuple[Any, tuple[Problem, ...]]:
    """What the file says, whole or up to where it breaks off, and that it does."""
    try:
        return json.loads(text), ()
    except json.JSONDecodeError as error:
        line = error.lineno
    except (RecursionError, ValueError):  # brackets in one another, or a number of thousands of digits
        line = 1
    decoder = json.JSONDecoder()
    rows, end = rows_of(text, "results", decoder)
    message = f"no JSON from here on: {len(rows)} rows before it were read"
    head = {key: member(text, key, decoder) for key in ("args", "config", "nccl_version")}
    problem = Problem(message, file=name, line=end if rows else line, expected="the whole of what nccl-tests wrote")
    return {**head, "results": rows}, (problem,)


#: longest time [s] and largest size [B] that are taken for such
_LONGEST, _LARGEST = 3e8, 10**18


def _row(points: Points, row: Any, *, kind: str, setup: Mapping[str, Value], ours: bool) -> None:
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
