"""Machines on regular topologies, without a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from simperf.hardware.machine import Machine
from simperf.hardware.topology import Topology

__all__ = ["build_topology"]


def build_topology(
    kind: Literal["ring", "star", "fully-connected"],
    nranks: int,
    bandwidth: float,
    latency: float = 0.0,
    nservers: int = 0,
    changed: Mapping[str, float] | None = None,
) -> Machine:
    """Build a machine of equal ranks and equal links.

    Parameters
    ----------
    kind, nranks, bandwidth, latency, nservers, changed
        As for `Topology`.

    Raises
    ------
    InputError
        With every value that has no meaning.

    Examples
    --------
    >>> star = build_topology("star", 8, bandwidth=50e9, latency=250e-9)
    >>> route = star.route("r0", "r3")
    >>> route.resources, route.latency
    (('r0>', '>r3'), 5e-07)
    """
    topology = Topology(kind, nranks, bandwidth, latency, nservers, dict(changed or {}))
    return Machine(topology.name, topology=topology)
