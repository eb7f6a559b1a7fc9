"""Tasks of a measurement: families that list tasks, and tasks that give points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.clock import doubts
from simperf.errors import InputError, Problem, nearest

if TYPE_CHECKING:
    from simperf.calibrate.measure.bench import Bench

__all__ = ["FAMILIES", "Family", "Task", "check_families", "note_text", "point", "points_of_rows", "tasks"]

#: family -> module that lists its tasks, in the order in which they are measured
FAMILIES: Mapping[str, str] = {
    "frontend": "frontend",
    "mixed": "mixed",
    "sync": "sync",
    "gemm": "dense",
    "conv": "convolution",
    "elementwise": "pointwise",
    "rows": "rows",
    "attention": "attention",
    "optimizer": "update",
    "queue": "queue",
    "streams": "streams",
    "graph": "graphs",
    "fused": "fused",
    "copy": "copies",
    "overlap": "overlap",
    "program": "programs",
    "step": "steps",
    "loader": "loader",
    "storage": "storage",
    "collective": "collectives",
}


@dataclass(frozen=True, slots=True)
class Task:
    """One or more points that are measured in one go.

    Parameters
    ----------
    points : sequence of (str, mapping)
        Series and conditions of each, known before anything is run.
    run : callable
        Gives the measurements as they are made; called with the indices of the points that are wanted.
    together : bool
        All points are read off the same runs: what disturbed one of them disturbed all.
    seconds : float
        Expected time of all points [s]; 0 if unknown.
    """

    points: Sequence[tuple[str, Mapping[str, Value]]]
    run: Callable[[Sequence[int]], Iterator[Measurement]]
    together: bool = False
    seconds: float = 0.0

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the points, as `Measurement.key` has them."""
        return tuple(Measurement(series, at, (0.0,)).key for series, at in self.points)

    @property
    def title(self) -> str:
        """For a progress bar."""
        return self.points[0][0] if self.points else ""


#: what a family lists: tasks, and in words what cannot be measured here
Family = Iterator["Task | str"]


def point(
    series: str,
    at: Mapping[str, Value],
    take: Callable[[], Sequence[float]],
    *,
    unit: str = "s",
    seconds: float = 0.0,
) -> Task:
    """A task of one point: `take` gives its readings; `seconds` is how long that is expected to take [s]."""

    def run(wanted: Sequence[int]) -> Iterator[Measurement]:
        samples = tuple(take())
        yield Measurement(series, at, samples, unit, doubts(samples))

    return Task(((series, at),), run, seconds=seconds)


def points_of_rows(
    points: Sequence[tuple[str, Mapping[str, Value]]], take: Callable[[], Sequence[Sequence[float]]]
) -> Task:
    """A task of points that are read off the same runs: `take` gives a row a run, a reading a point."""

    def run(wanted: Sequence[int]) -> Iterator[Measurement]:
        rows = take()
        for index in wanted:
            samples = tuple(row[index] for row in rows)
            yield Measurement(*points[index], samples, warnings=doubts(samples))

    return Task(tuple(points), run, together=True)


def note_text(series: str, reason: str) -> str:
    """A note on a series that was not measured."""
    return f"{series}: not measured: {reason}"


def check_families(only: Sequence[str], families: Collection[str] = tuple(FAMILIES)) -> None:
    """Refuse what is none of the families.

    Raises
    ------
    InputError
        There is no such family.
    """
    unknown = [name for name in only if name not in families]
    if unknown:
        known = ", ".join(families)
        message = "there is no such family of measurements"
        raise InputError(
            [
                Problem(message + nearest(name, families), key="--only", value=repr(name), expected=known)
                for name in unknown
            ]
        )


def tasks(bench: Bench, only: Sequence[str] = ()) -> Iterator[tuple[str, Task | str]]:
    """All tasks for a bench, family by family; and notes on what it cannot measure.

    Parameters
    ----------
    bench : Bench
    only : sequence of str
        Families, keys of `FAMILIES`; all if empty.

    Raises
    ------
    InputError
        There is no such family.
    """
    check_families(only)
    for name, module in FAMILIES.items():
        if only and name not in only:
            continue
        family = import_module(f"{__package__}.{module}").family
        for item in family(bench):
            yield name, item
