"""Schemas of the machine tables of servers, clusters and scenarios, and the ranges in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from simperf.hardware.quantity import Bandwidth, Latency, Length, Overhead, Price
from simperf.hardware.schema import StackChoice, TomlTable

__all__ = [
    "ClusterSpec",
    "FabricSpec",
    "GroupSpec",
    "LinkSpec",
    "NodeSpec",
    "PriceSpec",
    "ServerSpec",
    "expand",
    "zipped",
]

_RANGE = re.compile(r"\{([^{}]*)\}")
_MOST = 100_000
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Cores = Annotated[float, Field(gt=0.0, le=1e6)]
Times = Annotated[float, Field(ge=1.0, le=1000.0)]
_DATE = re.compile(r"20\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


def _dated(text: str) -> str:
    if not _DATE.fullmatch(text):
        raise ValueError(f'{text!r} is no date: write it as "2026-01-31" or "2026-01"')
    return text


#: year, month and day, or the first of them
Date = Annotated[str, AfterValidator(_dated)]


class NodeSpec(TomlTable):
    """One node, or a range of them: its part under the key that says what it is."""

    id: str
    gpu: str | None = None
    cpu: str | None = None
    nic: str | None = None
    storage: str | None = None
    switch: str | None = None
    kind: Literal["gpu", "cpu", "nic", "storage", "pcie-switch", "nvswitch", "switch"] | None = None
    server: str = ""

    @model_validator(mode="after")
    def _one_part(self) -> NodeSpec:
        given = [key for key in ("gpu", "cpu", "nic", "storage", "switch") if getattr(self, key) is not None]
        if len(given) > 1 or (given and self.kind) or not (given or self.kind):
            raise ValueError(
                "a node is exactly one thing: write one of gpu, cpu, nic, storage, switch = "
                '"its part", or kind = "..." for one without a part'
            )
        return self


def _both(burst: float, peak: float | None, bandwidth: float | None) -> None:
    """Refuse half a token bucket."""
    if bool(burst) != (peak is not None):
        raise ValueError(
            'a token bucket has a size and a rate while it is not empty: burst = "32 KiB", peak = "1 GB/s"'
        )
    if peak is not None and bandwidth is not None and peak < bandwidth:
        raise ValueError("the peak of a token bucket is at least the bandwidth of its link")


class LinkSpec(TomlTable):
    """One connection, or a range of them: a part of the catalog, or numbers."""

    a: str
    b: str
    part: str | None = None
    count: Count = 1
    length: Length = 0.0
    bandwidth: Bandwidth | None = None
    latency: Latency | None = None
    shared: bool | None = None
    burst: Overhead = 0.0
    peak: Bandwidth | None = None

    @model_validator(mode="after")
    def _part_or_numbers(self) -> LinkSpec:
        _both(self.burst, self.peak, self.bandwidth)
        if self.part is None and self.bandwidth is None:
            raise ValueError('a link has a part = "..." of the catalog, or a bandwidth = "..." of its own')
        return self


class PriceSpec(TomlTable):
    """Price of an hour, when and where; a capacity block may have been asked for at another time than the rest."""

    on_demand: Price | None = None
    capacity_block: Price | None = None
    date: Date
    region: str = ""
    source: str
    capacity_block_date: Date | None = None
    capacity_block_source: str = ""

    @model_validator(mode="after")
    def _a_price(self) -> PriceSpec:
        if self.on_demand is None and self.capacity_block is None:
            raise ValueError('a price is on_demand = "... USD/h" or capacity_block = "... USD/h"')
        if self.capacity_block is None and (self.capacity_block_date or self.capacity_block_source):
            raise ValueError("capacity_block_date and capacity_block_source belong to a capacity_block")
        return self


class ServerSpec(TomlTable):
    """A server's file, or the machine of a scenario."""

    kind: Literal["server"] = "server"
    title: str = ""
    cloud: str = ""
    peer_access: bool = True
    gpu_direct: bool = True
    node: list[NodeSpec]
    link: list[LinkSpec] = Field(default_factory=list)
    network_stack: StackChoice | None = None
    shared_cores: Cores | None = None
    price: PriceSpec | None = None
    source: dict[str, str] = Field(default_factory=dict)


class FabricSpec(TomlTable):
    """The network of a cluster."""

    type: Literal["star", "fat-tree", "rail"]
    switch: str | None = None
    link: str | None = None
    bandwidth: Bandwidth | None = None
    latency: Latency | None = None
    length: Length = 0.0
    count: Count = 1
    burst: Overhead = 0.0
    peak: Bandwidth | None = None
    uplink: str | None = None
    servers_per_leaf: Count = 16
    oversubscription: Times = 1.0
    spines: Count | None = None
    spine: bool = True

    @model_validator(mode="after")
    def _link_or_numbers(self) -> FabricSpec:
        _both(self.burst, self.peak, self.bandwidth)
        if self.link is None and self.bandwidth is None:
            raise ValueError('a fabric has a link = "..." of the catalog, or a bandwidth = "..." of its own')
        return self


class GroupSpec(TomlTable):
    """Servers of one kind in a cluster."""

    server: str
    count: Count = 1


class ClusterSpec(TomlTable):
    """A cluster's file, or a scenario's machine that is made of servers."""

    kind: Literal["cluster"] = "cluster"
    title: str = ""
    server: str | None = None
    count: Count = 1
    group: list[GroupSpec] = Field(default_factory=list)
    fabric: FabricSpec
    network_stack: StackChoice | None = None
    shared_cores: Cores | None = None
    source: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _some_servers(self) -> ClusterSpec:
        if (self.server is None) == (not self.group):
            raise ValueError('a cluster has either server = "..." with a count, or [[group]] tables of servers')
        return self


def expand(text: str) -> list[str]:
    """Write a range out: ``gpu{0..2}`` or ``plx{0,0,1}``; one range a name.

    Examples
    --------
    >>> expand("gpu{0..2}"), expand("plx{0,0,1}"), expand("cpu0")
    (['gpu0', 'gpu1', 'gpu2'], ['plx0', 'plx0', 'plx1'], ['cpu0'])

    Raises
    ------
    ValueError
        The range makes no sense.
    """
    found = _RANGE.search(text)
    if found is None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", text):
            raise ValueError(
                f"{text!r} is no name: letters, digits, '-', '_' and '.', with a range such as gpu{{0..7}}"
            )
        return [text]
    items: list[str] = []
    for part in found.group(1).split(","):
        span = re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", part)
        if span:
            first, last = int(span.group(1)), int(span.group(2))
            if last < first or last - first >= _MOST:
                raise ValueError(f"{{{part.strip()}}} is no range of up to {_MOST} names that rises: write {{0..7}}")
            items += [str(number) for number in range(first, last + 1)]
        elif re.fullmatch(r"\s*[A-Za-z0-9_]+\s*", part):
            items.append(part.strip())
        else:
            raise ValueError(f"{{{found.group(1)}}} is no range: write {{0..7}} or {{0,0,1,1}}")
    names = [text[: found.start()] + item + text[found.end() :] for item in items]
    if _RANGE.search(names[0]):
        raise ValueError(f"{text!r} has two ranges: write one")
    return [expand(name)[0] for name in names]


def zipped(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, str]]:
    """Pair the ends of links; one name stands for as many as the other side has.

    Raises
    ------
    ValueError
        The two ranges differ in length.
    """
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ValueError(f"the ends must be equal in number, or one of them 1: {len(a)} and {len(b)}")
    size = max(len(a), len(b))
    return list(zip(list(a) * (size // len(a)), list(b) * (size // len(b)), strict=True))
