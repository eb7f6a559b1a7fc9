"""Launches of kernels that work on whole rows, and rows that they must read again.

Softmax needs the maximum and the sum of a row before it can write, normalisation the mean and the variance: a row is
passed over again, from a cache if it is still there. What PyTorch's kernels do follows from the length of a row
(aten/src/ATen/native/cuda: PersistentSoftmax.cuh, SoftMax.cu, layer_norm_kernel.cu):

- softmax up to 1024 elements: a row stays in the registers of one warp, nothing is read again;
- softmax of longer rows: a block a row, up to 512 threads with 16 bytes a load; the row is read for the maximum, for
  the sum and for the result. What does not fill a whole pass of the block's loads is loaded element by element;
- layer normalisation: 128 threads a row, which is read for its moments and for the result.

All blocks on the device work at the same time, so that a row comes from a cache the second time only if the rows of
all of them fit: `pressure` is their size over that of the caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from simperf.cost.seams import GpuRates
from simperf.workload.op import Op
from simperf.workload.precision import element_size

__all__ = ["AGAIN", "RowLaunch", "pressure", "row_launch"]

#: kinds of operations that may read a row again
AGAIN = ("softmax", "layernorm")

#: longest row that softmax keeps in registers, in elements and in bytes
_PERSISTENT, _PERSISTENT_BYTES = 1024, 4096
#: bytes of one vector load
_LOAD = 16
#: threads of a block: at least a warp; of softmax's blocks at most; of layer normalisation's
_WARP, _MOST, _NORM = 32, 1024, 128
#: cache of a multiprocessor and threads that it holds, where a part does not say (CUDA C++ Programming Guide,
#: "Technical Specifications per Compute Capability": 7.0, 8.0 and 9.0 hold 2048)
_L1, _THREADS = 128.0 * 1024, 2048


@dataclass(frozen=True, slots=True)
class RowLaunch:
    """A launch on rows of one length.

    Parameters
    ----------
    threads : int
        That share a row; 0 if a row stays in registers.
    again : float
        Further reads of a row, over the one read and one write that it needs [1].
    tail : float
        Share of a row that is loaded element by element [1].
    """

    threads: int
    again: float
    tail: float


@lru_cache(maxsize=4096)
def row_launch(kind: str, columns: int, size: int) -> RowLaunch:
    """Launch of `kind` on rows of `columns` elements of `size` bytes.

    Examples
    --------
    >>> row_launch("softmax", 1024, 4)
    RowLaunch(threads=0, again=0.0, tail=0.0)
    >>> row_launch("softmax", 3072, 4).threads, round(row_launch("softmax", 3072, 4).tail, 3)
    (512, 0.333)
    >>> row_launch("layernorm", 4096, 4).again
    0.5
    """
    if kind == "softmax":
        if columns <= _PERSISTENT and columns * size <= _PERSISTENT_BYTES:
            return RowLaunch(0, 0.0, 0.0)
        threads, most = _WARP, min(columns * size // _LOAD, _MOST)
        while threads < most / 2:
            threads *= 2
        return RowLaunch(threads, 1.0, columns % (threads * _LOAD // size) / columns)
    if kind == "layernorm":
        return RowLaunch(_NORM, 0.5, 0.0)
    return RowLaunch(0, 0.0, 0.0)


def pressure(op: Op, device: GpuRates) -> float:
    """Bytes of the rows that are worked on at one time, over the caches' capacity [1]; 0 if none is read again.

    Parameters
    ----------
    op : Op
        With `row`, the length of its rows.
    device : GpuRates
    """
    launch = row_launch(op.kind, int(op.row), element_size(op.dtype))
    if launch.threads == 0 or op.row <= 0:
        return 0.0
    held = int(getattr(device, "threads", None) or _THREADS) // launch.threads
    rows = min(op.elements / op.row, device.sms * max(1, held))
    caches = float(getattr(device, "l2", None) or 0.0) + device.sms * float(getattr(device, "l1", None) or _L1)
    return rows * op.row * element_size(op.dtype) / caches
