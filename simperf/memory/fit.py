"""The largest mini-batch that fits into a device's memory."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["largest_batch"]

#: samples beyond which nobody trains on one device
_MOST_SAMPLES = 1 << 24


def largest_batch(need: Callable[[int], float], capacity: float, *, most: int = _MOST_SAMPLES) -> int:
    """Most samples whose memory fits, by bisection; 0 if not even one does.

    Parameters
    ----------
    need : callable
        Memory of so many samples [B]; never falls with them.
    capacity : float
        Of the device [B].
    most : int
        No more are looked at; a power of two.

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
