"""Cases of a folder of measured data that are not graded, each with its reason, so that none is dropped in silence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from simperf.accuracy.cases import read_cases
from simperf.accuracy.kernel_tables import GPUS, kernel_reader, measured_ops
from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_grades import reasons_counted
from simperf.accuracy.nccl_cases import KINDS, cases_known, cases_left_out, points_left_out, series_of
from simperf.accuracy.nccl_tables import tables_left_out
from simperf.accuracy.timed_passes import passes_left_out, timed_runs
from simperf.errors import SimperfError

__all__ = ["left_out_cases", "sound_cases"]

#: kinds of cases that scenarios stand for, one by one
_QUOTED = ("async", "batch_curve", "failure", "latency_table", "ps", "scaling", "trace", "transfer")
_KNOWN = (*KINDS, "roofline", "single_gpu_training", *_QUOTED)


def sound_cases(folder: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], dict[tuple[str, str], int]]:
    """Cases of a folder that can be read, and how many cannot, by their kind and the reason.

    Raises
    ------
    InputError
        The folder has no ``cases.json``, or it is no list of cases.
    """
    sound: list[dict[str, Any]] = []
    broken, seen = Counter[tuple[str, str]](), set[str]()
    for case in read_cases(folder):
        why = _broken(case) or (f"another case is called {case['id']}" if case["id"] in seen else "")
        if why:
            broken[str(case.get("kind", "a case without a kind")), why] += 1
        else:
            seen.add(case["id"])
            sound.append(case)
    return sound, dict(broken)


def left_out_cases(folder: str | os.PathLike[str], graded: Collection[str] = ()) -> dict[tuple[str, str], int]:
    """Number of cases of a folder that are not graded, by their kind, family or file and the reason.

    Parameters
    ----------
    folder : path
        With any of ``cases.json``, ``nccl`` and ``llm``.
    graded : collection of str
        Cases of ``cases.json`` that have a row in a table of validation.
    """
    there, found = Path(folder), Counter[tuple[str, str]]()
    if (there / "cases.json").exists():
        sound, broken = sound_cases(folder)
        found.update(broken)
        for case in sound:
            if case["id"] not in graded and not any(timed_runs(case)):
                found[str(case["kind"]), _reason(case)] += 1
            if points := points_left_out(case):
                found[str(case["kind"]), f"rows of {case['id']} without a payload or a time"] += points
        for reason, count in passes_left_out(sound).items():
            found["passes on one GPU", reason] += count
    found.update(dict.fromkeys(tables_left_out(there), 1))
    if (there / "llm").exists():
        found.update(reasons_counted(read_large_cases(there / "llm")[1]))
    return dict(found)


def _broken(case: Mapping[str, Any]) -> str:
    """Why a case cannot be read; empty if it can."""
    for key, kind in (("id", str), ("kind", str), ("measured", Mapping), ("hardware", Mapping), ("workload", Mapping)):
        empty = key in ("id", "kind", "measured") and not case.get(key)
        if empty or not isinstance(case.get(key), kind):
            return f"{case.get('id') or 'a case'} has no {key}"
    if not isinstance(case.get("source", {}), Mapping):
        return f"{case['id']} cannot be read: source is no object with repo, path and commit, or url"
    try:
        if case["kind"] in KINDS and case["id"] in cases_known():
            for _ in series_of(case):
                pass
        if case["kind"] == "roofline":
            for gpu in _gpus(case):
                if gpu in GPUS:
                    measured_ops(case, gpu)
        list(timed_runs(case))
    except KeyError as error:
        return f"{case['id']} has no {error.args[0]}"
    except TypeError:
        return f"{case['id']} cannot be read: its table has words, or nothing, where numbers are expected"
    except (SimperfError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
        return f"{case['id']} cannot be read: {' '.join(str(error).split())}"
    return ""


def _gpus(case: Mapping[str, Any]) -> list[str]:
    gpus = case["hardware"]["gpu"]
    return [gpus] if isinstance(gpus, str) else list(gpus)


def _reason(case: Mapping[str, Any]) -> str:
    """Why a case that can be read has no row."""
    kind = case["kind"]
    if kind not in _KNOWN:
        return f"its kind is not known: one of {', '.join(sorted(_KNOWN))} is expected"
    if kind in KINDS:
        nothing = "no machine is set up for it (simperf/accuracy/data/nccl_cases.toml)"
        return cases_left_out().get(case["id"], nothing)
    if kind == "roofline":
        if kernel_reader(case) is None:
            return "the columns of its table are not known"
        missing = [gpu for gpu in _gpus(case) if gpu not in GPUS]
        return f"the catalogue has no {', '.join(missing)}" if missing else "its table has no rows"
    return "no scenario that is graded stands for it"
