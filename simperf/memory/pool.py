"""The memory of one device: bytes held, never more than there are."""

from __future__ import annotations

import math

from simperf.errors import DeviceMemoryError, Problem
from simperf.units import format_quantity

__all__ = ["MemoryPool"]


class MemoryPool:
    """Bytes held on one device.

    Not modelled: fragmentation and the caching allocator's rounding of sizes.

    Parameters
    ----------
    name : str
        The device, for messages.
    capacity : float
        Size [B]; infinite if the device has no part.

    Attributes
    ----------
    held, peak : float
        Bytes held now, and the most so far [B].

    Examples
    --------
    >>> pool = MemoryPool("gpu0", 16e9)
    >>> pool.hold(10e9, "weights")
    >>> pool.hold(8e9, "activations")
    Traceback (most recent call last):
        ...
    simperf.errors.DeviceMemoryError: gpu0 is out of memory: 'activations' asks for 8.000 GB, 10.00 GB of 16.00 GB are \
held by what is in flight or resident
      expected: less at a time, or a device with more memory
    """

    __slots__ = ("capacity", "held", "name", "peak")

    def __init__(self, name: str, capacity: float = math.inf) -> None:
        self.name, self.capacity = name, capacity
        self.held = self.peak = 0.0

    @property
    def left(self) -> float:
        """Bytes that nothing holds [B]."""
        return self.capacity - self.held

    def hold(self, nbytes: float, what: str, *, at: float | None = None) -> None:
        """Take `nbytes` for `what`.

        Parameters
        ----------
        nbytes : float
            [B]
        what : str
            Operation or kind of tensor, for the message.
        at : float, optional
            Time, for the message [s].

        Raises
        ------
        DeviceMemoryError
            The device has less left than that.
        """
        held = self.held + nbytes
        if held > self.capacity:
            when = "" if at is None else f" at {format_quantity(at, 's')}"
            message = (
                f"{self.name} is out of memory{when}: {what!r} asks for "
                f"{format_quantity(nbytes, 'B')}, {format_quantity(self.held, 'B')} of "
                f"{format_quantity(self.capacity, 'B')} are held by what is in flight or resident"
            )
            raise DeviceMemoryError(Problem(message, expected="less at a time, or a device with more memory"))
        self.held = held
        if held > self.peak:
            self.peak = held

    def free(self, nbytes: float) -> None:
        """Give `nbytes` back [B]."""
        self.held -= nbytes
