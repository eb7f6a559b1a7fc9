"""Measuring a boxed cluster: goes through the points and keeps the raw readings.

Points are taken in several goes, from the beginning to the end of a session, and their readings joined. What was
disturbed is measured again when all else is done (`simperf.calibrate.measure.remeasure`).
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from simperf.calibrate.cluster.box import Box
from simperf.calibrate.cluster.experiments import Point, in_order
from simperf.calibrate.cluster.priority import REAL_TIME
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.measure.facts import machine_facts, version_facts
from simperf.calibrate.measure.remeasure import AGAIN, calmer, repeat
from simperf.calibrate.measure.steal_time import Stolen, taken_away
from simperf.errors import InputError, Problem

__all__ = ["goes_on", "machine_and_versions", "measure", "of_box", "priority_of", "read"]

#: interquartile range over the median from which on a reading is called unsteady
UNSTEADY = 0.1
#: most that is waited for buckets to fill [s]
LONGEST_GAP = 0.1
#: how often what was measured is written [s]
SAVED = 10.0
#: series that are read off the same runs as others, which tell whether these were steady
_BESIDE = ("cpu/", "send/left")
Progress = Callable[[int, int, str], None]
_Keep = Callable[[Sequence[Measurement], Sequence[Measurement]], Sequence[Measurement]]


def read(point: Point, answers: Sequence[Any]) -> list[Measurement]:
    """Turn what the hosts read into measurements.

    Times of a send or a collective count from the first host that began to the last that had ended.
    """
    found: list[Any] = [answer for answer in answers if answer is not None]
    at = point.conditions
    if point.series == "step":
        parts = ("forward", "backward", "update")
        return [
            _steady(Measurement(f"step/{part}", at, tuple(row[i + 1] - row[i] for one in found for row in one)))
            for i, part in enumerate(parts)
        ]
    if point.series == "ddp":
        return [_steady(Measurement(point.series, at, tuple(end - begin for begin, end in found[0])))]
    turns = list(zip(*found, strict=True))
    times = tuple(max(row[1] for row in turn) - min(row[0] for row in turn) for turn in turns)
    if point.series.startswith("server/"):
        updates = float(point.at["steps"]) * (len(found) - 1)
        return [_steady(Measurement(point.series, at, tuple(updates / time for time in times), unit="updates/s"))]
    made = [_steady(Measurement(point.series, at, times))]
    if point.series == "send":
        made.append(Measurement("send/left", at, tuple(row[1] - row[0] for row in found[0])))
    if point.series == "send-train":
        made.append(Measurement("cpu/call", at, tuple(sum(row[3] for row in turn) for turn in turns)))
    if point.family == "send":
        made.append(Measurement(f"cpu/{point.series}", at, tuple(sum(row[2] for row in turn) for turn in turns)))
    return made


def _steady(point: Measurement) -> Measurement:
    if point.spread <= UNSTEADY:
        return point
    warning = f"unsteady: interquartile range {point.spread:.0%} of the median"
    return replace(point, warnings=(warning,))


def measure(
    hosts: int,
    shape: Shape,
    wanted: Iterable[Point],
    *,
    output: str | os.PathLike[str] | None = None,
    before: Dataset | None = None,
    seconds: float = float("inf"),
    progress: Progress = lambda done, of, what: None,
    command: str = "simperf calibrate cluster",
    priority: str = REAL_TIME,
) -> Dataset:
    """Measure all points that are not in the data set yet, and again those whose readings are disturbed.

    Parameters
    ----------
    hosts : int
        Most ranks; points with a server have a host more.
    shape : Shape
        Of the links at the start.
    wanted : iterable of Point
    output : path, optional
        Written after every few points, so that an interrupted run continues where it was.
    before : Dataset, optional
        What was measured earlier.
    seconds : float
        Stop after so long [s].
    progress : callable
        Called with points done, points in all and what is next.
    command : str
        Kept in the data set.
    priority : str
        Of the hosts' threads, kept in the data set.
    """
    every, began = list(wanted), time.monotonic()
    hosts = max([hosts, *(point.hosts for point in every)])
    kept = _Kept(before or _empty(hosts, command, priority), output)
    queue = _lacking(every, kept.known)
    try:
        with Box(hosts, shape, alone=True, priority=priority) as box:
            for number, point in enumerate(queue):
                if time.monotonic() - began > seconds:
                    break
                progress(number, len(queue), f"{point.series} {dict(point.at)}")
                kept.add(_take(box, point), _joined)
            else:
                if queue:
                    progress(len(queue), len(queue), "done")
            limit = min(seconds, (1.0 + AGAIN) * (time.monotonic() - began)) if queue else seconds
            done = of = 0

            def doubtful() -> list[tuple[int, int, Point]]:
                found = _doubtful(every, kept.known)
                return [(number, len(found), point) for number, point in enumerate(found)]

            def take(item: tuple[int, int, Point]) -> bool:
                nonlocal done, of
                done, of, point = item
                progress(done, of, f"again {point.series} {dict(point.at)}")
                made = _take(box, point)
                kept.add(made, calmer)
                done += 1
                if done == of:
                    progress(done, of, "done")
                return bool(taken_away(made[0].stolen))

            def waiting() -> None:
                progress(done, of, "the host of this machine is elsewhere: waiting")

            repeat(doubtful, take, until=began + limit, waiting=waiting, now=time.monotonic)
    finally:
        kept.save()
    return kept.dataset


class _Kept:
    """Measurements so far, kept in a file from time to time, so that an interrupted run continues where it was."""

    def __init__(self, dataset: Dataset, output: str | os.PathLike[str] | None) -> None:
        self.dataset = dataset
        self.known = {point.key: point for point in dataset}
        self._output, self._saved = output, time.monotonic()

    def add(self, made: Sequence[Measurement], keep: _Keep) -> None:
        """Keep what was made, or what `keep` makes of it and of what was known of the same points."""
        before = [self.known[one.key] for one in made if one.key in self.known]
        kept = keep(before, made) if len(before) == len(made) else made
        self.known.update((one.key, one) for one in kept)
        self.dataset = self.dataset.with_points(kept)
        if time.monotonic() - self._saved > SAVED:
            self.save()

    def save(self) -> None:
        """Write it, if there is a file for it and anything to write."""
        if self._output is not None and len(self.dataset):
            self.dataset.save(self._output)
            self._saved = time.monotonic()


def _lacking(every: Sequence[Point], known: Mapping[str, Measurement]) -> list[Point]:
    """What has to be measured, in order; a point stands there once for each go that it lacks."""

    def goes(point: Point) -> int:
        before = known.get(_key(point))
        return max(1, len(before.samples) // point.repeats) if before is not None else 0

    return [point for point, taken in in_order(every) if taken >= goes(point)]


def _doubtful(every: Sequence[Point], known: Mapping[str, Measurement]) -> list[Point]:
    """What has to be measured again: it was disturbed, or unsteady within the one go that it had."""

    def doubtful(point: Point) -> bool:
        before = known.get(_key(point))
        if before is None:
            return True
        return bool(before.warnings) if point.goes == 1 else bool(taken_away(before.stolen))

    return [point for point in every if doubtful(point)]


def _joined(before: Sequence[Measurement], made: Sequence[Measurement]) -> Sequence[Measurement]:
    """The readings of several goes together; a disturbed one has no part in it, if there is a calm one."""
    if any(taken_away(one[0].stolen) for one in (before, made)):
        return calmer(before, made)
    every = []
    for one, more in zip(before, made, strict=True):
        stolen = None
        if one.stolen is not None and more.stolen is not None:
            part = len(more.samples) / (len(one.samples) + len(more.samples))
            stolen = (1.0 - part) * one.stolen + part * more.stolen
        every.append(replace(more, samples=(*one.samples, *more.samples), stolen=stolen, warnings=()))
    return [one if one.series.startswith(_BESIDE) else _steady(one) for one in every]


def of_box(data: Dataset, path: str | os.PathLike[str]) -> Dataset:
    """The data set, if it is of a boxed cluster.

    Raises
    ------
    InputError
        It is of something else.
    """
    if data.measurements and not any("burst" in point.at for point in data):
        message = "holds measurements that are of no boxed cluster"
        expected = "a file that `simperf calibrate cluster -o FILE` writes"
        raise InputError(Problem(message, file=os.fspath(path), value=repr(data.title), expected=expected))
    return data


def priority_of(data: Dataset) -> str:
    """Priority of the hosts' threads when a data set was measured; real-time in files from before it was kept."""
    return str(data.made.get("priority", REAL_TIME))


def goes_on(before: Dataset, path: str | os.PathLike[str], priority: str = REAL_TIME) -> None:
    """Refuse to continue with a file that is of no boxed cluster, or of another machine or torch.

    Parameters
    ----------
    before : Dataset
        What is in the file.
    path : str or os.PathLike
        The file, for messages.
    priority : str
        Of the hosts' threads in what is to be added.

    Raises
    ------
    InputError
        All that differs.
    """
    from simperf.calibrate.sessions import refuse_another

    of_box(before, path)
    machine, versions = machine_and_versions()
    refuse_another(before, path, machine, versions, conditions={})
    if (known := priority_of(before)) != priority:
        message = f"was measured with hosts of {known} priority"
        raise InputError(
            Problem(
                message, file=os.fspath(path), key="--priority", value=priority, expected=f"{known}, or another file"
            )
        )


def machine_and_versions() -> tuple[dict[str, Value], dict[str, str]]:
    """Machine and versions as a data set of a boxed cluster records them."""
    import torch

    versions = version_facts(torch)
    versions["kernel"] = versions.get("kernel", "").split("-")[0]
    return machine_facts(), versions


def _take(box: Box, point: Point) -> list[Measurement]:
    """Measure a point, and note what was taken away meanwhile."""
    box.reshape(point.shape)
    details = {**point.at, **point.details, "ranks": point.hosts, "repeats": point.repeats}
    gap = min(LONGEST_GAP, 2.0 * point.shape.burst / min((point.shape.rate, *point.shape.rate_of.values())))
    watch = Stolen()
    made = read(point, box.order(point.job, **details, gap=gap))
    share = watch.lap()
    return [replace(one, stolen=share, warnings=(*one.warnings, *taken_away(share))) for one in made]


def _empty(hosts: int, command: str, priority: str) -> Dataset:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine, versions = machine_and_versions()
    made: dict[str, Value] = {"command": command, "date": today, "priority": priority}
    return Dataset(f"boxed cluster of {hosts} hosts", machine=machine, versions=versions, made=made)


def _key(point: Point) -> str:
    """Of the measurement that a point makes, or of the first one."""
    series = "step/forward" if point.series == "step" else point.series
    return Measurement(series, point.conditions, (0.0,)).key
