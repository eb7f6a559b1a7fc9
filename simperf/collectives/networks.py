"""Layers between NCCL and the wire, as data: verbs, the NICs of clouds, TCP sockets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError, UnknownNameError
from simperf.files import read_toml
from simperf.hardware import CpuPart, GpuPart, Machine, NicPart
from simperf.layout import server_count
from simperf.units import parse

__all__ = [
    "NcclNetwork",
    "bandwidth_limit",
    "in_network_efficiency",
    "low_latency_limit",
    "network",
    "network_names",
    "network_of",
    "post_overhead",
    "simple_tree_efficiency",
    "tree_limit",
]

#: time in which a message is given to the network, by vendor of the processors and of all others [s]: NVIDIA/nccl 2.28,
#: src/graph/tuning.cc, getNetOverhead
_POST_OVERHEADS = {"amd": 2e-6}
_POST_OVERHEAD = 1e-6

_FOLDER = Path(__file__).with_name("data")

#: rows of NCCL's tables by architecture; older and newer ones read the row beside them
_ROWS = {
    "kepler": "volta",
    "pascal": "volta",
    "volta": "volta",
    "turing": "volta",
    "ampere": "ampere",
    "ada": "ampere",
    "hopper": "hopper",
    "blackwell": "blackwell",
    "blackwell-rtx": "blackwell",
}


@dataclass(frozen=True, slots=True)
class NcclNetwork:
    """A way from NCCL to another server.

    Parameters
    ----------
    name : str
        Such as ``"rdma"`` or ``"socket"``.
    latency : float
        Time of a hop beyond what the constants of the protocols hold [s].
    core : float
        Rate at which one core moves bytes [B/s]; infinite where the NIC moves them.
    sockets : int
        Connections of one channel from GPU to GPU.
    threads : int
        Cores of a process: one sends and receives, more do one each.
    copies : int
        Times that a byte in host memory crosses the memory's bus.
    nics : tuple of str
        NICs that are driven this way where no network is named.
    source : str
        Where the numbers come from.
    rendezvous : float
        Size above which a message is announced before it is sent [B].
    handover : mapping of str to float
        Least time [s] by protocol from server to server of a ring whose messages are above `rendezvous`, whatever
        its latencies and bytes would allow.
    """

    name: str
    latency: float = 0.0
    core: float = math.inf
    sockets: int = 1
    threads: int = 1
    copies: int = 2
    nics: tuple[str, ...] = ()
    source: str = ""
    rendezvous: float = 0.0
    handover: Mapping[str, float] = field(default_factory=dict)

    def faster(self, speed: float) -> NcclNetwork:
        """The same network, whose latency and software are `speed` times as fast [1]."""
        if speed == 1.0:
            return self
        handover = {protocol: time / speed for protocol, time in self.handover.items()}
        return replace(self, latency=self.latency / speed, core=self.core * speed, handover=handover)

    def exposed(self, protocol: str, message: float, step_time: float, share: float) -> float:
        """Time that a step of a ring takes beyond its latency and its chunk [s].

        Parameters
        ----------
        protocol : str
        message : float
            That the network is given at a time [B].
        step_time : float
            Mean latency of a step, and a chunk at the ring's pace [s].
        share : float
            Steps between servers of all steps of the ring [1].
        """
        if message <= self.rendezvous:
            return 0.0
        return max(0.0, self.handover.get(protocol, 0.0) * share - step_time)


def _read(name: str, values: Mapping[str, Any]) -> NcclNetwork:
    return NcclNetwork(
        name,
        latency=parse(values["latency"], "s"),
        core=parse(values["core"], "B/s") if "core" in values else math.inf,
        sockets=int(values.get("sockets", 1)),
        threads=int(values.get("threads", 1)),
        copies=int(values["copies"]),
        nics=tuple(values.get("nics", ())),
        source=str(values["source"]),
        rendezvous=parse(values["rendezvous"], "B") if "rendezvous" in values else 0.0,
        handover={protocol: parse(time, "s") for protocol, time in values.get("handover", {}).items()},
    )


@lru_cache(maxsize=1)
def _networks() -> Mapping[str, NcclNetwork]:
    toml = read_toml(_FOLDER / "nccl_networks.toml")
    found, problems = {}, []
    for name, values in toml.data.items():
        try:
            found[name] = _read(name, values)
        except (KeyError, ValueError) as error:
            problems.append(toml.problem((name,), str(error)))
    if problems:
        raise InputError(problems)
    return found


def network_names() -> tuple[str, ...]:
    """Names of all networks."""
    return tuple(_networks())


def network(name: str) -> NcclNetwork:
    """The network of a name.

    Raises
    ------
    UnknownNameError
        There is none.

    Examples
    --------
    >>> network("efa").latency
    7.5e-05
    """
    if name not in _networks():
        raise UnknownNameError("network of NCCL", name, list(_networks()))
    return _networks()[name]


def network_of(machine: Machine, ranks: Sequence[str]) -> NcclNetwork:
    """The network that NCCL would take between the servers of a machine: the one that drives their NICs."""
    away = next((rank for rank in ranks if machine.nodes[rank].server != machine.nodes[ranks[0]].server), None)
    if away is not None:
        for edge in machine.route(ranks[0], away).edges:
            part = machine.nodes[edge.src].part
            if isinstance(part, NicPart):
                named = next((one for one in _networks().values() if part.name in one.nics), None)
                return named if named is not None else network("rdma")
    return network("rdma")


@lru_cache(maxsize=1)
def _limits() -> Mapping[tuple[str, str, str], float]:
    toml = read_toml(_FOLDER / "nccl_limits.toml")
    tables = {name: table for name, table in toml.data.items() if isinstance(table, dict)}
    return {
        (name, where, key): float(value) if where == "efficiency" else parse(value, "B/s")
        for name, table in tables.items()
        for where, row in table.items()
        for key, value in row.items()
    }


def _where(machine: Machine, ranks: Sequence[str]) -> str:
    servers = server_count(machine, ranks)
    return ("one", "two")[servers - 1] if servers <= 2 else "more"


def _row(machine: Machine, rank: str) -> str:
    part = machine.nodes[rank].part
    return _ROWS.get(part.architecture, "") if isinstance(part, GpuPart) else ""


def _vendor(machine: Machine, ranks: Sequence[str]) -> str:
    """Vendor of the processor of the first rank."""
    host = machine.nodes[machine.host_of(ranks[0])].part
    return host.vendor if isinstance(host, CpuPart) else ""


def bandwidth_limit(protocol: str, machine: Machine, ranks: Sequence[str]) -> float:
    """The most that NCCL's tuner has for a protocol around rings of one server's GPUs [B/s of bus bandwidth]."""
    return _limits().get((protocol, "one", _row(machine, ranks[0])), math.inf)


def low_latency_limit(machine: Machine, ranks: Sequence[str]) -> float:
    """The most that the LL protocol carries between these GPUs [B/s of bus bandwidth].

    Inside a server it depends on the GPU, between servers on the vendor of the processors; NCCL knows a row for
    AMD and takes the other one for every other vendor.
    """
    where = _where(machine, ranks)
    key = _row(machine, ranks[0])
    if where != "one":
        key = "amd" if _vendor(machine, ranks) == "amd" else "intel"
    return _limits().get(("LL", where, key), math.inf)


def post_overhead(machine: Machine, ranks: Sequence[str]) -> float:
    """Least time that NCCL's tuner has for a step of a ring over servers, by the vendor of the processors [s]."""
    return _POST_OVERHEADS.get(_vendor(machine, ranks), _POST_OVERHEAD)


def simple_tree_efficiency() -> float:
    """Share of the links that is left where one GPU of a server talks to the server above and both below, 0 to 1."""
    return _limits()["tree", "efficiency", "simple"]


def tree_limit(machine: Machine, ranks: Sequence[str]) -> float:
    """The most that one channel of trees carries between these GPUs [B/s of bus bandwidth]."""
    return _limits().get(("tree", _where(machine, ranks), _row(machine, ranks[0])), math.inf)


def in_network_efficiency(machine: Machine, ranks: Sequence[str]) -> float:
    """Share of the links that is left where the switch between these GPUs adds up, 0 to 1; 0 if it is not known."""
    return _limits().get(("in-network", "efficiency", _row(machine, ranks[0])), 0.0)
