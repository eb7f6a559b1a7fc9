"""Views of a machine, whose routes are others than its own."""

from __future__ import annotations

from typing import Any

from simperf.hardware import Machine

__all__ = ["MachineView"]


class MachineView:
    """A machine as `simperf.collectives.placement.Wired` has it, of which a view replaces what differs.

    Parameters
    ----------
    machine : Machine
        Everything that a view does not define is its own.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.kept: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "machine":  # while a copy is made
            raise AttributeError(name)
        return getattr(self.machine, name)
