"""Refusal of a replica that does not fit on its device, and the number of samples that would."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from simperf.errors import DeviceMemoryError, Problem
from simperf.memory.fit import largest_batch
from simperf.memory.pool import MemoryPool
from simperf.units import format_quantity

__all__ = ["Holding", "hold"]


@dataclass(frozen=True, slots=True)
class Holding:
    """Memory that a replica holds on its device for the whole run.

    Parameters
    ----------
    pool : MemoryPool
        The device's memory.
    memory : mapping of str to float
        Bytes by kind, of `simperf.memory.KINDS` [B].
    samples : float
        That the device works on.
    need : callable, optional
        Memory of any number of samples [B], to say how many would fit.
    nodes : sequence of str
        Devices that it stands for; by default its own.
    """

    pool: MemoryPool
    memory: Mapping[str, float]
    samples: float
    need: Callable[[int], float] | None = None
    nodes: Sequence[str] = ()

    def shortage(self) -> tuple[str, int | None]:
        """A message that it does not fit, and how many samples would if that is known; empty if it fits."""
        total, pool = math.fsum(self.memory.values()), self.pool
        if pool.held + total <= pool.capacity:
            return "", None
        parts = ", ".join(f"{name} {format_quantity(nbytes, 'B')}" for name, nbytes in self.memory.items() if nbytes)
        advice, fits = "", None
        if self.need is not None:
            fits = largest_batch(self.need, pool.capacity - pool.held)
            least = format_quantity(self.need(1), "B")
            advice = f"; at most {fits} samples fit on it" if fits else f"; not even one sample fits, it needs {least}"
        text = (
            f"{self.samples:g} samples need {format_quantity(total, 'B')} ({parts}), "
            f"but it has {format_quantity(pool.capacity, 'B')}{advice}"
        )
        return text, fits


def hold(
    holdings: Sequence[Holding],
    *,
    key: str = "batch",
    right: Callable[[int], str] = "at most {}".format,
    otherwise: str = "a smaller model, fewer bytes for each number, or a device with more memory",
) -> None:
    """Take what replicas hold from the memory of their devices.

    Parameters
    ----------
    holdings : sequence of Holding
    key : str
        Parameter of the program that decides how many samples a device has.
    right : callable
        From the samples that would fit on a device to the value of that parameter, in words.
    otherwise : str
        What would be right where no number of samples fits.

    Raises
    ------
    DeviceMemoryError
        Some do not fit: all of these together, with what holds the memory and which batch would fit.
    """
    short: dict[tuple[str, int | None], list[str]] = {}
    for one in holdings:
        if (found := one.shortage())[0]:
            short.setdefault(found, []).extend(one.nodes or (one.pool.name,))
    problems = []
    for (text, fits), (first, *others) in short.items():
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        alike = f"; so {'is' if len(others) == 1 else 'are'} {named}" if others else ""
        message = f"{first} is out of memory: {text}{alike}"
        problems.append(Problem(message, key=key, expected=right(fits) if fits else otherwise))
    if problems:
        raise DeviceMemoryError(problems)
    for one in holdings:
        for name, nbytes in one.memory.items():
            if nbytes:
                one.pool.hold(nbytes, name)
