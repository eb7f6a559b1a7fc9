"""Plans for a machine: rings found on its topology, groups that are its servers, chunks for a size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, sqrt
from typing import Any

from simperf.collectives.algorithms import make_plan, options_of
from simperf.collectives.execute import execute
from simperf.collectives.executors.rotation import turns
from simperf.collectives.placement import PLAIN, Placement, Transport, place
from simperf.collectives.plan import Plan
from simperf.collectives.plan_bounds import ASKED, PlanBounds, PlanBoundsError
from simperf.collectives.plans.gloo import segments_for
from simperf.errors import InputError, Problem
from simperf.hardware import Machine, find_rings
from simperf.layout import by_server

__all__ = ["plan_for", "reducing_sites", "suitable_chunks", "switch_sites"]

#: most chunks that are chosen unasked
MOST_CHUNKS = 256

#: most chunks along a chain, which needs no events
MOST_CHAIN = 2_048

#: choices between trees that a machine keeps
MOST_TREES = 64

#: ranks up to which rings are searched for; beyond, they follow the order of the servers
MOST_SEARCHED = 2_048


def plan_for(
    machine: Machine,
    collective: str,
    algorithm: str,
    *,
    ranks: Sequence[str],
    nbytes: float = 0.0,
    transport: Transport = PLAIN,
    bounds: PlanBounds = ASKED,
    **options: Any,
) -> Plan:
    """Make a plan whose options suit the machine, where they are not given.

    Rings follow those found on the topology, a hierarchy's groups are the ranks of a
    server, and a pipeline gets as many chunks as balance the latency that each costs
    against the time until the last rank has something to do. A tree whose degree is open is
    a binary tree or a chain, whichever is faster alone.

    Parameters
    ----------
    machine : Machine
        Where the plan will run.
    collective, algorithm : str
        What and how.
    ranks : sequence of str
        Node of each rank.
    nbytes : float
        Payload that the chunks are chosen for [B].
    transport : Transport
        Latencies that the chunks are chosen for.
    bounds : PlanBounds
        Bounds the chunks that are chosen.
    **options
        Options of the algorithm that are given.

    Raises
    ------
    InputError
        The machine does not suit the algorithm, such as servers with different numbers of ranks.
    """
    known = options_of(collective, algorithm)
    chosen: dict[str, Any] = dict(options)
    if "degree" in known and "degree" not in options and len(ranks) > 2:
        options = chosen = _shape(machine, collective, algorithm, ranks, nbytes, transport, bounds, chosen)
    if "orders" in known and not {"orders", "channels"} & set(options):
        orders, weights = _rings(machine, ranks)
        chosen |= {"orders": orders, "weights": weights}
    elif "order" in known and "order" not in options:
        chosen["order"] = _rings(machine, ranks)[0][0]
    if algorithm == "in-network" and not machine.servers:
        message = "this machine has no switch that adds up"
        raise InputError(Problem(message, key="algorithm", value=algorithm, expected="a server such as dgx-h100"))
    if "group" in known and "group" not in options:
        chosen["group"] = _group(machine, ranks)
    if algorithm == "gloo" and "segments" not in options:
        chosen["segments"] = segments_for(nbytes, len(ranks))
    if "chunks" in known and "chunks" not in options:
        chain = options.get("degree") == 1
        chosen["chunks"] = suitable_chunks(machine, ranks, nbytes, transport=transport, chain=chain, bounds=bounds)
    return make_plan(collective, algorithm, nranks=len(ranks), **chosen)


def _shape(
    machine: Machine,
    collective: str,
    algorithm: str,
    ranks: Sequence[str],
    nbytes: float,
    transport: Transport,
    bounds: PlanBounds,
    options: dict[str, Any],
) -> dict[str, Any]:
    """The options with the degree of the faster tree: binary, or a chain with all chunks up before any comes down.

    Each is executed alone, and the machine keeps the choice. A tree beyond the bounds is no candidate; where both
    are, the binary one is taken.
    """
    chain = {"degree": 1, **({"overlap": False} if "overlap" in options_of(collective, algorithm) else {})}
    trees = ({**options, "degree": 2}, {**chain, **options})
    kept: dict[Any, int] = machine.kept.setdefault("trees", {})
    key = (collective, algorithm, tuple(ranks), nbytes, repr(transport), bounds, repr(sorted(options.items())))
    if key not in kept:

        def lay_out(tree: Mapping[str, Any]) -> tuple[Plan, Placement] | None:
            plan = plan_for(
                machine, collective, algorithm, ranks=ranks, nbytes=nbytes, transport=transport, bounds=bounds, **tree
            )
            placement = place(plan, machine, ranks=ranks)
            try:
                if not turns(plan, placement, nbytes, transport, (0.0,)):
                    bounds.check(plan, placement)
            except PlanBoundsError:
                return None
            return plan, placement

        def time(laid: tuple[Plan, Placement] | None) -> float:
            if laid is None:
                return inf
            plan, placement = laid
            try:
                run = execute(plan, machine, nbytes=nbytes, transport=transport, placement=placement, bounds=bounds)
            except PlanBoundsError:
                return inf
            return run.time

        binary, line = (lay_out(tree) for tree in trees)
        while len(kept) >= MOST_TREES:
            del kept[next(iter(kept))]
        # where the chain is no candidate, the time of the binary tree does not matter
        kept[key] = int(line is not None and time(line) < time(binary))
    return trees[kept[key]]


def _rings(machine: Machine, ranks: Sequence[str]) -> tuple[list[list[int]], list[float]]:
    if not machine.servers or not 2 <= len(ranks) <= MOST_SEARCHED:
        return [list(range(len(ranks)))], [1.0]
    key = ("rings", tuple(ranks))
    if key not in machine.kept:
        index = {node: rank for rank, node in enumerate(ranks)}
        rings = find_rings(machine, ranks)
        orders = [[index[node] for node in ring.order] for ring in rings]
        machine.kept[key] = orders, [ring.bandwidth for ring in rings]
    found: tuple[list[list[int]], list[float]] = machine.kept[key]
    return found


def _group(machine: Machine, ranks: Sequence[str]) -> int:
    if not machine.servers:
        message = "this machine has no servers, so that the number of ranks in a group must be given"
        raise InputError(Problem(message, key="group", expected="a divisor of the number of ranks"))
    counts = [len(local) for local in by_server(machine, ranks).values()]
    if len(set(counts)) > 1:
        message = f"a hierarchy needs equally many ranks in every server, not {', '.join(map(str, counts))}"[:200]
        raise InputError(Problem(message, key="algorithm"))
    return next(iter(counts), 1)


def suitable_chunks(
    machine: Machine,
    ranks: Sequence[str],
    nbytes: float,
    *,
    transport: Transport = PLAIN,
    chain: bool = False,
    bounds: PlanBounds = ASKED,
) -> int:
    """Number of chunks for a pipeline down a tree and up it.

    k chunks of S/k bytes over a path of d hops take about (d + k) * (latency + S/k/B), which
    is least at k = sqrt(d * S / (latency * B)). The path of a chain is that of one way.
    """
    n = len(ranks)
    if n < 2 or nbytes <= 0:
        return 1
    depth = n - 1 if chain else 2 * n.bit_length()
    hop = Placement(machine, (ranks[0], ranks[n // 2])).hop(0, 1)
    rate = min((machine.resources[name] for name in hop.resources), default=float("inf"))
    latency = transport.latency(hop)
    # a chain's sends go through arrays, both ways and over two links or more
    along = min(MOST_CHAIN, bounds.crossings // (12 * n))
    limit = max(1, along if chain else min(MOST_CHUNKS, bounds.sends // n))
    if latency <= 0.0:
        return limit
    return max(1, min(limit, round(sqrt(depth * nbytes / (latency * rate)))))


def reducing_sites(
    machine: Machine, algorithm: str, ranks: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """Nodes that an algorithm needs beside its ranks on this machine; None if it needs none.

    Raises
    ------
    InputError
        As `switch_sites`.
    """
    return switch_sites(machine, ranks, options.get("heads", ())) if algorithm == "in-network" else None


def switch_sites(machine: Machine, ranks: Sequence[str], heads: Sequence[int] = ()) -> tuple[str, ...]:
    """Nodes of an in-network plan's participants beside the ranks: switches, then heads.

    Raises
    ------
    InputError
        A server does not have exactly one switch that joins its GPUs, or that switch cannot add up.
    """
    groups = by_server(machine, ranks)
    switches: dict[str, list[str]] = {}
    for name in machine.ids("nvswitch"):
        switches.setdefault(machine.nodes[name].server, []).append(name)
    if any(len(switches.get(server, ())) != 1 for server in groups):
        message = "reduction in the network needs one NVSwitch in each server"
        raise InputError(Problem(message, key="algorithm", expected="a server such as dgx-h100"))
    for server in groups:
        switch = machine.nodes[switches[server][0]]
        if not getattr(switch.part, "reduces", False):
            part = getattr(switch.part, "name", switch.id)
            message = f"the switch {part} cannot add up"
            raise InputError(Problem(message, key="algorithm", expected="a server such as dgx-h100"))
    asking = [ranks[members[head]] for members in groups.values() for head in (heads or range(len(members)))]
    return (*(switches[server][0] for server in groups), *asking)
