"""The matrix of a machine's connections, as `nvidia-smi topo -m` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

from simperf.hardware import Machine, connectivity
from simperf.hardware.matrix import LEGEND
from simperf.json_format import json_text
from simperf.report.terminal import columns

__all__ = ["connections_text"]

#: GPUs and NICs of a rack that a table shows, of each
_FEW = 8


def connections_text(machine: Machine, name: str, form: Literal["table", "json", "csv"]) -> str:
    """Connection between each pair of devices.

    Parameters
    ----------
    machine : Machine
    name : str
        As it was asked for.
    form : {"table", "json", "csv"}
    """
    devices, rows = connectivity(machine, few=_FEW if form == "table" else None)
    if form == "json":
        found = {"machine": name, "devices": devices, "connections": rows, "legend": LEGEND}
        return json_text(found)
    if form == "csv":
        return "\n".join(
            ",".join(row) for row in [["", *devices], *([a, *b] for a, b in zip(devices, rows, strict=True))]
        )
    lines = _matrix(devices, rows)
    left = len(machine.gpus) + len(machine.ids("nic")) - len(devices)
    if left:
        rack = len(devices) < sum(len(machine.servers[0].blueprint.ids(kind)) for kind in ("gpu", "nic"))
        where = "that are" if rack else "in servers that are"
        lines.append(f"({left} more devices {where} connected in the same way)")
    return "\n".join([*lines, "", *(f"{word:4} {text}" for word, text in LEGEND.items())])


def _matrix(devices: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The matrix in lines; where it is wider than the screen, a part of its columns below the other."""
    wide = max(len(device) for device in devices) + 1
    sizes = [max(len(device), 4) + 1 for device in devices]
    room = max(1, (columns() - wide) // max(sizes))
    count = ceil(len(devices) / max(1, ceil(len(devices) / room)))
    if wide + sum(sizes) <= columns():
        count = len(devices)
    lines = []
    for first in range(0, len(devices), count):
        part = range(first, min(first + count, len(devices)))
        lines += [""] if first else []
        lines.append(" " * wide + "".join(devices[one].rjust(sizes[one]) for one in part))
        for device, row in zip(devices, rows, strict=True):
            lines.append(device.ljust(wide) + "".join(row[one].rjust(sizes[one]) for one in part))
    return lines
