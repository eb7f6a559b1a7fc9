"""Machines that push and pull alike, so that one of them can be simulated for all.

Where equal machines do the same at the same time, their transfers over a link that they share are
equal too, and each gets its part of it. One machine alone sees the same if such a link is as many times
narrower as there are machines that share it. That is so if every machine is built and wired as the
first one, and if whoever shares a link with it shares all of the link's traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simperf.hardware import Machine, Route
from simperf.layout import server_classes
from simperf.training.servers.multi_machine import TeamRoute

__all__ = ["sharers"]

#: latency and limit of a way, and the capacity of each link of it with how many machines share that
_Pattern = tuple[float, float, tuple[tuple[float, int], ...]]


def sharers(machine: Machine, routes: Sequence[TeamRoute], servers: Sequence[str]) -> dict[str, int] | None:
    """Machines that share each link between the first one and the servers; None if the machines are not alike.

    Parameters
    ----------
    machine : Machine
    routes : sequence of TeamRoute
        A team each.
    servers : sequence of str
        Node of each server.

    Examples
    --------
    >>> from simperf.hardware import Catalog, build_cluster
    >>> from simperf.training.servers.multi_machine import make_routes
    >>> cluster = build_cluster("p3-8xlarge", 3, link="ethernet-10g-jumbo")
    >>> teams = make_routes(cluster.gpus[:8], reduction="ring", host_of=cluster.host_of)
    >>> found = sharers(cluster, teams, ["n2/cpu0"])
    >>> found["n0/nic0>switch0"], found["switch0>n2/nic0"]
    (1, 2)
    """
    if any(len(route.gpus) < 2 or not route.via_host for route in routes):
        return None
    homes = [machine.nodes[route.host].server for route in routes]
    if len(set(homes)) < len(homes) or {machine.nodes[server].server for server in servers} & set(homes):
        return None
    if len(server_classes(machine, [node for route in routes for node in (route.host, *route.gpus)])) > 1:
        return None
    shared: dict[str, int] = {}
    for server in dict.fromkeys(servers):
        for there in (True, False):
            ways = [machine.route(*((r.host, server) if there else (server, r.host))) for r in routes]
            uses: dict[str, int] = {}
            for way in ways:
                for resource in way.resources:
                    uses[resource] = uses.get(resource, 0) + 1

            patterns = {_pattern(machine, way, uses) for way in ways}
            if len(patterns) > 1:
                return None
            for name in ways[0].resources:
                if shared.setdefault(name, uses[name]) != uses[name]:
                    return None
    return shared


def _pattern(machine: Machine, way: Route, uses: Mapping[str, int]) -> _Pattern:
    links = tuple((machine.resources[name], uses[name]) for name in way.resources)
    return way.latency, way.flow_limit, links
