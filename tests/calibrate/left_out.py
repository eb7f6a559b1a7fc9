"""One session left out at a time: ``python -m tests.calibrate.left_out DATA.json DATA.json ...``.

What the profile of the other sessions says of each, and what their very readings say: the latter is the machine's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.sessions import pool
from simperf.calibrate.steps import step_predictor
from simperf.calibrate.validate import Checked, validate
from simperf.hardware import Catalog, ProfilePart
from tests.calibrate.synthetic import write_profile

__all__ = ["Left", "Repeat", "left_out", "repeated"]

#: what is summed up of all operations, and of whole steps
OPERATIONS, STEPS = "all operations", "whole steps"


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


@dataclass(frozen=True, slots=True)
class Left:
    """Errors at one session's points, by series: of the profile of the other sessions, and of their readings.

    Parameters
    ----------
    points : int
    fitted, held_out : float
        Mean size where the others' points were fitted, and where their shape was held out (NaN without any) [1].
    every : float
        Of both [1].
    readings : float
        Of the others' pooled readings at the same points [1].
    inside : float
        Share of the points in their 90 % interval; without draws those are too narrow [1].
    """

    points: int
    fitted: float
    held_out: float
    every: float
    readings: float
    inside: float


def left_out(sessions: Sequence[Dataset], *, hold_out: int = 5, draws: int = 0) -> list[dict[str, Left]]:
    """For each session: by series, what the others say of it.

    Parameters
    ----------
    sessions : sequence of Dataset
    hold_out : int
        Every so-many-th shape is fitted in no session.
    draws : int
        Of the bootstrap, which values do not need.
    """
    known = {(one.session, one.series): one for one in repeated(sessions)}
    found = []
    for index, session in enumerate(sessions):
        profile = _profile([*sessions[:index], *sessions[index + 1 :]], hold_out, draws)
        out = {key for model in profile.model.values() for key in model.held_out}
        groups: dict[str, list[Checked]] = {}
        for point in validate(profile, session, steps=step_predictor(profile)).points:
            if point.series.startswith("op/"):
                groups.setdefault(point.series, []).append(point)
                groups.setdefault(OPERATIONS, []).append(point)
            elif point.series.startswith("step/") and '"part": "step"' in point.key:
                groups.setdefault(STEPS, []).append(point)
        table = {}
        for name, points in groups.items():
            series = {point.series for point in points}
            same = [one for (left, each), one in known.items() if left == index and each in series]
            readings = sum(one.points * one.error for one in same) / max(1, sum(one.points for one in same))
            errors = np.array([abs(point.error) for point in points])
            inside = np.array([point.inside for point in points], dtype=float)
            where = np.array([point.key in out for point in points])
            table[name] = Left(
                len(points), _mean(errors[~where]), _mean(errors[where]), _mean(errors), readings, _mean(inside)
            )
        found.append(table)
    return found


def _mean(errors: np.ndarray) -> float:
    return float(errors.mean()) if len(errors) else float("nan")


def _profile(sessions: Sequence[Dataset], hold_out: int, draws: int) -> ProfilePart:
    fits = fit_dataset(pool(sessions), hold_out=hold_out, draws=draws, sessions=sessions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.toml"
        write_profile(path, fits)
        return Catalog.load().profile(str(path))


def lines(found: Sequence[dict[str, Left]]) -> Iterator[str]:
    """A table in Markdown: means over the sessions, then each of them."""
    names = list(dict.fromkeys(name for table in found for name in table))
    yield "| | points | fitted shapes | held-out shapes | the other sessions' readings |"
    yield "| --- | --- | --- | --- | --- |"
    for name in sorted(names, key=lambda one: one in (OPERATIONS, STEPS)):
        rows = [table[name] for table in found if name in table]
        means = (np.mean([getattr(row, key) for row in rows]) for key in ("fitted", "held_out", "readings"))
        yield f"| {name} | {rows[0].points} | {' | '.join(f'{value:.1%}' for value in means)} |"
    for index, table in enumerate(found, 1):
        for name in (OPERATIONS, STEPS):
            if name in table:
                row = table[name]
                errors = (row.fitted, row.held_out, row.readings)
                yield f"| session {index}, {name} | {row.points} | {' | '.join(f'{value:.1%}' for value in errors)} |"
    for index, table in enumerate(found, 1):
        every, inside = ({name: getattr(row, key) for name, row in table.items()} for key in ("every", "inside"))
        yield f"session {index}: {', '.join(f'{name} {every[name]:.1%}, {inside[name]:.0%} inside' for name in every)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--hold-out", type=int, default=5)
    parser.add_argument("--draws", type=int, default=0, help="of the bootstrap, for the intervals")
    given = parser.parse_args()
    sessions = [Dataset.load(path) for path in given.data]
    print("\n".join(lines(left_out(sessions, hold_out=given.hold_out, draws=given.draws))))
