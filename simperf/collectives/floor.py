"""Times that no algorithm can beat: what must leave and reach every rank, and how far it is.

For an all-reduce without help from the switches 2(n-1) payloads must be sent in all
(Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009, section 3), and every rank must
send and receive at least one. The same holds with whole servers in place of ranks, for
what crosses their ports. Whoever the root of a rooted collective is, its port carries what it
sends or receives, and all the others send or receive their part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from simperf.collectives.placement import PLAIN, Transport
from simperf.hardware import Machine, Topology

__all__ = ["floor", "needs"]

#: ranks up to which their distances are looked at
MOST_RANKS = 4_096


def needs(collective: str, n: int) -> tuple[float, float, float]:
    """Payloads that must cross the ports of n parties, whatever the algorithm.

    Returns
    -------
    tuple of float
        Sent by every one, received by every one, and sent by all together.
    """
    part, rest = (n - 1) / n, float(n - 1)
    return {
        "all-reduce": (1.0, 1.0, 2 * rest),
        "reduce-scatter": (part, 1 / n, rest),
        "all-gather": (1 / n, part, rest),
        "broadcast": (0.0, 0.0, rest),
        "reduce": (0.0, 0.0, rest),
        "gather": (0.0, 0.0, part),
        "scatter": (0.0, 0.0, part),
        "all-to-all": (part, part, rest),
        "send-recv": (1.0, 1.0, float(n)),
    }[collective]


def floor(
    machine: Machine,
    collective: str,
    *,
    ranks: Sequence[str],
    nbytes: float,
    helpers: Sequence[str] = (),
    transport: Transport = PLAIN,
) -> float:
    """Bound on the time of a collective by bandwidth and by distance [s].

    Parameters
    ----------
    machine : Machine
        The machine.
    collective : str
        Which one.
    ranks : sequence of str
        Node of each rank.
    nbytes : float
        Payload [B].
    helpers : sequence of str
        Nodes of servers beside the ranks, whose ports help.
    transport : Transport
        Its latencies and efficiency are part of the bound.
    """
    if len(ranks) < 2:
        return transport.start
    kept: dict[Any, tuple[float, float]] = machine.kept
    key = ("floor", collective, tuple(ranks), tuple(helpers))
    if key not in kept:
        kept[key] = _distance(machine, ranks), _wires(machine, collective, ranks, helpers)
    distance, wires = kept[key]
    far = distance + transport.step_latency if _reaches_all(collective) else 0.0
    return transport.start + max(far, nbytes / transport.efficiency * wires)


def _wires(machine: Machine, collective: str, ranks: Sequence[str], helpers: Sequence[str]) -> float:
    """Bound by the ports of ranks, and by those of their servers [s/B]."""
    bound = _ports(ranks, helpers, collective, *_node_ports(machine))
    servers = _server_ports(machine)
    if servers is not None:
        there = Counter(servers[0](node) for node in ranks)
        even = len(set(there.values())) == 1 or collective == "all-reduce"
        others = [name for name in dict.fromkeys(servers[0](node) for node in helpers) if name not in there]
        if len(there) > 1 and even and collective != "send-recv":
            bound = max(bound, _ports(list(there), others, collective, servers[1], servers[2]))
    return bound


def _reaches_all(collective: str) -> bool:
    """Whether news must get from every rank, or from one, to every other."""
    return collective in ("all-reduce", "all-gather", "all-to-all", "broadcast", "reduce-scatter")


def _distance(machine: Machine, ranks: Sequence[str]) -> float:
    """Latency between ranks that are far apart, also by way of other ranks [s]."""
    topology = machine.topology
    if topology is not None:
        whole = topology.kind == "ring" and len(ranks) == topology.nranks
        return topology.latency * {"star": 2, "ring": topology.nranks // 2 if whole else 1}.get(topology.kind, 1)
    if len(ranks) > MOST_RANKS:
        return 0.0
    here = [node for node in ranks if machine.nodes[node].server == machine.nodes[ranks[0]].server]
    there = [node for node in ranks if machine.nodes[node].server == machine.nodes[ranks[-1]].server]
    if here != there:
        return min(machine.route(src, dst).latency for src in here for dst in there)
    near = {(src, dst): machine.route(src, dst).latency for src in here for dst in here if src != dst}
    for via in here:
        for (src, dst), latency in near.items():
            if via not in (src, dst):
                near[src, dst] = min(latency, near[src, via] + near[via, dst])
    return max(near.values())


Port = Callable[[str], float]


def _ports(parties: Sequence[str], helpers: Sequence[str], collective: str, out: Port, into: Port) -> float:
    """Bound by the ports of the parties, and of helpers beside them [s/B]."""
    sent, received, together = needs(collective, len(parties))
    outs, ins = [out(party) for party in parties], [into(party) for party in parties]
    every = max(sent / min(outs), received / min(ins))
    helped = together / (sum(outs) + sum(out(helper) for helper in helpers))
    return max(every, helped, _root(collective, outs, ins))


def _root(collective: str, outs: Sequence[float], ins: Sequence[float]) -> float:
    """Bound by the port of the root, whoever it is, and by those of all others [s/B]."""
    part = (len(outs) - 1) / len(outs)
    if collective == "broadcast":
        return max(1 / max(outs), 1 / sorted(ins)[1])
    if collective == "reduce":
        return max(1 / max(ins), 1 / sorted(outs)[1])
    return {"gather": part / max(ins), "scatter": part / max(outs)}.get(collective, 0.0)


def _node_ports(machine: Machine) -> tuple[Port, Port]:
    if machine.topology is not None:
        return _topology_port(machine.topology, 0), _topology_port(machine.topology, 1)
    known: dict[tuple[Any, str, bool], float] = {}
    slots = {slot.name: slot for slot in machine.servers}

    def port(node: str, leave: bool) -> float:
        head, _, local = node.rpartition("/")
        slot = slots.get(head) if machine.fabric is not None else machine.servers[0]
        if slot is None:
            return float("inf")
        key = (slot.blueprint, local, leave)
        if key not in known:
            edges = slot.blueprint.edges.values()
            known[key] = sum(edge.bandwidth for edge in edges if (edge.src if leave else edge.dst) == local)
            known[key] += sum(port.bandwidth for port in slot.ports if port.local == local)
        return known[key]

    return (lambda node: port(node, True)), (lambda node: port(node, False))


def _topology_port(topology: Topology, end: int) -> Port:
    changed: dict[str, list[float]] = {}
    for link, value in topology.changed.items():
        changed.setdefault(link.split(">")[end], []).append(value)

    def port(node: str) -> float:
        own = changed.get(node, [])
        return (topology.degree - len(own)) * topology.bandwidth + sum(own)

    return port


def _server_ports(machine: Machine) -> tuple[Callable[[str], str], Port, Port] | None:
    if machine.fabric is None:
        return None
    wide = {slot.name: sum(port.bandwidth for port in slot.ports) for slot in machine.servers}
    return (lambda node: node.partition("/")[0]), wide.__getitem__, wide.__getitem__
