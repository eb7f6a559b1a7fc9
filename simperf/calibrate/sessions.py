"""Several measuring sessions of one machine: pooled, and how far they are apart.

A machine that is shared, or that heats up, is not the same an hour later. Readings of one session do not know that;
those of several do. Others on the same cores, caches and memory only ever make a call take longer, for seconds at a
time, and up to twice as long. Readings of several sessions are therefore no bell around a middle: most lie close above
the time of the machine left alone, some far above it. What is nearest to all of them in relative terms lies below their
median: a point is pooled by keeping the faster ones of its readings (`KEPT`).
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.errors import InputError, Problem

__all__ = ["KEPT", "Repeat", "Spread", "parts", "pool", "repeated", "spread"]

#: share of a point's readings that is kept of several sessions, the faster ones. With 0.6 single operations of another
#: session are met as closely, but whole steps, which go through disturbed and undisturbed stretches, come out too fast
KEPT = 0.8
#: series whose readings are single runs, not blocks of many: what scatters there is the thing itself, and all count
_SINGLE = ("frontend/mixed", "step/", "loader/", "storage/", "all-", "broadcast/", "send/")

#: facts and versions that do not make it another machine
_MAY_DIFFER = frozenset({"memory", "kernel", "simperf", "python"})


@dataclass(frozen=True, slots=True)
class Spread:
    """How far sessions are apart, as standard deviations of the logarithm.

    Parameters
    ----------
    common : float
        Of what all points of a model share in a session [1].
    own : float
        Of what is left of each point [1].
    """

    common: float = 0.0
    own: float = 0.0


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
    made = {**first.made, "seconds": round(seconds, 1), "sessions": len(sessions)}
    made["parts"] = " ".join(dict.fromkeys(part for dataset in sessions for part in parts(dataset)))
    notes = tuple(dict.fromkeys(note for dataset in sessions for note in dataset.notes))
    return replace(first, made=made, measurements=tuple(map(_pooled, points.values())), notes=notes)


def _pooled(points: Sequence[Measurement]) -> Measurement:
    """One point of several sessions."""
    first = points[0]
    if len(points) == 1:
        return first
    samples = tuple(sample for point in points for sample in point.samples)
    if first.unit == "s" and not first.series.startswith(_SINGLE):
        samples = tuple(sorted(samples)[: max(1, math.ceil(KEPT * len(samples)))])
    warnings = tuple(dict.fromkeys(warning for point in points for warning in point.warnings))
    return replace(first, samples=samples, warnings=warnings)


def parts(dataset: Dataset) -> tuple[str, ...]:
    """Which sessions a data set has, by digests of their readings, so that a profile can tell what it was fitted to."""
    known = str(dataset.made.get("parts", ""))
    readings = repr([(point.key, point.samples) for point in dataset]).encode()
    return tuple(known.split()) or (hashlib.sha256(readings).hexdigest()[:12],)


def spread(sessions: Sequence[Dataset], keys: Sequence[str]) -> Spread:
    """How far sessions are apart at the points of a model.

    What a session shares is the median of its points' distances from what was pooled, so that a disturbed point moves
    nothing. A new session lies as far from the mean of these as they do, and that mean is not known either: sqrt(1 +
    1/S). What is pooled lies below that mean by a distance that is known.

    Parameters
    ----------
    sessions : sequence of Dataset
    keys : sequence of str
        Of the points.

    Examples
    --------
    >>> def session(factor):
    ...     points = [Measurement("x", {"n": n}, (factor * n,)) for n in (1.0, 2.0, 3.0)]
    ...     return Dataset("", measurements=tuple(points))
    >>> sessions = [session(1.0), session(1.1)]
    >>> found = spread(sessions, [point.key for point in sessions[0]])
    >>> round(found.common, 4), round(found.own, 6)
    (0.0825, 0.0)
    """
    tables = [{point.key: point for point in dataset} for dataset in sessions]
    shared = [key for key in keys if all(key in table and table[key].median > 0 for table in tables)]
    if len(sessions) < 2 or not shared:
        return Spread()
    logs = np.log(np.array([[table[key].median for key in shared] for table in tables]))
    apart = logs - np.log([_pooled([table[key] for table in tables]).median for key in shared])
    middle = np.median(apart, axis=1)
    further = float(np.sqrt(1.0 + 1.0 / len(sessions)))
    own = 1.4826 * float(np.median(np.abs(apart - middle[:, None])))
    freedom = float(np.sqrt(len(sessions) / (len(sessions) - 1)))  # deviations from a mean of so few are too small
    common = float(np.hypot(further * middle.std(ddof=1), middle.mean()))
    return Spread(common, further * freedom * own)


@dataclass(frozen=True, slots=True)
class Repeat:
    """How well the other sessions' readings of the very same points say what a session reads.

    No model of those sessions can do much better, unless it averages over what disturbed them.

    Parameters
    ----------
    session : int
        Which one was left out, from 0.
    series : str
    points : int
    error : float
        Mean size of the others' pooled reading over its own, less 1 [1].
    """

    session: int
    series: str
    points: int
    error: float


def repeated(sessions: Sequence[Dataset]) -> tuple[Repeat, ...]:
    """What each session's readings say of another's: leaving out one at a time, by series.

    Parameters
    ----------
    sessions : sequence of Dataset
        Of one machine; one alone says nothing.

    Examples
    --------
    >>> one, two = (Dataset("", measurements=(Measurement("x", {}, (time,)),)) for time in (2.0, 3.0))
    >>> [round(found.error, 2) for found in repeated([one, two])]
    [0.5, 0.33]
    """
    found: list[Repeat] = []
    for index, left in enumerate(sessions if len(sessions) > 1 else ()):
        others = {point.key: point.median for point in pool([*sessions[:index], *sessions[index + 1 :]])}
        errors: dict[str, list[float]] = {}
        for point in left:
            if point.unit == "s" and point.median > 0 and point.key in others:
                errors.setdefault(point.series, []).append(abs(others[point.key] / point.median - 1.0))
        found += [Repeat(index, series, len(each), statistics.fmean(each)) for series, each in errors.items()]
    return tuple(found)
