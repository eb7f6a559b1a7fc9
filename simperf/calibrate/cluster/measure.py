"""Measuring a boxed cluster: goes through the points and keeps the raw readings.

Sends that constants are fitted to are taken in several goes, from the beginning to the end of a session, and their
readings joined. What was disturbed is measured again when all else is done, because disturbances come in stretches of
minutes, and after waiting for the end of one.
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
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.measure.facts import machine_facts, version_facts
from simperf.calibrate.measure.stolen import STOLEN, Stolen, calm_now, taken_away
from simperf.errors import InputError, Problem

__all__ = ["goes_on", "measure", "of_box", "read"]

#: interquartile range over the median from which on a reading is called unsteady
UNSTEADY = 0.1
#: most that is waited for buckets to fill [s]
LONGEST_GAP = 0.1
#: how often disturbed points are measured again, and over the time of the first round, the most that this may take [1]
ROUNDS, AGAIN = 2, 0.5
#: time between two looks at whether a disturbance is over [s]
PAUSE = 5.0
Progress = Callable[[int, int, str], None]


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
) -> Dataset:
    """Measure all points that are not in the data set yet, and again those whose readings are disturbed.

    Parameters
    ----------
    hosts : int
        Hosts that are set up.
    shape : Shape
        Of the links at the start.
    wanted : iterable of Point
    output : path, optional
        Written after every few points, so that an interrupted run goes on where it was.
    before : Dataset, optional
        What was measured earlier.
    seconds : float
        Stop after so long [s].
    progress : callable
        Told points done, points in all and what is next.
    command : str
        Kept in the data set.
    """
    dataset = before or _empty(hosts, command)
    every = list(wanted)
    began = saved = time.monotonic()
    limit = seconds
    try:
        with Box(hosts, shape, alone=True) as box:
            for turn in range(ROUNDS + 1):
                known = {point.key: point for point in dataset}
                queue = _doubtful(every, known) if turn else _lacking(every, known)
                words = "again " if turn else ""
                for index, point in enumerate(queue):
                    if time.monotonic() - began > limit:
                        break
                    progress(index, len(queue), f"{words}{point.series} {dict(point.at)}")
                    made = _take(box, point)
                    before_it = [known[one.key] for one in made if one.key in known]
                    kept = made if len(before_it) < len(made) else (_calmer if turn else _joined)(before_it, made)
                    known.update((one.key, one) for one in kept)
                    dataset = dataset.with_points(kept)
                    if output is not None and time.monotonic() - saved > 10.0:
                        dataset.save(output)
                        saved = time.monotonic()
                    if turn and taken_away(made[0].stolen):
                        progress(index + 1, len(queue), "the host of this machine is elsewhere: waiting")
                        _await_calm(began + limit)
                else:
                    if queue:
                        progress(len(queue), len(queue), "done")
                if turn == 0 and queue:
                    limit = min(seconds, (1.0 + AGAIN) * (time.monotonic() - began))
    finally:
        if output is not None and len(dataset):
            dataset.save(output)
    return dataset


def _await_calm(until: float) -> None:
    """Wait until the host takes nothing away any more, or that instant has come [s]."""
    while time.monotonic() + PAUSE < until and not calm_now():
        time.sleep(PAUSE)


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


def _calmer(before: Sequence[Measurement], made: Sequence[Measurement]) -> Sequence[Measurement]:
    """What was measured, or what is known of the same points where that was disturbed less."""
    return min((made, before), key=lambda one: _disturbance(one[0]))


def _joined(before: Sequence[Measurement], made: Sequence[Measurement]) -> Sequence[Measurement]:
    """The readings of several goes together; a disturbed one has no part in it, if there is a calm one."""
    if any(taken_away(one[0].stolen) for one in (before, made)):
        return _calmer(before, made)
    every = []
    for one, more in zip(before, made, strict=True):
        stolen = None
        if one.stolen is not None and more.stolen is not None:
            part = len(more.samples) / (len(one.samples) + len(more.samples))
            stolen = (1.0 - part) * one.stolen + part * more.stolen
        every.append(replace(more, samples=(*one.samples, *more.samples), stolen=stolen, warnings=()))
    return [_steady(every[0]), *every[1:]]


def _disturbance(point: Measurement) -> tuple[float, float]:
    """What decides which of two measurements of a point is kept: never their values."""
    stolen = point.stolen or 0.0
    return (stolen if stolen > STOLEN else 0.0), point.spread


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


def goes_on(before: Dataset, path: str | os.PathLike[str]) -> None:
    """Refuse to go on with a file that is of no boxed cluster, or of another machine or torch.

    Parameters
    ----------
    before : Dataset
        What is in the file.
    path : str or os.PathLike
        The file, for messages.

    Raises
    ------
    InputError
        All that differs.
    """
    from simperf.calibrate.measure.session import refuse_another

    of_box(before, path)
    machine, versions = _facts()
    refuse_another(before, path, machine, versions, conditions={})


def _facts() -> tuple[dict[str, Value], dict[str, str]]:
    """Machine and versions."""
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


def _empty(hosts: int, command: str) -> Dataset:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine, versions = _facts()
    made: dict[str, Value] = {"command": command, "date": today}
    return Dataset(f"boxed cluster of {hosts} hosts", machine=machine, versions=versions, made=made)


def _key(point: Point) -> str:
    """Of the measurement that a point makes, or of the first one."""
    series = "step/forward" if point.series == "step" else point.series
    return Measurement(series, point.conditions, (0.0,)).key
