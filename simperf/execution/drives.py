"""Drives that a program reads and writes: those of the machine's storage nodes."""

from __future__ import annotations

from simperf.engine.storage import Disk
from simperf.errors import InputError, Problem
from simperf.execution.session import Session

__all__ = ["find_disk"]


def find_disk(m: Session, name: str, *, worst: bool = False) -> Disk:
    """The drive of a storage node.

    Parameters
    ----------
    m : Session
    name : str
        Of the node.
    worst : bool
        Every rotation is a full one instead of a random part of it.

    Raises
    ------
    InputError
        The machine has no such disk; those that it has are named.
    """
    there = {node: m.machine.nodes[node].part for node in m.machine.ids("storage")}
    part = there.get(name)
    if part is None:  # a node may be of a kind alone
        parts = ", ".join(node for node, one in there.items() if one is not None)
        expected = f"one of {parts}" if parts else 'a machine with a disk, as { id = "disk0", storage = "nvme-ssd" }'
        raise InputError(Problem(f"the machine has no disk {name!r}", key="disk", value=name, expected=expected))
    return Disk(m.simulation.env, name, part, rng=m.rng(name), worst=worst, recorder=m.simulation.recorder)
