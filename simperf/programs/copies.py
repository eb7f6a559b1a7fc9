"""Computation beside copies, and copies by size.

"Dive into Deep Learning", section 12.3.2.
"""

from __future__ import annotations

from typing import Literal

from simperf.execution import Program, copy, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.units import Bytes
from simperf.workload import element_size, make_op

__all__ = ["copy_overlap", "host_copy"]


@program("copy-overlap", events=lambda given: 4.0 * given["n"])
def copy_overlap(
    m: Session,
    *,
    size: Count = 4000,
    n: Count = 50,
    what: Literal["compute", "copy", "both", "overlapped"] = "overlapped",
    pinned: bool = True,
    allocate: bool = True,
    dtype: str = "fp32",
) -> Program:
    """Copy y[i-1] to the host while y[i] is computed (section 12.3.2).

    Parameters
    ----------
    size : int
        rows and columns of each matrix
    n : int
        matrices
    what : str
        compute alone, copy alone, both one after the other, or overlapped
    pinned : bool
        copy into pinned memory behind the frontend's back (non_blocking=True)
    allocate : bool
        the host memory is obtained for each copy, as y.to("cpu") does
    dtype : str
        precision
    """
    gpu, host = m.gpu(), m.host
    product = make_op({"op": "matmul", "m": size, "n": size, "k": size, "dtype": dtype})
    kernel = m.kernel(product, gpu)
    nbytes = size * size * element_size(dtype)
    side = gpu.stream(1)
    for _ in range(n if what != "copy" else 0):
        yield launch(kernel, gpu)
        if what == "overlapped":
            done = yield record(gpu, "y[i] computed")
            yield wait(done, side)
            yield copy(gpu, host, nbytes=nbytes, pinned=pinned, allocate=allocate, stream=side, name="y[i] to host")
    if what in ("copy", "both"):
        yield synchronize(gpu)
        for _ in range(n):
            yield copy(gpu, host, nbytes=nbytes, pinned=pinned, allocate=allocate, stream=side, name="y[i] to host")
    yield synchronize()
    if what != "copy":
        m.work("products", n * product.flops, "FLOP")
    if what != "compute":
        m.work("copies", n * nbytes, "B")
    m.metric("time outside kernels", m.now - (n * kernel.time if what != "copy" else 0.0), "s")


@program("host-copy", events=lambda given: 4.0 * given["n"] * given["gpus"])
def host_copy(
    m: Session,
    *,
    nbytes: Bytes = 64e6,
    n: Count = 1,
    direction: Literal["h2d", "d2h"] = "h2d",
    pinned: bool = True,
    gpus: Count = 1,
) -> Program:
    """Copy between host and devices, to all of them at the same time.

    Parameters
    ----------
    nbytes : float
        payload of one copy
    n : int
        copies of each device, one after the other
    direction : str
        h2d or d2h
    pinned : bool
        whether the host memory is pinned
    gpus : int
        devices that copy at the same time
    """
    for _ in range(n):
        for index in range(gpus):
            gpu = m.gpu(index)
            ends = (m.host, gpu) if direction == "h2d" else (gpu, m.host)
            yield copy(*ends, nbytes=nbytes, pinned=pinned, name=direction)
    yield synchronize()
    m.work("payload", n * gpus * nbytes, "B")
    m.metric("bandwidth", n * gpus * nbytes / m.now if m.now else 0.0, "B/s")
    m.metric("bandwidth per GPU", n * nbytes / m.now if m.now else 0.0, "B/s")
