"""How a matrix product falls apart into tiles, and what the last wave of them wastes.

A GEMM kernel gives each multiprocessor one tile of the result at a time. Tiles overhang the
matrix (tile quantisation), and the last wave leaves multiprocessors idle (wave quantisation);
NVIDIA's "Matrix Multiplication Background User's Guide" describes both. Libraries choose among
tile shapes and may split the k dimension over several multiprocessors (split-k), so this
model takes the best choice, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from simperf.workload.op import Gemm

__all__ = ["TILES", "Tiling", "tiling"]

#: tile shapes of the result that GEMM libraries offer (CUTLASS, docs/efficient_gemm)
TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64), (32, 32))
_SPLITS = (1, 2, 4, 8, 16)
#: tile height at which loading operands takes as long as multiplying them; see `_reuse`
_HALF = 12.0
#: steps along k that filling and draining the pipeline of one tile cost
_PIPELINE = 32.0
#: shortest run along k that is worth a multiprocessor of its own
_SHORTEST = 256


@dataclass(frozen=True, slots=True)
class Tiling:
    """The chosen cut of a matrix product.

    Parameters
    ----------
    tiles : int
        Pieces of work, one a multiprocessor at a time.
    waves : int
        Rounds that the device needs for them.
    efficiency : float
        Useful share of what the multiprocessors do, above 0 and at most 1.
    """

    tiles: int
    waves: int
    efficiency: float


def _reuse(height: int, width: int) -> float:
    """Relative speed of a tile: small ones load more operands a multiply-add.

    A tile of height h and width w loads (h + w) k values for h w k multiply-adds, so the
    loading a multiply-add goes as 1 / H with the harmonic mean H of h and w; the share of time
    spent on multiplying is H / (H + H_half).
    """
    mean = 2.0 * height * width / (height + width)
    return mean / (mean + _HALF)


_BEST = max(_reuse(*tile) for tile in TILES)


@lru_cache(maxsize=65536)
def tiling(gemm: Gemm, sms: int, *, least: tuple[int, int] = (0, 0)) -> Tiling:
    """Cut `gemm` for a device of `sms` multiprocessors in the way that takes least time.

    Parameters
    ----------
    gemm : Gemm
    sms : int
    least : tuple of int
        Smallest height and width of a tile: not every library has kernels for all `TILES`. A result that is less high
        wastes the rest of a tile.

    Relative time of a cut: ``waves * h * w * (ceil(k / split) + pipeline) / reuse``. Efficiency
    is the time of the same work without any waste over that time.

    Examples
    --------
    >>> tiling(Gemm(1, 8192, 8192, 8192), 80).efficiency > 0.95
    True
    >>> tiling(Gemm(1, 256, 256, 256), 80).tiles < 80
    True
    >>> flat = Gemm(64, 64, 4096, 4096)
    >>> 1.8 < tiling(flat, 80).efficiency / tiling(flat, 80, least=(128, 64)).efficiency < 1.9
    True
    """
    best: Tiling | None = None
    useful = float(gemm.batch) * gemm.m * gemm.n * gemm.k
    for height, width in TILES:
        if height < least[0] or width < least[1]:
            continue
        pieces = gemm.batch * ceil(gemm.m / height) * ceil(gemm.n / width)
        for split in _SPLITS:
            if split > 1 and (gemm.k < _SHORTEST * split or pieces * split > sms):
                break
            tiles = pieces * split
            waves = ceil(tiles / sms)
            depth = ceil(gemm.k / split) + _PIPELINE
            spent = waves * sms * height * width * depth * _BEST / _reuse(height, width)
            efficiency = useful / spent
            if best is None or efficiency > best.efficiency:
                best = Tiling(tiles, waves, min(1.0, efficiency))
    assert best is not None
    return best
