"""Automatic parallelism: two devices, several streams, and what a timer reads.

"Dive into Deep Learning", section 12.3.
"""

from __future__ import annotations

from simperf.engine.kernel import Kernel
from simperf.errors import ProgramError
from simperf.execution import Program, compute, launch, synchronize
from simperf.execution.session import Session
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.units import Ratio, Seconds
from simperf.workload import make_op

__all__ = ["streams", "timers", "two_devices"]


@program("two-devices", events=lambda given: 2.0 * given["n"] * given["devices"])
def two_devices(
    m: Session,
    *,
    size: Count = 4000,
    n: Count = 50,
    devices: Count = 2,
    sync_between: bool = False,
    dtype: str = "fp32",
) -> Program:
    """Multiply matrices on each device, with or without a synchronisation between (section 12.3.1).

    Parameters
    ----------
    size : int
        rows and columns
    n : int
        products on each device
    devices : int
        devices that work
    sync_between : bool
        wait for each device before the next one is given its work
    dtype : str
        precision
    """
    if devices < 1:
        raise ProgramError(f"devices is {devices}; 1 or more is expected")
    product = make_op({"op": "matmul", "m": size, "n": size, "k": size, "dtype": dtype})
    for index in range(devices):
        gpu = m.gpu(index)
        kernel = m.kernel(product, gpu)
        for _ in range(n):
            yield launch(kernel, gpu)
        if sync_between:
            yield synchronize(gpu)
    yield synchronize()
    m.rate("products per second", n * devices)
    m.work("products", 2.0 * size**3 * n * devices, "FLOP")


@program("streams", events=lambda given: 2.0 * max(given["n"], given["lanes"]))
def streams(
    m: Session, *, n: Count = 100, lanes: Count = 4, demand: Ratio = 0.2, t1: Seconds = 0.0, t2: Seconds = 100e-6
) -> Program:
    """Spread independent kernels over the streams of one device (section 12.3, exercise 2).

    Parameters
    ----------
    n : int
        kernels
    lanes : int
        streams
    demand : float
        share of the device that one kernel can fill: small kernels gain from streams, large ones do not
    t1 : float
        time of the frontend to issue one kernel
    t2 : float
        time of one kernel alone
    """
    if not 0 < demand <= 1:
        raise ProgramError(f"demand is {demand}; more than 0 and at most 1 is expected")
    if lanes < 1:
        raise ProgramError(f"lanes is {lanes}; 1 or more is expected")
    gpu = m.gpu()
    kernel = Kernel("small" if demand < 1 else "large", t2, demand=demand, launch=t1, result=0.0)
    for i in range(n):
        yield launch(kernel, gpu.stream(i % lanes))
    yield synchronize(gpu)
    m.work("kernels", n)


@program("timers", events=lambda given: 4.0 * given["n"])
def timers(
    m: Session,
    *,
    n: Count = 10,
    t1: Seconds = 10e-6,
    t2: Seconds = 240e-6,
    t3: Seconds = 10e-6,
    warm_up: Seconds = 0.0,
    first: Seconds = 1.5,
) -> Program:
    """Time the same work with a naive timer and with one that synchronises (sections 12.2.1 and 12.3.1).

    Parameters
    ----------
    n : int
        operations
    t1 : float
        time of the frontend to issue one operation
    t2 : float
        time of the backend to execute one
    t3 : float
        time to hand a result back
    warm_up : float
        one-time cost that is paid before the timer starts (the context, the libraries)
    first : float
        one-time cost that the first operation pays if there was no warm-up
    """
    gpu = m.gpu()
    kernel = Kernel("mm", t2, launch=t1, result=t3)
    if warm_up:
        yield compute(warm_up, "warm-up")
        first = 0.0
    began = m.now
    if first:
        yield compute(first, "create context")
    for _ in range(n):
        yield launch(kernel, gpu)
    m.metric("timer without synchronize", m.now - began, "s")
    yield synchronize(gpu)
    m.metric("timer with synchronize", m.now - began, "s")
    m.work("operations", n)
    m.metric("device at work", n * t2, "s")
