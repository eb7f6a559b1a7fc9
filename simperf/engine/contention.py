"""Contention of threads for a core: wake-ups that they save while they wait, and what they lose after a sleep."""

from __future__ import annotations

import math

__all__ = ["cooled", "found"]


def found(offered: float, together: float, most: float) -> float:
    """Segments that a thread finds when it gets the core that it was woken for [1].

    It waits for those that run, and what comes meanwhile needs no wake-up of its own, as packets need no interrupt of
    their own while a kernel polls (J. H. Salim, R. Olsson, A. Kuznetsov, "Beyond softnet", 5th Annual Linux Showcase,
    2001). Cores at work for a share u of the time keep a thread waiting for u / (1 - u) others (a queue with one
    server, random arrivals), so that it finds 1 / (1 - u) segments. Of the work that is offered, a part `together` is
    left when wake-ups are, and the rest is shared by those found: u = offered (together + (1 - together) (1 - u)).

    Parameters
    ----------
    offered : float
        Work for the cores at the links' full rate if every segment wakes a thread, over what they can do [1].
    together : float
        Part of this work that wakes nobody [1].
    most : float
        Most segments that can have come [1].

    Examples
    --------
    >>> round(found(0.5, 0.4, 6), 2), round(found(1.5, 0.4, 6), 2), round(found(3.0, 0.4, 6), 2)
    (1.62, 4.75, 6)
    """
    if math.isinf(offered):
        return max(1.0, most)
    used = offered / (1.0 + offered * (1.0 - together))
    return max(1.0, most if used >= 1.0 else min(most, 1.0 / (1.0 - used)))


def cooled(slept: float, after: float) -> float:
    """Part of a thread's way that is cold after it has slept so long [s]: none at once, all after some `after`.

    Parameters
    ----------
    slept : float
        How long it has slept, or others have run [s].
    after : float
        Time in which the part that is still warm falls to 1/e [s].
    """
    return 1.0 - math.exp(-slept / after)
