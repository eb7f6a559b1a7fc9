"""Tiles of a matrix product, and what the last wave of them wastes.

A GEMM kernel gives each multiprocessor one tile of the result at a time. Tiles overhang the
matrix (tile quantisation), and the last wave leaves multiprocessors idle (wave quantisation);
NVIDIA's "Matrix Multiplication Background User's Guide" describes both. Libraries choose among
tile shapes and may split the k dimension over several multiprocessors (split-k), so this
model takes the best choice, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from simperf.cost.seams import GpuRates
from simperf.workload.op import Gemm, Op
from simperf.workload.precision import element_size

__all__ = ["LOADING", "SINGLE", "TILES", "Tiling", "library_tile", "loading", "tile_speed", "tiling"]

#: tile shapes of the result that GEMM libraries offer (CUTLASS, docs/efficient_gemm)
TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64), (32, 32))
#: height and width of the one tile that four of five fp32 products run on, by kind and architecture: so kernels call
#: themselves in column "Kernel Name" of NeuSight's tables (batches: maxwell_sgemm_128x64 on P100, volta_sgemm_128x64 on
#: T4, ampere_sgemm_128x128 on A100 and L4; layers on P100: maxwell_sgemm_32x128; width before height, as rows lie one
#: after the other). Layers on the others, and all products on H100, spread over three kernels and more.
SINGLE: Mapping[tuple[str, str], tuple[int, int]] = {
    ("bmm", "pascal"): (64, 128),
    ("bmm", "turing"): (64, 128),
    ("bmm", "ampere"): (128, 128),
    ("bmm", "ada"): (128, 128),
    ("linear", "pascal"): (128, 32),
}
_SPLITS = (1, 2, 4, 8, 16)
#: tile height at which loading operands takes as long as multiplying them, in fp32; see `_reuse` and `loading`
LOADING = 12.0
#: steps along k that filling and draining the pipeline of one tile cost
_PIPELINE = 32.0
#: shortest run along k that is worth a multiprocessor of its own
_SHORTEST = 256
#: steps along k that a kernel which is known adds to each tile: one of its steps of 8, as CUTLASS's and cuBLAS's fp32
#: kernels take them; what they lose besides is fitted
_STEP = 8.0


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


def library_tile(op: Op, device: GpuRates) -> tuple[int, int] | None:
    """The one tile that a library has for `op` on a GPU of the catalogue, if that is known."""
    return SINGLE.get((op.kind, str(getattr(device, "architecture", "")))) if op.dtype == "fp32" else None


def loading(device: GpuRates, dtype: str) -> float:
    """Tile height at which loading operands takes as long as multiplying them.

    Matrix units multiply faster than vector units load: as many times more as their peak is that of fp32, and half as
    much where an element has half the bytes.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> a100 = Catalog.load().gpu("a100-sxm4-80gb")
    >>> loading(a100, "fp32"), loading(a100, "fp16")
    (12.0, 96.0)
    """
    plain, here = device.peak.get("fp32", 0.0), device.peak.get(dtype, 0.0)
    return LOADING * here / plain * element_size(dtype) / 4.0 if plain > 0 and here > 0 else LOADING


def _reuse(height: int, width: int, half: float) -> float:
    """Relative speed of a tile: small ones load more operands a multiply-add.

    A tile of height h and width w loads (h + w) k values for h w k multiply-adds, so the
    loading a multiply-add goes as 1 / H with the harmonic mean H of h and w; the share of time
    spent on multiplying is H / (H + H_half).
    """
    mean = 2.0 * height * width / (height + width)
    return mean / (mean + half)


def tile_speed(height: int, width: int, *, half: float = LOADING) -> float:
    """Rate of a tile over that of the largest: what a library pays that has no larger one [1].

    Examples
    --------
    >>> round(tile_speed(128, 32), 2), round(tile_speed(128, 128), 2), tile_speed(256, 128)
    (0.87, 0.98, 1.0)
    """
    return _reuse(height, width, half) / max(_reuse(*tile, half) for tile in TILES)


@lru_cache(maxsize=65536)
def tiling(
    gemm: Gemm, sms: int, *, least: tuple[int, int] = (0, 0), only: bool = False, half: float = LOADING
) -> Tiling:
    """Cut `gemm` for a device of `sms` multiprocessors in the way that takes least time.

    Parameters
    ----------
    gemm : Gemm
    sms : int
    least : tuple of int
        Smallest height and width of a tile: not every library has kernels for all `TILES`. A result that is less high
        wastes the rest of a tile.
    only : bool
        The library has this one tile, whatever the shape, and never splits k: efficiency is then relative to what the
        tile reaches itself. Batches of fp32 products are such, with one or two kernels a generation of GPUs.
    half : float
        Tile height at which loading takes as long as multiplying (`loading`).

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
    >>> one = tiling(Gemm(81, 128, 96, 1016), 80, least=(128, 128), only=True)
    >>> one.tiles, one.waves, round(one.efficiency, 4)
    (81, 2, 0.3767)
    """
    if only:
        return _cut(gemm, sms, *least)
    best: Tiling | None = None
    useful = float(gemm.batch) * gemm.m * gemm.n * gemm.k
    fastest = max(_reuse(*tile, half) for tile in TILES)
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
            spent = waves * sms * height * width * depth * fastest / _reuse(height, width, half)
            efficiency = useful / spent
            if best is None or efficiency > best.efficiency:
                best = Tiling(tiles, waves, min(1.0, efficiency))
    assert best is not None
    return best


def _cut(gemm: Gemm, sms: int, height: int, width: int) -> Tiling:
    """By one tile, without a choice."""
    tiles = gemm.batch * ceil(gemm.m / height) * ceil(gemm.n / width)
    waves = ceil(tiles / sms)
    spent = waves * sms * height * width * (gemm.k + _STEP)
    return Tiling(tiles, waves, float(gemm.batch) * gemm.m * gemm.n * gemm.k / spent)
