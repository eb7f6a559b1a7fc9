"""Connections of each pair of devices, in the words of ``nvidia-smi topo -m``."""

from __future__ import annotations

from simperf.errors import MachineError
from simperf.hardware.machine import Machine

__all__ = ["LEGEND", "connection", "connectivity"]

#: word -> what it says
LEGEND = {
    "X": "the device itself",
    "NV#": "NVLink, # links (direct or through NVSwitch)",
    "PIX": "at most one PCIe switch between them",
    "PXB": "several PCIe switches, but no CPU",
    "PHB": "through one CPU socket",
    "SYS": "through the link between CPU sockets",
    "NET": "through the network",
    "-": "not connected",
}


def connection(machine: Machine, a: str, b: str) -> str:
    """Connection from `a` to `b`: one word of `LEGEND`.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> machine = Catalog.load().machine("dgx-1v")
    >>> connection(machine, "gpu0", "gpu3"), connection(machine, "gpu0", "gpu5"), connection(machine, "gpu0", "nic0")
    ('NV2', 'SYS', 'PIX')
    """
    if a == b:
        return "X"
    try:
        route = machine.route(a, b)
    except MachineError:
        return "-"
    kinds = [machine.nodes[node].kind for node in route.nodes[1:-1]]
    if machine.nodes[a].server != machine.nodes[b].server or "switch" in kinds:
        return "NET"
    if route.is_nvlink:
        return f"NV{min(edge.count for edge in route.edges)}"
    sockets = len({node for node in route.nodes if machine.nodes[node].kind == "cpu"})
    if sockets:
        return "PHB" if sockets == 1 else "SYS"
    return "PIX" if kinds.count("pcie-switch") <= 1 else "PXB"


#: devices of several servers that are shown; the first server is shown whole
_MOST = 32


def connectivity(machine: Machine, *, few: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Matrix of connections between the GPUs and NICs of the first servers, at most `_MOST` devices.

    Parameters
    ----------
    machine : Machine
    few : int or None
        GPUs and NICs, so many of each, of a first server that has more than `_MOST` devices; None is all.

    Returns
    -------
    devices : list of str
        Row and column names.
    rows : list of list of str
        Words of `LEGEND`.
    """
    nics = set(machine.ids("nic"))
    devices: list[str] = []
    for slot in machine.servers:
        head = f"{slot.name}/" if machine.fabric is not None else ""
        kinds = [[head + name for name in slot.blueprint.ids(kind)] for kind in ("gpu", "nic")]
        many = few is not None and sum(map(len, kinds)) > _MOST
        local = [name for names in kinds for name in (names[:few] if many else names)]
        if devices and len(devices) + len(local) > _MOST:
            break
        devices += local
        if many:
            break
    devices = [name for name in devices if name not in nics] + [name for name in devices if name in nics]
    return devices, [[connection(machine, a, b) for b in devices] for a in devices]
