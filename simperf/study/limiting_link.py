"""The link that limits communication where other links were made faster: of their routes, or of all that are used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby, pairwise
from typing import NamedTuple

from simperf.analysis.timeline import sweep
from simperf.engine.recorder import Span
from simperf.engine.tracks import owner, split_track
from simperf.hardware import Machine
from simperf.hardware.blueprint import Edge, Route
from simperf.results import Result
from simperf.study.virtual import link_kind
from simperf.units import format_quantity

__all__ = ["LimitingLink", "dimension_of", "limiting_link"]

#: share of a collective's time that its busiest link is full for, from which on that link limits it [1]
_MOST_OF_IT = 0.5
#: links that are full for times that differ by less are as busy [1]
_SAME = 1e-9
_OTHER = "another link of the route"
#: how tracks of a GPU begin that are of no dimension
_OF_NONE = ("stream", "send")
#: what an edge is called by the kinds of its ends; of links that are as busy, the first is named
_NAMES = (
    (("nic", "pcie-switch"), "the NIC's PCIe slot"),
    (("nic", "cpu"), "the NIC's PCIe slot"),
    (("gpu", "nic"), "the NIC's link to its GPU"),
    (("gpu", "nvswitch"), "NVLink"),
    (("gpu", "gpu"), "the link between GPUs"),
    (("gpu", "pcie-switch"), "the GPU's PCIe slot"),
    (("gpu", "cpu"), "the GPU's link to its CPU"),
    (("pcie-switch", "cpu"), "the PCIe switch's link to its CPU"),
    (("cpu", "cpu"), "the link between sockets"),
    (("nic", "switch"), "the NIC's port"),
    (("switch", "switch"), "the link between switches"),
    ((), _OTHER),
)


class LimitingLink(NamedTuple):
    """The busiest link of a route.

    Parameters
    ----------
    name : str
        What it is, in words.
    link : str
        Its kind, by the catalogue.
    bandwidth : float
        One way [B/s].
    busy : float
        For how long a run has it full [s].
    """

    name: str
    link: str
    bandwidth: float
    busy: float

    def __str__(self) -> str:
        return f"{self.name} limits ({self.link}, {format_quantity(self.bandwidth, 'B/s')})"


def dimension_of(span_track: str, category: str) -> str:
    """Dimension of the layout that a span on a track communicates along; empty for other spans.

    A single send of a collective that is simulated send by send has a track of its own, which does not say it.
    """
    words = split_track(span_track)[1].split() if span_track else []
    return words[0] if category == "communication" and words and not words[0].startswith(_OF_NONE) else ""


def limiting_link(
    result: Result, machine: Machine, faster: Collection[str], dimensions: Collection[str]
) -> LimitingLink | None:
    """The link that limits a run's communication, if it is none of those that were made faster.

    Of the routes on which these are, the links are looked for that are full for longest: bytes moved over bandwidth.
    They limit where that is most of the time in which one of the dimensions communicates. Where they do not, or where
    no link was made faster, the links that are full for longest of all that the run used are asked likewise, as those
    between servers where NVLink was made faster. Where none limits, latencies or kernels do.

    Parameters
    ----------
    result : Result
        With its timeline.
    machine : Machine
        That it ran on, with the faster links.
    faster : collection of str
        Names of their kinds.
    dimensions : collection of str
        Of the layout, whose communication matters.
    """
    longest = [time for time in (_communicating(result, one) for one in dimensions) if time > 0]
    if not longest:
        return None
    of_routes = {edge.resource: edge for route in _routes(machine, faster) for edge in route.edges}
    found = _fullest(result, machine, of_routes, faster, _MOST_OF_IT * min(longest))
    return found or _fullest(result, machine, _used(result, machine), faster, _MOST_OF_IT * min(longest))


def _fullest(
    result: Result, machine: Machine, edges: Mapping[str, Edge], faster: Collection[str], least: float
) -> LimitingLink | None:
    """The link that is full for longest, if that is so long at least [s] and none of the faster ones is as busy."""
    busy = {
        resource: result.resources[resource].work / min(edge.bandwidth, edge.flow_limit)
        for resource, edge in edges.items()
        if resource in result.resources
    }
    most = max(busy.values(), default=0.0)
    if not 0.0 < most >= least:
        return None
    found = [edges[resource] for resource, time in busy.items() if time >= most * (1 - _SAME)]
    if any(link_kind(edge) in faster for edge in found):
        return None
    names = [name for _, name in _NAMES]
    name, edge = min(((_name(edge, machine), edge) for edge in found), key=lambda one: names.index(one[0]))
    return LimitingLink(name, link_kind(edge), edge.bandwidth, most)


def _used(result: Result, machine: Machine) -> dict[str, Edge]:
    """Links that moved something in a run, by the resource that they are; a bus in one of its directions."""
    moving = (one for one, use in result.resources.items() if use.kind == "link" and use.work > 0)
    keys = ((one, one.replace("=", ">")) for one in moving)
    return {resource: machine.edges[key] for resource, key in keys if ">" in key and key in machine.edges}


def _routes(machine: Machine, faster: Collection[str]) -> Iterator[Route]:
    """Routes with faster links: of GPUs of the first server, to those of the next and among each other."""
    servers = [list(some) for _, some in groupby(machine.gpus, lambda gpu: machine.nodes[gpu].server)][:2]
    pairs = [*pairwise(servers[0]), *(zip(*servers, strict=False) if len(servers) > 1 else ())]
    for one, other in pairs:
        for route in (machine.route(one, other), machine.route(other, one)):
            if any(link_kind(edge) in faster for edge in route.edges):
                yield route


def _communicating(result: Result, dimension: str) -> float:
    """Time in which a rank communicates along a dimension, the longest of all ranks [s]."""
    spans: dict[str, list[Span]] = {}
    for one in result.spans:
        if dimension_of(one.track, one.category) == dimension:
            spans.setdefault(owner(one), []).append(one)
    longest = 0.0
    for some in spans.values():
        swept = sweep(result, spans=some)
        longest = max(longest, swept.time(swept.any("communication")))
    return longest


def _name(edge: Edge, machine: Machine) -> str:
    ends = {machine.nodes[edge.src].kind, machine.nodes[edge.dst].kind}
    return next((name for kinds, name in _NAMES if set(kinds) == ends), _OTHER)
