"""Several measuring sessions of one machine: pooled, and how far they are apart.

A machine that is shared, or that heats up, is not the same an hour later. Readings of one session do not know that;
those of several do. A point is pooled by keeping all its readings, so that its median is that of all sessions, and one
session in three that was disturbed at a point moves it little.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.errors import InputError, Problem

__all__ = ["Spread", "parts", "pool", "spread"]

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
    """All readings of several sessions as one data set.

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
    points: dict[str, Measurement] = {}
    for dataset in sessions:
        for point in dataset:
            known = points.get(point.key)
            points[point.key] = (
                point
                if known is None
                else replace(
                    known,
                    samples=known.samples + point.samples,
                    warnings=tuple(dict.fromkeys((*known.warnings, *point.warnings))),
                )
            )
    seconds = sum(float(dataset.made.get("seconds", 0.0)) for dataset in sessions)
    made = {**first.made, "seconds": round(seconds, 1), "sessions": len(sessions)}
    made["parts"] = " ".join(dict.fromkeys(part for dataset in sessions for part in parts(dataset)))
    notes = tuple(dict.fromkeys(note for dataset in sessions for note in dataset.notes))
    return replace(first, made=made, measurements=tuple(points.values()), notes=notes)


def parts(dataset: Dataset) -> tuple[str, ...]:
    """Which sessions a data set has, by digests of their readings, so that a profile can tell what it was fitted to."""
    known = str(dataset.made.get("parts", ""))
    readings = repr([(point.key, point.samples) for point in dataset]).encode()
    return tuple(known.split()) or (hashlib.sha256(readings).hexdigest()[:12],)


def spread(sessions: Sequence[Dataset], keys: Sequence[str]) -> Spread:
    """How far apart sessions are at the points of a model.

    What a session shares is the median of its points' distances from their means, so that a disturbed point moves
    nothing.
    A new session lies as far from the mean of these as they do, and that mean is not known either: sqrt(1 + 1/S).

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
    tables = [{point.key: statistics.median(point.samples) for point in dataset} for dataset in sessions]
    shared = [key for key in keys if all(table.get(key, 0.0) > 0 for table in tables)]
    if len(sessions) < 2 or not shared:
        return Spread()
    logs = np.log(np.array([[table[key] for key in shared] for table in tables]))
    apart = logs - logs.mean(axis=0)
    middle = np.median(apart, axis=1)
    further = float(np.sqrt(1.0 + 1.0 / len(sessions)))
    own = 1.4826 * float(np.median(np.abs(apart - middle[:, None])))
    freedom = float(np.sqrt(len(sessions) / (len(sessions) - 1)))  # deviations from a mean of so few are too small
    return Spread(further * float(middle.std(ddof=1)), further * freedom * own)
