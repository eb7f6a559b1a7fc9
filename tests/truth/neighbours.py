"""How far a table of batched products repeats itself: what no formula of the shape can go below.

``python -m tests.truth.neighbours bmm.csv [--cases cases.json]`` reads NeuSight's table of batched products
(github.com/sitar-lab/NeuSight, scripts/asplos/data/dataset/test/bmm.csv; it is not part of this repository), in which
the same product was timed with many batch sizes, and with each time the kernel and its grid are told. Two launches of
one kernel on the same m, n and k differ in their waves alone, so that the time a wave must be a smooth function of the
batch. What a reading lies off the line between its two neighbours is no matter of the shape. The last column is by how
much the readings of the same product with the next smaller and the next larger batch miss the shapes that the case
holds out.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from simperf.hardware import Catalog

__all__ = ["GPUS", "Reading", "after", "floor_of", "own", "read", "scatter"]

#: device of the table -> GPU of the cases, part of the catalogue
GPUS = {
    "Tesla P100-PCIE-16GB": ("P100-PCIE", "p100-pcie-16gb"),
    "Tesla T4": ("T4", "t4"),
    "NVIDIA A100-PCIE-40GB": ("A100-PCIE-40GB", "a100-pcie-40gb"),
    "NVIDIA A100 80GB PCIe": ("A100-PCIE-80GB", "a100-pcie-80gb"),
    "NVIDIA L4": ("L4", "l4"),
    "NVIDIA H100 80GB HBM3": ("H100-SXM5-80GB", "h100-sxm5-80gb"),
}
#: neighbours are at most so many times as large, from the smaller to the larger of the two
_NEAR = 2.5
#: shorter readings hold too much of the launch [s]
_SHORT = 1e-4
#: readings of a duration that are taken together
_TOGETHER = 60


@dataclass(frozen=True, slots=True)
class Reading:
    """One line of the table.

    Parameters
    ----------
    shape : tuple of int
        Batch, then m, n and k as the table has them.
    kernel : str
    time : float
        [s]
    waves : int
    before : float
        Time of the shape that was measured before this one [s].
    """

    shape: tuple[int, int, int, int]
    kernel: str
    time: float
    waves: int
    before: float


def read(lines: Iterable[Mapping[str, str]]) -> dict[str, list[Reading]]:
    """Readings by GPU, in the order in which they were taken."""
    catalog, found = Catalog.load(), dict[str, list[Reading]]()
    for line in lines:
        if line["Device"] not in GPUS:
            continue
        gpu, part = GPUS[line["Device"]]
        readings = found.setdefault(gpu, [])
        blocks = np.prod([float(line[f"Grid {axis}"]) for axis in "xyz"])
        before = readings[-1].time if readings else 0.0
        shape = (int(line["B"]), int(line["M"]), int(line["N"]), int(line["K"]))
        waves = ceil(blocks / catalog.gpu(part).sms)
        readings.append(Reading(shape, line["Kernel Name"], float(line["Latency"]) * 1e-3, waves, before))
    return found


def scatter(readings: Sequence[Reading]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time of each reading with neighbours, the time of the shape before it, and how far it lies off their line.

    The last is a signed logarithm, scaled to what one reading scatters: neighbours scatter, too.
    """
    series: dict[tuple[Any, ...], list[Reading]] = {}
    for one in readings:
        if one.time >= _SHORT:
            series.setdefault((*one.shape[1:], one.kernel), []).append(one)
    rows = []
    for line in series.values():
        line.sort(key=lambda one: one.shape[0])
        for left, here, right in zip(line, line[1:], line[2:], strict=False):
            if right.shape[0] > _NEAR * left.shape[0]:
                continue
            low, middle, high = (np.log(one.shape[0]) for one in (left, here, right))
            share = (high - middle) / (high - low)
            first, value, last = (np.log(one.time / one.waves) for one in (left, here, right))
            off = value - share * first - (1.0 - share) * last
            rows.append((here.time, here.before, off / np.sqrt(1.0 + share**2 + (1.0 - share) ** 2)))
    times, before, off = np.array(rows).reshape(-1, 3).T
    return times, before, off


def floor_of(readings: Sequence[Reading], times: Sequence[float]) -> float:
    """Mean size of what readings as long as `times` [s] scatter: no smooth function has a lower mean error [1]."""
    known, _, off = scatter(readings)
    nearest = (np.argsort(np.abs(np.log(known / time)), kind="stable")[:_TOGETHER] for time in times)
    return float(np.mean([np.abs(off[index]).mean() for index in nearest]))


def own(readings: Sequence[Reading], shapes: Iterable[Sequence[int]]) -> np.ndarray:
    """Relative errors of `shapes` as the nearest smaller and larger batch of the same kernel have them.

    On the line between the logarithms of their times a wave; shapes that lack one of the two are left out.
    """
    found = []
    known = {one.shape: one for one in readings}
    for here in (known[tuple(shape)] for shape in shapes if tuple(shape) in known):  # type: ignore[index]
        same = [one for one in readings if one.shape[1:] == here.shape[1:] and one.kernel == here.kernel]
        smaller = max((one for one in same if one.shape[0] < here.shape[0]), key=lambda one: one.shape[0], default=None)
        larger = min((one for one in same if one.shape[0] > here.shape[0]), key=lambda one: one.shape[0], default=None)
        if smaller is None or larger is None:
            continue
        low, middle, high = (np.log(one.shape[0]) for one in (smaller, here, larger))
        share = (high - middle) / (high - low)
        first, last = (np.log(one.time / one.waves) for one in (smaller, larger))
        found.append(here.waves * np.exp(share * first + (1.0 - share) * last) / here.time - 1.0)
    return np.array(found)


def after(readings: Sequence[Reading], *, short: float, long: float) -> tuple[float, float]:
    """Median rate of readings of 0.1 to 15 ms over their neighbours', after a short shape and after a long one [1]."""
    times, before, off = scatter(readings)
    here = times < 15e-3
    return tuple(float(np.exp(-np.median(off[here & which]))) for which in (before < short, before > long))  # type: ignore[return-value]


def lines(table: Mapping[str, Sequence[Reading]], cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table in Markdown."""
    yield (
        "| GPU | 0.1 to 15 ms | above 15 ms | roof-bmm-fp32-6gpus | its held-out half | rate after short, long |"
        " held-out half by its neighbours |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for gpu, readings in table.items():
        times, _, off = scatter(readings)
        parts = [f"{np.abs(off[which]).mean():.1%}" for which in (times < 15e-3, times >= 15e-3)]
        rows = [row for case in cases for row in _times(case, gpu)]
        floors = [f"{floor_of(readings, some):.1%}" if some else "" for some in (rows, rows[1::2])]
        rates = ", ".join(f"{rate:.2f}" for rate in after(readings, short=1e-3, long=30e-3))
        errors = own(readings, [row[:4] for case in cases for row in case["measured"]["table"][1::2]])
        told = f"{np.abs(errors).mean():.1%} of {len(errors)}" if len(errors) else ""
        yield f"| {gpu} | {parts[0]} | {parts[1]} | {floors[0]} | {floors[1]} | {rates} | {told} |"


def _times(case: Mapping[str, Any], gpu: str) -> list[float]:
    columns, table = case["measured"]["columns"], case["measured"]["table"]
    return [row[columns.index(gpu)] * 1e-3 for row in table] if gpu in columns else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("--cases", type=Path)
    given = parser.parse_args()
    loaded = json.loads(given.cases.read_text("utf-8")) if given.cases else []
    known = [
        case
        for case in (loaded["cases"] if isinstance(loaded, dict) else loaded)
        if case["id"] == "roof-bmm-fp32-6gpus"
    ]
    with given.table.open(encoding="utf-8", newline="") as stream:
        for line in lines(read(csv.DictReader(stream)), known):
            print(line)
