"""Devices that are equal only by name: a synchronous step waits for the slowest of them.

Chips of one make differ in the clock that their power allows. Sinha et al., "Not All GPUs Are
Created Equal" (SC 2022), found that the same work varies by 8 % on average over the GPUs of
each of five clusters; taken as the distance between the whiskers of a box plot, which is 5.4
standard deviations of a normal distribution, this is a deviation of 1.5 %.
"""

from __future__ import annotations

from statistics import NormalDist

from simperf.errors import InputError, Problem

__all__ = ["expected_deviation", "slowest"]

#: of Blom's approximation
_ALPHA = 0.375


def expected_deviation(rank: int, count: int) -> float:
    """Mean of the `rank`-th smallest of `count` draws from a standard normal distribution.

    G. Blom, "Statistical Estimates and Transformed Beta-Variables" (1958): within 0.03 of the exact mean.

    Examples
    --------
    >>> [round(expected_deviation(n, n), 2) for n in (1, 2, 8, 64)]
    [0.0, 0.59, 1.43, 2.34]
    """
    return NormalDist().inv_cdf((rank - _ALPHA) / (count - 2 * _ALPHA + 1))


def slowest(count: int, variation: float, *, spared: int = 0) -> float:
    """Speed of the slowest of `count` devices that is waited for, over that of one taken at random.

    Parameters
    ----------
    count : int
        Devices that work together.
    variation : float
        Standard deviation of the time that they take, of its mean.
    spared : int
        Devices that nobody waits for, the slowest first (backup workers).

    Raises
    ------
    InputError
        A variation below 0, or one so large that it cannot be a normal distribution's.

    Examples
    --------
    >>> slowest(1, 0.015), round(slowest(8, 0.015), 4)
    (1.0, 0.9789)
    """
    if not 0.0 <= variation < 0.3:
        expected = "a standard deviation from 0 up to 30 %"
        raise InputError(
            Problem("devices cannot vary so", key="variation", value=f"{100 * variation:g} %", expected=expected)
        )
    if not variation or count < 2:
        return 1.0
    return 1.0 / (1.0 + variation * expected_deviation(max(1, count - spared), count))
