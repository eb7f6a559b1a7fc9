"""Rings through GPUs: the NVLink graph is taken apart into Hamiltonian cycles by search.

On a hybrid cube mesh (DGX-1V) the search finds one ring over the double links and one over the
single links; behind an NVSwitch any order is a ring; without NVLink one ring runs over PCIe.
Between servers there is one ring for each NIC of a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from simperf.errors import MachineError
from simperf.hardware.fabric import ServerSlot
from simperf.hardware.machine import Machine

__all__ = ["Ring", "find_rings"]

_MOST_CYCLES = 5_000
_MOST_STEPS = 200_000
Links = dict[tuple[int, int], int]
#: orders in which rings thread a server, by what makes servers equal
Threads = dict[tuple[object, ...], list[tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Ring:
    """A cycle through all ranks.

    Parameters
    ----------
    order : tuple of str
        GPUs in order; the last one is followed by the first.
    bandwidth : float
        That the ring carries in one direction while the other rings found with it are in use [B/s].
        Links are full duplex: the same ring runs the other way round at the same time.
    links : int
        Parallel NVLinks that it uses from GPU to GPU, 0 if it runs over something else.
    """

    order: tuple[str, ...]
    bandwidth: float
    links: int = 0


def find_rings(machine: Machine, ranks: Sequence[str] | None = None) -> list[Ring]:
    """Find rings that use as many links at once as possible, the widest first.

    Parameters
    ----------
    machine : Machine
        Where the ranks are.
    ranks : sequence of str, optional
        GPUs; all of the machine by default.

    Returns
    -------
    list of Ring
        Their bandwidths add up; the sum is what a ring collective gets in one direction.

    Raises
    ------
    MachineError
        Fewer than two ranks, one twice, or ranks that do not reach each other.

    Notes
    -----
    The NVLinks between the ranks are a multigraph. Its Hamiltonian cycles are listed (at most 5,000), and a
    depth-first search gives each as many parallel links as it can, until no better sum exists: a GPU with d
    links is passed by at most d/2 cycles. NCCL does a search to the same end (graph/search.cc).

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> rings = find_rings(Catalog.load().machine("book-8v100"))
    >>> [(ring.links, ring.bandwidth / 1e9) for ring in rings]
    [(2, 36.0), (1, 18.0)]
    """
    order = tuple(machine.gpus if ranks is None else ranks)
    if len(order) < 2 or len(set(order)) < len(order):
        raise MachineError(f"a ring needs two different ranks or more, not {', '.join(order) or 'none'}")
    if len({machine.nodes[rank].server for rank in order}) > 1:
        return _between_servers(machine, order)
    links = _links(machine, order)
    if len(order) == 2:
        return _along(machine, [order])
    chosen = _decompose(links, len(order)) if links else []
    if not chosen:
        return _along(machine, [order])
    unit = min(machine.edges[f"{order[a]}>{order[b]}"].bandwidth / count for (a, b), count in links.items())
    rings = [Ring(tuple(order[i] for i in cycle), count * unit, count) for cycle, count in chosen]
    return sorted(rings, key=lambda ring: -ring.links)


def _links(machine: Machine, order: Sequence[str]) -> Links:
    """Parallel NVLinks between each pair of ranks of one server that have any."""
    links: Links = {}
    for i, a in enumerate(order):
        for j in range(i + 1, len(order)):
            edge = machine.edges.get(f"{a}>{order[j]}")
            if edge is not None and edge.technology == "nvlink":
                links[i, j] = edge.count
    return links


def _between_servers(machine: Machine, order: tuple[str, ...]) -> list[Ring]:
    """Rings through servers one after the other: one a NIC, each entering and leaving by NICs of its own.

    Inside a server they follow the rings found there, each as often as it has links to give.
    """
    groups: dict[str, list[str]] = {}
    for rank in order:
        groups.setdefault(machine.nodes[rank].server, []).append(rank)
    inside = list(groups.values())
    known: Threads = {}
    slots = {slot.name: slot for slot in machine.servers}
    threads = [_alike(machine, ranks, after[0], slots, known) for ranks, after in pairwise([*inside, inside[0]])]
    orders = [tuple(rank for thread in row for rank in thread) for row in zip(*threads, strict=False)]
    many, one = _along(machine, orders), _along(machine, orders[:1])
    return many if sum(ring.bandwidth for ring in many) > one[0].bandwidth * (1 + 1e-9) else one


def _alike(
    machine: Machine, ranks: list[str], away: str, slots: Mapping[str, ServerSlot], known: Threads
) -> list[tuple[str, ...]]:
    """Orders of `_threads`, found once for servers that are equal, hang on the same switches and have equal ranks."""
    here, there = (machine.nodes[rank].server for rank in (ranks[0], away))
    one, two = slots.get(here), slots.get(there)
    if one is None or two is None:
        return _threads(machine, ranks, away)
    ends = tuple(rank.removeprefix(f"{here}/") for rank in ranks)
    key = (one.blueprint, id(one.ports), two.blueprint, id(two.ports), ends, away.removeprefix(f"{there}/"))
    if key not in known:
        found = _threads(machine, ranks, away)
        known[key] = [tuple(rank.removeprefix(f"{here}/") for rank in order) for order in found]
    return [tuple(f"{here}/{rank}" for rank in order) for order in known[key]]


def _threads(machine: Machine, ranks: list[str], away: str) -> list[tuple[str, ...]]:
    """Orders in which rings thread a server: no two enter, and no two leave, by one NIC if that can be."""
    if len(ranks) == 1:
        return [(ranks[0],)]
    rings = find_rings(machine, ranks)
    pattern = [ring.order for ring in rings for _ in range(max(1, ring.links))]
    door = {rank: _door(machine, rank, away) for rank in ranks}
    doors = list(dict.fromkeys(door.values()))
    chosen: list[tuple[str, ...]] = []

    def search(used: tuple[str, ...]) -> bool:
        at = len(chosen)
        if at == len(doors):
            return True
        turn = at % len(pattern)
        for ring in dict.fromkeys([*pattern[turn:], *pattern[:turn]]):
            for way in (ring, ring[::-1]):
                for index, first in enumerate(way):
                    if door[way[index - 1]] == doors[at] and door[first] not in used:
                        chosen.append(way[index:] + way[:index])
                        if search((*used, door[first])):
                            return True
                        chosen.pop()
        return False

    return chosen if search(()) else [rings[0].order]


def _door(machine: Machine, rank: str, away: str) -> str:
    """Node by which `rank` leaves its server on the way to `away`."""
    home = machine.nodes[rank].server
    return next(edge.src for edge in machine.route(rank, away).edges if machine.nodes[edge.dst].server != home)


def _along(machine: Machine, orders: Sequence[tuple[str, ...]]) -> list[Ring]:
    """Rings in the given orders of the same ranks over the machine's routes, sharing what they all share."""
    if machine.equal_servers is not None:
        return _along_classes(machine, orders)
    ways = [[machine.route(a, b) for a, b in pairwise((*order, order[0]))] for order in orders]
    uses: dict[str, int] = {}
    for routes in ways:
        for route in routes:
            for resource in route.resources:
                uses[resource] = uses.get(resource, 0) + 1
    rings = []
    for order, routes in zip(orders, ways, strict=True):
        bandwidth = min(machine.resources[key] / uses[key] for route in routes for key in route.resources)
        direct = all(route.is_nvlink for route in routes)
        rings.append(Ring(order, bandwidth, min(route.edges[0].count for route in routes) if direct else 0))
    return rings


def _along_classes(machine: Machine, orders: Sequence[tuple[str, ...]]) -> list[Ring]:
    """As `_along` in a cluster whose routes do not depend on names: one route of each class is found."""
    import numpy as np

    from simperf.hardware.route_classes import RouteClasses

    nodes = orders[0]
    number = {node: index for index, node in enumerate(nodes)}
    classes = RouteClasses(machine, nodes, machine.resources, lambda a, b: machine.route(nodes[a], nodes[b]).resources)
    src = np.array([[number[node] for node in order] for order in orders])
    links, kinds = classes.find(src.ravel(), np.roll(src, -1, axis=1).ravel())
    found, place = classes.distinct(links)
    share = np.append(np.inf, classes.capacity(found)) / np.maximum(np.bincount(place.ravel(), minlength=1), 1)
    widths = share[place].min(axis=0).reshape(src.shape).min(axis=1).tolist()
    routes = [machine.route(nodes[a], nodes[b]) for a, b in classes.representatives]
    counts = np.array([route.edges[0].count if route.is_nvlink else 0 for route in routes])
    least = counts[kinds].reshape(src.shape).min(axis=1).tolist()
    return [Ring(order, width, count) for order, width, count in zip(orders, widths, least, strict=True)]


def _decompose(links: Links, size: int) -> list[tuple[tuple[int, ...], int]]:
    """Cycles, each with how many parallel links it gets, that use the most links in all."""
    found = [(cycle, _pairs(cycle)) for cycle in _cycles(links, size)]
    found.sort(key=lambda row: (-min(links[pair] for pair in row[1]), row[0]))
    degree = [0] * size
    for (a, b), count in links.items():
        degree[a] += count
        degree[b] += count
    bound = min(degree) // 2
    best: list[tuple[tuple[int, ...], int]] = []
    reached = steps = 0
    left = dict(links)

    def search(start: int, total: int, taken: list[tuple[tuple[int, ...], int]]) -> bool:
        nonlocal best, reached, steps
        if total > reached:
            best, reached = list(taken), total
        if reached == bound:
            return True
        for index in range(start, len(found)):
            steps += 1
            if steps > _MOST_STEPS:
                return True
            cycle, pairs = found[index]
            for count in range(min(left[pair] for pair in pairs), 0, -1):
                for pair in pairs:
                    left[pair] -= count
                done = search(index + 1, total + count, [*taken, (cycle, count)])
                for pair in pairs:
                    left[pair] += count
                if done:
                    return True
        return False

    search(0, 0, [])
    return best


def _pairs(cycle: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(min(pair), max(pair)) for pair in pairwise((*cycle, cycle[0]))]


def _cycles(links: Links, size: int) -> Iterator[tuple[int, ...]]:
    """Hamiltonian cycles from rank 0, each in one of its two directions."""
    beside: list[list[int]] = [[] for _ in range(size)]
    for a, b in sorted(links):
        beside[a].append(b)
        beside[b].append(a)
    count = 0
    stack: list[tuple[tuple[int, ...], frozenset[int]]] = [((0,), frozenset({0}))]
    while stack and count < _MOST_CYCLES:
        path, seen = stack.pop()
        if len(path) == size:
            if path[0] in beside[path[-1]] and path[1] < path[-1]:
                count += 1
                yield path
            continue
        stack += [((*path, step), seen | {step}) for step in reversed(beside[path[-1]]) if step not in seen]
