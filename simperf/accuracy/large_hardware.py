"""Machines of published cases: servers of the catalogue by their GPUs and their network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from simperf.hardware import Catalog, GpuPart, Machine, NicPart
from simperf.hardware.gpu_names import gpu_of_driver, gpus_meant

__all__ = ["TRAYS", "LargeMachine", "find_gpu", "large_machine", "network_rate"]

#: rates of a node's network that are one rate [1]
_CLOSE = 0.02
#: trays that a job of several racks takes of each, where it does not fill them: docs.coreweave.com, SUNK, Slurm block
#: topology, the largest segment that is recommended for racks of 18
TRAYS = 16


@dataclass(frozen=True, slots=True)
class LargeMachine:
    """The hardware that a case ran on.

    Parameters
    ----------
    gpu : GpuPart
    gpus : int
        Of all servers.
    gpus_per_server : int
    server : str
        Name in the catalogue; empty if it has none with these GPUs and this network.
    rate : float
        Of the network of a server, each way [B/s]; 0 if it is not printed.
    why_not : str
        Why there is no server.
    """

    gpu: GpuPart
    gpus: int
    gpus_per_server: int
    server: str
    rate: float
    why_not: str = ""

    @property
    def servers(self) -> int:
        """Number of servers."""
        return -(-self.gpus // self.gpus_per_server)


def large_machine(hardware: Mapping[str, Any], assumed: list[str]) -> LargeMachine:
    """The machine of a case.

    Raises
    ------
    ValueError
        A GPU that the catalogue does not have.
    KeyError
        The number of GPUs is not printed.
    """
    gpu = find_gpu(str(hardware.get("gpu", "")), assumed)
    for key in ("n_gpus", "gpus_per_node"):
        if not hardware.get(key):
            raise KeyError(f"hardware.{key}")
    gpus, inside = int(hardware["n_gpus"]), int(hardware["gpus_per_node"])
    inside = min(inside, gpus) if gpus < inside else inside
    domain = int(hardware.get("nvlink_domain") or 0)
    rate = network_rate(str(hardware.get("inter") or ""), inside)
    for name in hardware.get("inferred", ()):
        assumed.append(f"hardware.{name} = {hardware.get(name, 'as of the GPU')}")
    wanted = max(int(hardware["gpus_per_node"]), domain)  # a rack whose trays are one NVLink domain is one server
    segment = min(wanted, TRAYS * inside)
    if domain > inside and gpus > wanted and gpus % wanted and not gpus % segment:
        wanted = segment
        assumed.append(f"{segment} GPUs of each rack of {domain}")
    servers = -(-gpus // wanted)
    if servers > 1 and not rate:
        return LargeMachine(gpu, gpus, wanted, "", rate, "the network between servers is not printed")
    server = _server(gpu, wanted, rate * wanted / inside if servers > 1 else 0.0)
    why = (
        ""
        if server
        else f"no server of the catalogue has {wanted} x {gpu.name}"
        + (f" and a network of {8e-9 * rate:g} Gbit/s" if servers > 1 else "")
    )
    return LargeMachine(gpu, gpus, wanted, server, rate, why)


def find_gpu(name: str, assumed: list[str]) -> GpuPart:
    """The GPU of the catalogue that a name means.

    Of several that it may mean, the one with most memory.

    Raises
    ------
    ValueError
        There is none.

    Examples
    --------
    >>> find_gpu("NVIDIA H100-SXM5-80GB", []).name, find_gpu("A100-SXM4", []).name
    ('h100-sxm5-80gb', 'a100-sxm4-80gb')
    """
    catalog = Catalog.load()
    if (known := gpu_of_driver(name, catalog)) is not None:
        return known
    found = gpus_meant(name, catalog)
    if not found:
        raise ValueError(f"the catalogue has no GPU {name!r}")
    best = max(found, key=lambda part: part.memory_capacity)
    if len(found) > 1:
        assumed.append(f"GPU {best.name}")
    return best


def network_rate(text: str, gpus: int) -> float:
    """Rate of a server's network each way [B/s] as a source puts it; 0 if it does not say.

    Parameters
    ----------
    text : str
    gpus : int
        Of a server.

    Examples
    --------
    >>> [8e-9 * network_rate(text, 8) for text in ("400 Gb/s per GPU (CX-7)", "800 Gb/s per node (4x HDR)")]
    [3200.0, 800.0]
    >>> 8e-9 * network_rate("4 x 100 Gb/s RoCE per node", 8), network_rate("", 8)
    (400.0, 0.0)
    >>> 8e-9 * network_rate("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", 8)
    3200.0
    """
    text = text.rpartition("Compute:")[2]  # beside cards for storage and management
    found = re.search(r"(?:(\d+) ?x )?[A-Za-z -]*?(?:ConnectX-\d )?[A-Za-z -]*?(\d+(?:\.\d+)?) ?Gb/s", text)
    if found is None:
        return 0.0
    count = int(found[1] or 1) * (gpus if "per GPU" in text or "/GPU" in text else 1)
    return count * float(found[2]) * 1e9 / 8


@cache
def _servers() -> tuple[tuple[str, str, int, float], ...]:
    """Servers of the catalogue: name, GPU, how many, and rate of the network [B/s]."""
    return tuple(_of_catalogue(Catalog.load()))


def _of_catalogue(catalog: Catalog) -> Iterator[tuple[str, str, int, float]]:
    """Servers but those of clouds, whose networks are their own: cases print a rate, not an instance."""
    for name in catalog.names("server"):
        if catalog.file("server", name).data.get("cloud"):
            continue
        machine: Machine = catalog.machine(name)
        parts = Counter(machine.nodes[gpu].part.name for gpu in machine.gpus if machine.nodes[gpu].part)  # type: ignore[union-attr]
        if len(parts) != 1:
            continue
        (gpu, count), *_ = parts.items()
        rate = sum(node.part.bandwidth for node in machine.nodes.values() if isinstance(node.part, NicPart))
        yield name, gpu, count, rate


def _server(gpu: GpuPart, count: int, rate: float) -> str:
    """A server with so many of a GPU and such a network; any network if the rate is 0."""
    for name, part, number, own in _servers():
        if part == gpu.name and number == count and (not rate or abs(own / rate - 1) < _CLOSE):
            return name
    return ""
