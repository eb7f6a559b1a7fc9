"""Several sessions of one machine: continued in one file, pooled, and compared with each other.

A machine that is shared, or that heats up, is not the same an hour later. Readings of one session do not know that;
those of several do. Others on the same cores, caches and memory only ever make a call take longer, for seconds at a
time, and up to twice as long. Readings of several sessions are therefore no bell around a middle: most lie close above
the time of the machine left alone, some far above it. What is nearest to all of them in relative terms lies below their
median: a point is pooled by keeping the faster ones of its readings (`KEPT`).
"""

from __future__ import annotations

import hashlib
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.errors import InputError, Problem

__all__ = ["KEPT", "parts", "pool", "refuse_another"]

#: share of a point's readings that is kept of several sessions, the faster ones. With 0.6 single operations of another
#: session are met as closely, but whole steps, which go through disturbed and undisturbed stretches, come out too fast
KEPT = 0.8
#: times as many readings of a point as another session has, from which on a session has no more say than that one
OUTWEIGHED = 3
#: series whose readings are single runs, not blocks of many: what scatters there is the thing itself, and all count
_SINGLE = ("frontend/mixed", "step/", "loader/", "storage/", "all-", "broadcast/", "send/")

#: facts and versions that do not make it another machine
_MAY_DIFFER = frozenset({"memory", "kernel", "simperf", "python"})


def pool(sessions: Sequence[Dataset]) -> Dataset:
    """The readings of several sessions as one data set; of times of blocks, of each point, the faster ones (`KEPT`).

    Parameters
    ----------
    sessions : sequence of Dataset
        Of one machine, at least one.

    Raises
    ------
    InputError
        They are of different machines or versions, or there is none.
    """
    if not sessions:
        raise InputError(Problem("at least one data set is needed"))
    first = sessions[0]
    problems = []
    for other in sessions[1:]:
        for one, two in ((first.machine, other.machine), (first.versions, other.versions)):
            for key in dict.fromkeys((*one, *two)):
                if key not in _MAY_DIFFER and one.get(key) != two.get(key):
                    problems.append(
                        Problem(
                            "these are measurements of different machines",
                            key=key,
                            value=repr(two.get(key)),
                            expected=f"{one.get(key)!r}, as in the first; fit them one by one",
                        )
                    )
    if problems:
        raise InputError(problems)
    if len(sessions) == 1:
        return first
    points: dict[str, list[Measurement]] = {}
    for dataset in sessions:
        for point in dataset:
            points.setdefault(point.key, []).append(point)
    seconds = sum(float(dataset.made.get("seconds", 0.0)) for dataset in sessions)
    made = {**first.made, **({"seconds": round(seconds, 1)} if seconds else {}), "sessions": len(sessions)}
    made["parts"] = " ".join(dict.fromkeys(part for dataset in sessions for part in parts(dataset)))
    notes = tuple(dict.fromkeys(note for dataset in sessions for note in dataset.notes))
    return replace(first, made=made, measurements=tuple(map(_pooled, points.values())), notes=notes)


def _pooled(points: Sequence[Measurement]) -> Measurement:
    """One point of several sessions."""
    first = points[0]
    if len(points) == 1:
        return first
    fewest = min(len(point.samples) for point in points)
    samples = tuple(sample for point in points for sample in _at_most(point.samples, fewest))
    if first.unit == "s" and not first.series.startswith(_SINGLE):
        samples = tuple(sorted(samples)[: max(1, math.ceil(KEPT * len(samples)))])
    warnings = tuple(dict.fromkeys(warning for point in points for warning in point.warnings))
    shares = [point.stolen for point in points if point.stolen is not None]
    stolen = statistics.fmean(shares) if shares else None
    return replace(first, samples=samples, warnings=warnings, stolen=stolen)


def _at_most(samples: tuple[float, ...], fewest: int) -> tuple[float, ...]:
    """A session's readings, thinned evenly by size where they would outweigh those of another session by far."""
    if len(samples) < OUTWEIGHED * fewest:
        return samples
    ordered = sorted(samples)
    return tuple(ordered[(2 * index + 1) * len(ordered) // (2 * fewest)] for index in range(fewest))


def parts(dataset: Dataset) -> tuple[str, ...]:
    """Sessions of a data set, by digests of their readings, so that a profile can tell what it was fitted to."""
    known = str(dataset.made.get("parts", ""))
    readings = repr([(point.key, point.samples) for point in dataset]).encode()
    return tuple(known.split()) or (hashlib.sha256(readings).hexdigest()[:12],)


#: versions that must not change between the parts of one data set
_SAME = ("torch", "cuda", "driver")
#: facts that may: memory by some pages between two starts of a system
_MAY_CHANGE = frozenset({"memory"})


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
        if name not in _MAY_CHANGE:
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
