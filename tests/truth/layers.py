"""What whole tables of layers tell that twenty of their rows do not: long sums, and boards that never rest.

``python -m tests.truth.layers linear.csv [bmm.csv]`` reads NeuSight's tables (github.com/sitar-lab/NeuSight,
scripts/asplos/data/dataset/test; they are not part of this repository), which name the kernel beside each time.

- Long sums: for each GPU the constants of `simperf.cost.longsums` that its own layers have, and by how much its long
  ones are missed with those of a P4, with a rate alone, and with its own. The P4 is in no case of the accuracy page.
- Boards of little power: the rate of kernels by their duration, counted over whole tiles, in layers and in batches.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import numpy as np

__all__ = [
    "BOARDS",
    "Board",
    "Product",
    "Waiting",
    "fitted",
    "missed",
    "rates",
    "read",
    "seconds",
    "sustained",
    "whole",
]


@dataclass(frozen=True)
class Board:
    """A GPU by its data sheet, and the kernel on which it runs most layers.

    Parameters
    ----------
    kernel : str
        Part of its name.
    tile : tuple of int
        Height and width.
    peak : mapping of str to float
        [FLOP/s]
    sms : int
    l2 : float
        [B]
    architecture : str
    """

    kernel: str
    tile: tuple[int, int]
    peak: Mapping[str, float] = field(default_factory=dict)
    sms: int = 1
    l2: float = 0.0
    architecture: str = "pascal"


#: P4: NVIDIA Tesla P4 datasheet, 2016, and the whitepaper of the GTX 1080, which has the same chip; else the catalogue
BOARDS: Mapping[str, Board] = {
    "Tesla P4": Board("128x128", (128, 128), {"fp32": 5.5e12}, 20, 2 * 2.0**20),
    "Tesla P100-PCIE-16GB": Board("sgemm_32x128", (128, 32), {"fp32": 9.3e12}, 56, 4 * 2.0**20),
    "Tesla V100-PCIE-32GB": Board("sgemm_128x128", (128, 128), {"fp32": 14.0e12}, 80, 6 * 2.0**20, "volta"),
}
#: sums of so many numbers are long
_LONG = 6000
#: shorter readings hold too much of the launch [s]
_SHORT = 5e-4
#: longest durations of the groups of `sustained` [s]
_UNTIL = (1e-3, 1e-2, 1e-1, np.inf)


@dataclass(frozen=True, slots=True)
class Product:
    """One line of a table: a batch of products, its kernel and its grid, and its time [s]."""

    batch: int
    m: int
    n: int
    k: int
    kernel: str
    blocks: int
    time: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Constants of long sums: rows a clock and cluster, rows that the L2 keeps, the power, and waves; and the rate."""

    clock: float = 1.0
    rows: float = 98.7
    power: float = 2.0
    waves: float = 126.0
    rate: float = 0.85


def read(lines: Iterable[Mapping[str, str]]) -> dict[str, list[Product]]:
    """Lines by GPU. NeuSight multiplies (B, M, N) by (B, N, K): its N is what the sum runs over."""
    found: dict[str, list[Product]] = {}
    for line in lines:
        batch, m, k, n = (int(line[key]) for key in "BMNK")
        blocks = int(np.prod([float(line[f"Grid {axis}"]) for axis in "xyz"]))
        one = Product(batch, m, n, k, line["Kernel Name"], blocks, float(line["Latency"]) * 1e-3)
        found.setdefault(line["Device"], []).append(one)
    return found


def whole(products: Sequence[Product], board: Board) -> list[Product]:
    """Those that ran on the board's kernel, unsplit."""
    height, width = board.tile
    return [
        one
        for one in products
        if board.kernel in one.kernel
        and one.time > _SHORT
        and abs(one.blocks / (one.batch * ceil(one.m / height) * ceil(one.n / width)) - 1.0) < 0.2
    ]


def seconds(products: Sequence[Product], board: Board, given: Waiting) -> np.ndarray:
    """Whole tiles in whole waves, and the time for which they wait for their rows."""
    height, width = board.tile
    tiles = np.array([one.batch * ceil(one.m / height) * ceil(one.n / width) for one in products])
    k = np.array([float(one.k) for one in products])
    waves = np.ceil(tiles / board.sms)
    peak = board.peak["fp32"]
    plain = 2.0 * waves * board.sms * height * width * (k + 8.0) / (given.rate * peak)
    every = tiles * (height + width) * np.ceil(k / 8.0) * 1280.0 / peak
    reach = board.l2 / (given.rows * 4.0 * k) * (1.0 + given.waves / waves)
    return np.asarray(plain + every / given.clock / (1.0 + reach**given.power))


def fitted(products: Sequence[Product], board: Board, *, free: Sequence[str] = ("clock", "rows", "rate")) -> Waiting:
    """Constants that `free` names, by the layers themselves; the others as they are by default."""
    from scipy.optimize import least_squares

    start = Waiting()
    times = np.array([one.time for one in products])

    def given(point: np.ndarray) -> Waiting:
        values = {name: getattr(start, name) for name in ("clock", "rows", "power", "waves", "rate")}
        return Waiting(**values | {name: float(np.exp(value)) for name, value in zip(free, point, strict=True)})

    def residual(point: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(seconds(products, board, given(point)) / times))

    begin = np.log([getattr(start, name) for name in free])
    return given(least_squares(residual, begin, loss="soft_l1", f_scale=0.1).x)


def missed(products: Sequence[Product], board: Board, given: Waiting) -> float:
    """Mean size of the relative errors [1]."""
    times = np.array([one.time for one in products])
    return float(np.abs(seconds(products, board, given) / times - 1.0).mean())


def rates(products: Sequence[Product], sms: int) -> np.ndarray:
    """Duration [s] and rate [FLOP/s] of kernels that name their tile, unsplit, counted over whole waves of it."""
    rows = []
    for one in products:
        tile = re.search(r"sgemm_(\d+)x(\d+)_", one.kernel)
        if tile is None or one.time < 3e-4 or one.k < 256:
            continue
        height, width = int(tile[1]), int(tile[2])
        cuts = [one.batch * ceil(one.m / a) * ceil(one.n / b) for a, b in ((width, height), (height, width))]
        if one.blocks in cuts:
            done = 2.0 * ceil(one.blocks / sms) * sms * height * width * one.k
            rows.append((one.time, done / (one.time - 16e-6)))
    return np.array(rows).reshape(-1, 2).T


def sustained(layers: Sequence[Product], batches: Sequence[Product], sms: int) -> Iterator[tuple[str, ...]]:
    """Quartiles of the rate by duration, of layers and of batches [TFLOP/s], after the mean time of a shape [s]."""
    tables = [rates(products, sms) for products in (layers, batches)]
    yield "mean", *(f"{np.mean([one.time for one in products]) * 1e3:.0f} ms" for products in (layers, batches))
    least = 0.0
    for most in _UNTIL:
        cells = []
        for times, reached in tables:
            here = reached[(times >= least) & (times < most)]
            quartiles = np.quantile(here, (0.25, 0.5, 0.75)) if len(here) else ()
            cells.append(", ".join(f"{one / 1e12:.1f}" for one in quartiles))
        yield f"below {most:g} s", *cells
        least = most


def lines(table: Mapping[str, Sequence[Product]]) -> Iterator[str]:
    """Long sums by GPU, in Markdown."""
    yield "| GPU | layers | long | rows a clock | rows kept | a rate misses the long by | a P4's constants | its own |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for gpu, board in BOARDS.items():
        products = whole(table.get(gpu, ()), board)
        if not products:
            continue
        long = [one for one in products if one.k > _LONG]
        free = ("clock", "rows", "power", "waves", "rate") if gpu == "Tesla P4" else ("clock", "rows", "rate")
        own = fitted(products, board, free=free)
        alone = fitted([one for one in products if one.k <= _LONG], board, free=("rate",))
        plain = Waiting(clock=np.inf, rate=alone.rate)
        cells = (missed(long, board, plain), missed(long, board, alone), missed(long, board, own))
        errors = " | ".join(f"{one:.1%}" for one in cells)
        yield f"| {gpu} | {len(products)} | {len(long)} | {own.clock:.2f} | {own.rows:.0f} | {errors} |"
        if gpu == "Tesla P4":
            every = missed(products, board, own)
            yield f"<!-- P4: power {own.power:.2f}, waves {own.waves:.0f}, all layers missed by {every:.1%} -->"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("layers", type=Path)
    parser.add_argument("batches", type=Path, nargs="?")
    paths = parser.parse_args()
    loaded = []
    for path in (paths.layers, paths.batches):
        if path is not None:
            with path.open(encoding="utf-8", newline="") as stream:
                loaded.append(read(csv.DictReader(stream)))
    for line in lines(loaded[0]):
        print(line)
    for name, multiprocessors in (("Tesla T4", 40), ("NVIDIA L4", 58)) if len(loaded) > 1 else ():
        print(f"\n| {name} | layers | batches |\n|---|--:|--:|")
        for row in sustained(loaded[0][name], loaded[1][name], multiprocessors):
            print(f"| {' | '.join(row)} |")
