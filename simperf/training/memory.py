"""Whether a replica fits on its device, and how much would."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from simperf.engine.device import Device
from simperf.errors import DeviceMemoryError
from simperf.units import format_quantity

__all__ = ["MOST_SAMPLES", "hold", "largest_batch"]

#: samples beyond which nobody trains on one device
MOST_SAMPLES = 1 << 24


def largest_batch(need: Callable[[int], float], capacity: float, *, most: int = MOST_SAMPLES) -> int:
    """Most samples whose memory fits, by bisection; 0 if not even one does.

    Parameters
    ----------
    need : callable
        Memory of so many samples [B]; never falls with them.
    capacity : float
        Of the device [B].
    most : int
        No more are looked at.

    Examples
    --------
    >>> largest_batch(lambda samples: 1000.0 + 10.0 * samples, 1234.0)
    23
    """
    if need(1) > capacity:
        return 0
    low, high = 1, 2
    while high <= most and need(high) <= capacity:
        low, high = high, 2 * high
    if low == most:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if need(middle) <= capacity else (low, middle)
    return low


def hold(
    device: Device, memory: Mapping[str, float], *, samples: float, need: Callable[[int], float] | None = None
) -> None:
    """Take what a replica holds for the whole run, from the device's memory.

    Parameters
    ----------
    device : Device
    memory : mapping of str to float
        Bytes by what holds them [B].
    samples : float
        That the device works on.
    need : callable, optional
        Memory of any number of samples [B], to say how many would fit.

    Raises
    ------
    DeviceMemoryError
        It is more than there is; says what holds it and which batch would fit.
    """
    total = math.fsum(memory.values())
    pool = device.memory
    if pool.held + total > pool.capacity:
        parts = ", ".join(f"{name} {format_quantity(nbytes, 'B')}" for name, nbytes in memory.items() if nbytes)
        advice = ""
        if need is not None:
            fits = largest_batch(need, pool.capacity - pool.held)
            least = format_quantity(need(1), "B")
            advice = f"; at most {fits} samples fit on it" if fits else f"; not even one sample fits, it needs {least}"
        raise DeviceMemoryError(
            f"{device.name} is out of memory: {samples:g} samples need {format_quantity(total, 'B')} "
            f"({parts}), but it has {format_quantity(pool.capacity, 'B')}{advice}"
        )
    for name, nbytes in memory.items():
        if nbytes:
            pool.hold(nbytes, name)
