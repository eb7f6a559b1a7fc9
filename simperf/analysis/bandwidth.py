"""algbw and busbw of a collective, as nccl-tests defines them.

algbw = S / t. busbw corrects it by what each rank must move at least, so that it can be
compared with the bandwidth of a link whatever the number of ranks
(github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). S is the size of the full vector:
for all-gather and reduce-scatter that of all ranks' parts together.
"""

from __future__ import annotations

from simperf.collectives.plan import bus_factor
from simperf.errors import InputError, Problem, UnknownNameError

__all__ = ["COLLECTIVES", "algbw", "busbw", "busbw_factor"]

#: The collectives that have a factor.
COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "broadcast", "gather", "reduce", "reduce-scatter", "scatter")


def busbw_factor(collective: str, nranks: int) -> float:
    """Ratio busbw / algbw [1] of `collective` over `nranks` ranks.

    Raises
    ------
    UnknownNameError
        No such collective.
    InputError
        Less than one rank.

    Examples
    --------
    >>> busbw_factor("all-reduce", 8), busbw_factor("all-gather", 8), busbw_factor("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    if collective not in COLLECTIVES:
        raise UnknownNameError("collective", collective, COLLECTIVES)
    if nranks < 1:
        raise InputError(Problem("at least one rank is needed", key="nranks", value=str(nranks)))
    return bus_factor(collective, nranks)


def algbw(nbytes: float, time: float) -> float:
    """Algorithm bandwidth S / t [B/s] of `nbytes` [B] in `time` [s]; 0 if it took no time."""
    return nbytes / time if time > 0 else 0.0


def busbw(collective: str, nranks: int, *, nbytes: float, time: float) -> float:
    """Bus bandwidth [B/s] of a collective over `nbytes` [B] that took `time` [s].

    Examples
    --------
    >>> round(busbw("all-reduce", 4, nbytes=160e6, time=0.015))
    16000000000
    """
    return algbw(nbytes, time) * busbw_factor(collective, nranks)
