"""Devices of different speed: the split of the batch with which all finish together.

With speeds v_i and no fixed cost the shares are proportional to v_i and the step takes
b / sum(v); with a fixed cost of each device, or whole samples only, they are found.
"Dive into Deep Learning", section 12.5, exercise 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simperf.errors import InputError, Problem

__all__ = ["even_split", "proportional_split"]


def even_split(batch: int, ranks: int) -> list[int]:
    """Shares that differ by one sample at most, the first ones larger.

    Raises
    ------
    InputError
        Fewer samples than ranks, or no rank.

    Examples
    --------
    >>> even_split(10, 4)
    [3, 3, 2, 2]
    """
    if ranks < 1 or batch < ranks:
        message = f"{batch} samples cannot be split over {ranks} devices"
        raise InputError(Problem(message, key="batch", value=str(batch), expected="a sample or more a device"))
    share, rest = divmod(batch, ranks)
    return [share + (rank < rest) for rank in range(ranks)]


def proportional_split(batch: int, times: Sequence[Callable[[int], float]]) -> list[int]:
    """Whole samples a device such that the slowest is done as early as possible.

    Parameters
    ----------
    batch : int
        Samples of all devices together.
    times : sequence of callable
        Time of each device for so many samples [s], never falling; a device may get none.

    Notes
    -----
    The earliest end is found by bisection on the samples of one device after another: an end
    is possible if what all devices can do until then is the batch or more.

    Examples
    --------
    >>> proportional_split(120, [lambda b: b / 200, lambda b: b / 100])
    [80, 40]
    >>> proportional_split(10, [lambda b: b / 200, lambda b: 1.0 + b / 100])
    [10, 0]
    """
    even_split(max(batch, 1), 1)
    if not times:
        raise InputError(
            Problem("a batch is split over one device or more", key="devices", expected="one device or more")
        )

    def within(end: float) -> list[int]:
        return [_most(time, end, batch) for time in times]

    candidates = [time(batch) for time in times]
    if not any(candidates) and batch >= len(times):  # nothing takes any time: no split is better than another
        return even_split(batch, len(times))
    high = min(candidates)  # one device alone
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if sum(within(middle)) >= batch:
            high = middle
        else:
            low = middle
    shares = within(high)
    while sum(shares) > batch:  # take samples back where they take longest
        slowest = max(range(len(shares)), key=lambda i: times[i](shares[i]) if shares[i] else -1.0)
        shares[slowest] -= 1
    return shares


def _most(time: Callable[[int], float], end: float, batch: int) -> int:
    """Most samples that a device does by `end` [s]."""
    if time(1) > end:
        return 0
    low, high = 1, batch + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if time(middle) <= end else (low, middle)
    return low
