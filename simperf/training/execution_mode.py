"""Execution modes that training can be simulated in."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.execution.session import Session

__all__ = ["kernel_by_kernel"]


def kernel_by_kernel(m: Session) -> None:
    """Refuse execution modes that change calls of whole networks, of which a strategy makes none.

    Raises
    ------
    InputError
        The session's mode fuses, captures, or orders a network's operations by their dependencies.
    """
    mode = m.mode
    if mode.fuses or mode.captures or mode.lanes > 1:
        message = "training launches kernel by kernel, and this mode changes only calls of whole networks"
        expected = "eager, synchronous or scripted"
        raise InputError(Problem(message, key="execution.mode", value=mode.name, expected=expected))
