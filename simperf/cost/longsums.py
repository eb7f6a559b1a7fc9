"""Layers with long sums: rows of their operands that no cache keeps, and whose addresses are translated one by one.

A layer multiplies rows by rows, and each step along the sum takes a few bytes from every row of a tile. Rows of many
thousand numbers lie in as many pages of memory. Once the rows that a strip of the result needs no longer stay in the L2
cache, each of these small loads goes out to memory, and its address through the unit of its processing cluster (GPC)
that translates addresses, or so the figures suggest: each cluster takes one row a clock on Pascal, which makes the
product wait. A V100 takes 2.5 and keeps more rows; no newer GPU was seen to wait for long.

The constants are those of a Tesla P4, a GPU that nothing is predicted for: 935 layers of NeuSight's table
(github.com/sitar-lab/NeuSight, scripts/asplos/data/dataset/test/linear.csv) on tiles of 128 x 128, fitted with a mean
error of 5.2 %. With them a P100's 353 layers with sums above 6000 numbers have errors of 17 %, as with constants of its
own, where errors with its rate alone are 44 %; its L2 is twice a P4's (``python -m tests.truth.layers linear.csv``).
"""

from __future__ import annotations

from math import ceil

from simperf.cost.seams import GpuRates
from simperf.workload.op import Gemm

__all__ = ["ARCHITECTURES", "row_seconds", "spilled"]

#: that translate one row a clock
ARCHITECTURES = ("pascal",)
#: numbers of a row that a kernel takes in one step along the sum (sgemm_128x128x8 and its like)
_STEP = 8
#: fp32 lanes of a processing cluster: five pairs of multiprocessors of 64 (P100), or five of 128 (P4) (NVIDIA's
#: whitepapers of P100 and GTX 1080)
_LANES = 640.0
#: rows at which half of the loads come from memory, of a product of many waves; the power with which they do
_ROWS, _POWER = 98.7, 2.0
#: waves of tiles before which fewer do: multiprocessors that start together ask for the same rows together
_WAVES = 126.0
#: bytes of a number in fp32
_NUMBER = 4.0


def spilled(length: float, waves: float, l2: float) -> float:
    """Share of the loads of long rows that the L2 cache does not serve [1].

    Parameters
    ----------
    length : float
        Numbers in a row, which is the length of the sums [1].
    waves : float
        Of tiles [1].
    l2 : float
        Capacity of the cache [B].

    Examples
    --------
    >>> round(spilled(2**19 / 98.7, 1e9, 2 * 2**20), 3)
    0.5
    >>> spilled(512, 1e9, 2 * 2**20) < 0.01
    True
    """
    reach = l2 / (_ROWS * _NUMBER * length) * (1.0 + _WAVES / waves)
    return float(1.0 / (1.0 + reach**_POWER))


def row_seconds(gemm: Gemm, tile: tuple[int, int], device: GpuRates) -> float:
    """Time for which a layer waits for the addresses of its rows, beside its arithmetic [s]; 0 on other architectures.

    Parameters
    ----------
    gemm : Gemm
        Whose operands both have their rows along the sum, as those of a layer.
    tile : tuple of int
        Height and width.
    device : GpuRates
        A part of the catalogue, with its `architecture` and `l2`.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> p100 = Catalog.load().gpu("p100-pcie-16gb")
    >>> long, short = Gemm(1, 4096, 4096, 65536), Gemm(1, 4096, 4096, 1024)
    >>> round(row_seconds(long, (128, 32), p100) / (2 * long.m * long.n * long.k / 9.3e12), 3)
    2.622
    >>> round(row_seconds(short, (128, 32), p100) / (2 * short.m * short.n * short.k / 9.3e12), 3)
    0.004
    """
    l2 = float(getattr(device, "l2", None) or 0.0)
    if getattr(device, "architecture", "") not in ARCHITECTURES or l2 <= 0:
        return 0.0
    height, width = tile
    tiles = gemm.batch * ceil(gemm.m / height) * ceil(gemm.n / width)
    rows = tiles * (height + width) * ceil(gemm.k / _STEP)
    # clusters times clock, by the peak of two operations a lane and clock
    a_second = device.peak["fp32"] / (2.0 * _LANES)
    return rows / a_second * spilled(gemm.k, ceil(tiles / device.sms), l2)
