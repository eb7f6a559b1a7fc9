"""Measuring a boxed cluster: goes through the points and keeps the raw readings."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from simperf.calibrate.cluster.box import Box
from simperf.calibrate.cluster.experiments import Point
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.measure.facts import machine_facts, version_facts
from simperf.errors import InputError, Problem

__all__ = ["goes_on", "measure", "of_box", "read"]

#: interquartile range over the median from which on a reading is called unsteady
UNSTEADY = 0.1
#: most that is waited for buckets to fill [s]
LONGEST_GAP = 0.1
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
            Measurement(f"step/{part}", at, tuple(row[i + 1] - row[i] for one in found for row in one))
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
    return Measurement(point.series, point.at, point.samples, point.unit, (warning,))


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
    """Measure all points that are not in the data set yet.

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
    done = {point.key for point in dataset}
    queue = [point for point in wanted if not _measured(point, done)]
    began = saved = time.monotonic()
    try:
        with Box(hosts, shape, alone=True) as box:
            for index, point in enumerate(queue):
                if time.monotonic() - began > seconds:
                    break
                progress(index, len(queue), f"{point.series} {dict(point.at)}")
                dataset = dataset.with_points(_take(box, point))
                if output is not None and time.monotonic() - saved > 10.0:
                    dataset.save(output)
                    saved = time.monotonic()
            else:
                progress(len(queue), len(queue), "done")
    finally:
        if output is not None and len(dataset):
            dataset.save(output)
    return dataset


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
    """Measure a point; once more if the readings were unsteady, and keep the steadier ones."""
    box.reshape(point.shape)
    details = {**point.at, **point.details, "ranks": point.hosts, "repeats": point.repeats}
    gap = min(LONGEST_GAP, 2.0 * point.shape.burst / min((point.shape.rate, *point.shape.rate_of.values())))
    best: list[Measurement] = []
    for _ in range(2):
        made = read(point, box.order(point.job, **details, gap=gap))
        if not best or made[0].spread < best[0].spread:
            best = made
        if best[0].spread <= UNSTEADY or not point.series.startswith("all-reduce/"):
            break
    return best


def _empty(hosts: int, command: str) -> Dataset:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine, versions = _facts()
    made: dict[str, Value] = {"command": command, "date": today}
    return Dataset(f"boxed cluster of {hosts} hosts", machine=machine, versions=versions, made=made)


def _measured(point: Point, done: set[str]) -> bool:
    series = "step/forward" if point.series == "step" else point.series
    return Measurement(series, point.conditions, (0.0,)).key in done
