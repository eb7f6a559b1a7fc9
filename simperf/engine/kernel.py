"""A kernel: one operation that a stream runs."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.engine.recorder import Category
from simperf.errors import ProgramError

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

    Raises
    ------
    ProgramError
        A time, a share or a size that no kernel has.
    """

    name: str
    time: float
    demand: float = 1.0
    category: Category = "compute"
    holds: float = 0.0
    launch: float | None = None
    result: float | None = None

    def __post_init__(self) -> None:
        try:
            known = self.time >= 0.0 and 0.0 < self.demand <= 1.0 and self.holds >= 0.0
            known &= (self.launch is None or self.launch >= 0.0) and (self.result is None or self.result >= 0.0)
        except TypeError:
            known = False
        if not known:
            raise ProgramError(
                f"no kernel is {self!r}: a demand above 0, up to 1, and all else a number of 0 or more is expected"
            )
