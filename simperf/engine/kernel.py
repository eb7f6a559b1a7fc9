"""A kernel: one operation that a stream runs."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.engine.recorder import Category

__all__ = ["Kernel"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One operation on a device, as its cost model sees it.

    Parameters
    ----------
    name : str
    time : float
        Duration when it has the device to itself [s]: the book's t2.
    demand : float
        Share of the device that it can fill, in (0, 1].
    category : str
        ``"compute"`` or ``"memory"``, by what bounds it.
    holds : float
        Device memory held from its launch to its end [B].
    launch : float or None
        Time of the frontend to issue it [s], the book's t1; None takes the frontend's own.
    result : float or None
        Time to hand its result back when the frontend asks for it [s], the book's t3.
    """

    name: str
    time: float
    demand: float = 1.0
    category: Category = "compute"
    holds: float = 0.0
    launch: float | None = None
    result: float | None = None
