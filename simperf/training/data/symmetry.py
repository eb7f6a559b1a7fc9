"""Symmetry of ranks that do the same at the same time, so that one can be simulated for all of them.

Ranks are alike if they run the same step, on a host that does not notice how many they are,
and if their copies from the host take the same time. Everything else that they do together
goes through a `simperf.training.data.group.Group`. Where one of this does not hold, or cannot be
known beforehand, every rank is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import simpy

from simperf.engine.network import FlowNetwork
from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.layout import by_server, rank_classes, server_classes
from simperf.time_use import RankClass
from simperf.training.replica import Replica
from simperf.training.step import ReplicaStep

__all__ = ["make_replicas"]

#: times that differ by a smaller part are the same
ROUNDING = 1e-12


def make_replicas(
    m: Session,
    nodes: Sequence[str],
    steps: Sequence[ReplicaStep],
    *,
    exact: bool | None = None,
    dimension: str = "dp",
) -> tuple[list[Replica], bool]:
    """The replicas that are to be simulated, and whether collectives go step by step.

    The session knows which ranks each of them stands for.

    Parameters
    ----------
    m : Session
    nodes : sequence of str
        Node of each rank.
    steps : sequence of ReplicaStep
        Of each rank; ranks that do the same share one object.
    exact : bool or None
        True simulates every rank; False takes ranks together or refuses; None takes them
        together where that is exact.
    dimension : str
        That of the layout along which all of their communication goes; empty if it goes along several.

    Raises
    ------
    InputError
        `exact` is False, but something differs between the ranks that only a simulation
        of every rank can tell.
    """
    replicas, apart = _replicas(m, nodes, steps, exact=exact)
    for one in replicas:
        m.ranks[one.device.name] = RankClass(
            tuple(nodes[rank] for rank in one.members), dimension, numbers=tuple(one.members)
        )
    return replicas, apart


def _replicas(
    m: Session, nodes: Sequence[str], steps: Sequence[ReplicaStep], *, exact: bool | None
) -> tuple[list[Replica], bool]:
    why = "" if exact else _difference(m, nodes, steps)
    if why and exact is False:
        raise InputError(
            Problem(f"ranks cannot be taken together: {why}", key="exact", value="false", expected="true or none")
        )
    if exact or why:
        if why:
            m.notes.append(f"every rank is simulated: {why}")
        return [_replica(m, nodes, steps, (rank,)) for rank in range(len(nodes))], True
    looks: list[tuple[int, float]] = []
    for rank, step in enumerate(steps):
        source = _source(m, nodes[rank]) if step.nbytes_input else ""
        route = m.machine.route(source, nodes[rank]) if source else None
        copying = route.latency + step.nbytes_input / route.bandwidth if route else 0.0
        looks.append((id(step), copying))
    return [_replica(m, nodes, steps, ranks) for ranks in rank_classes(looks).members], False


def _host(m: Session, node: str) -> str:
    """CPU node whose process drives a device."""
    return node if m.machine.nodes[node].kind == "cpu" else str(m.machine.host_of(node))


def _source(m: Session, node: str) -> str:
    """CPU node in whose memory a process of its own puts the batch: the nearest; none if it computes there."""
    return "" if m.machine.nodes[node].kind == "cpu" else str(m.machine.nearest(node, "cpu"))


def _replica(m: Session, nodes: Sequence[str], steps: Sequence[ReplicaStep], ranks: tuple[int, ...]) -> Replica:
    rank = ranks[0]
    node, beside = nodes[rank], []
    if len(ranks) > 1 and steps[rank].nbytes_input:
        mine = set(_copy_links(m, node))
        for other in _neighbours(m, nodes, node):
            links = _copy_links(m, other)
            if other != node and mine & set(links):
                beside.append(links)
    return Replica(
        rank, m.simulation.device(node), _host(m, node), _source(m, node), steps[rank], ranks, beside=tuple(beside)
    )


def _copy_links(m: Session, node: str) -> tuple[str, ...]:
    source = _source(m, node)
    return tuple(m.machine.route(source, node).resources) if source else ()


def _neighbours(m: Session, nodes: Sequence[str], node: str) -> list[str]:
    return [nodes[rank] for rank in by_server(m.machine, nodes)[m.machine.nodes[node].server]]


def _difference(m: Session, nodes: Sequence[str], steps: Sequence[ReplicaStep]) -> str:
    """What only a simulation of every rank can tell; empty if there is nothing."""
    machine = m.machine
    hosts = Counter(_host(m, node) for node in nodes)
    for host, ranks in hosts.items():
        if host and ranks > machine.cores(host) and any(_costs(m, step) for step in steps[:1]):
            return f"{ranks} processes share the {machine.cores(host)} cores of {host}"
    if not any(step.nbytes_input for step in steps):
        return ""
    slower: set[float] = set()  # how many times as long copies take beside each other, in servers of each kind
    for local, own in _kinds(m, nodes, steps):
        routes = [_copy_links(m, node) for node in local]
        shared = max(Counter(link for links in routes for link in links).values(), default=0) > 1
        if shared and len({id(step) for step in own}) > 1:
            return "ranks with different steps share the links to their host"
        ends = _ends(m, routes, own[0].nbytes_input) if shared else []
        if ends and max(ends) - min(ends) > ROUNDING * max(ends):
            return "copies from the host to some GPUs share a link that others do not"
        alone = _ends(m, routes[:1], own[0].nbytes_input)[0] if ends else 0.0
        slower.add(round(max(ends) / alone, 9) if alone else 1.0)
    if len(slower) > 1:
        return "copies from the host share their links with more others in some servers than in others"
    if len({id(step) for step in steps}) > 1 and len(nodes) > 1:
        between = {link for node in nodes for link in m.machine.route(nodes[0], node).resources if node != nodes[0]}
        if any(between & set(_copy_links(m, node)) for node in nodes):
            return "copies from the host may meet collectives of ranks that are ahead"
    return ""


def _costs(m: Session, step: ReplicaStep) -> bool:
    """Whether launching the step takes any time of the host."""
    times = (kernel.launch for kernel in (*step.forward, *step.backward, *step.update))
    return any(m.profile.launch if time is None else time for time in times)


def _kinds(
    m: Session, nodes: Sequence[str], steps: Sequence[ReplicaStep]
) -> Iterable[tuple[list[str], list[ReplicaStep]]]:
    """Ranks of a server with their steps: of servers that are built and used alike, of one of them."""
    for servers in server_classes(m.machine, nodes, [id(step) for step in steps]):
        ranks = next(iter(servers.values()))
        yield [nodes[rank] for rank in ranks], [steps[rank] for rank in ranks]


def _ends(m: Session, routes: Sequence[tuple[str, ...]], nbytes: float) -> list[float]:
    """When copies end that start together [s], without latencies."""
    env = simpy.Environment()
    names = dict.fromkeys(link for links in routes for link in links)
    network = FlowNetwork(env, {name: m.machine.resources[name] for name in names})
    flows = [network.transfer(links, nbytes) for links in routes]
    env.run()
    return [float(flow.value) for flow in flows]  # type: ignore[arg-type]
