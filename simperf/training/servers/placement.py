"""Placement of the parts of a model on servers.

A model is a list of keys (parameters); a server keeps shards of them. Large keys are cut
first if asked for, then the shards are dealt out. What counts is the fullest server,
because a synchronous step waits for it: one key of VGG-16 has 74 % of all bytes, and no
placement of whole keys can balance that.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from simperf.errors import InputError, Problem, nearest
from simperf.hardware import Machine

__all__ = ["PLACEMENTS", "Shard", "loads", "place_keys", "server_nodes", "worker_gpus"]

Placement = Literal["round-robin", "balanced", "sliced"]
Where = Literal["cpu", "gpu", "dedicated"]

#: ways of dealing keys to servers
PLACEMENTS: tuple[str, ...] = get_args(Placement)
#: where servers may run
_SITES: tuple[str, ...] = get_args(Where)
#: servers that are played
MOST_SERVERS = 100_000
#: slices into which all keys together may be cut
MOST_SLICES = 1_000_000


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a key that travels and is kept as one.

    Parameters
    ----------
    index : int
        Number among all shards.
    key : int
        Key that it belongs to.
    nbytes : float
        Size [B].
    server : int
        Server that keeps it.
    """

    index: int
    key: int
    nbytes: float
    server: int


def place_keys(
    sizes: Sequence[float], *, servers: int, how: str = "balanced", slice_size: float = math.inf
) -> tuple[Shard, ...]:
    """Deal keys to servers.

    Parameters
    ----------
    sizes : sequence of float
        Size of each key [B].
    servers : int
    how : str
        ``"round-robin"``: in turn, as TensorFlow deals variables. ``"balanced"``: the largest first,
        each to the server with the least so far (Graham 1969: at most 4/3 of the best).
        ``"sliced"``: every key is cut into equal parts, one a server.
    slice_size : float
        Keys above this are first cut into the fewest equal slices that are not (the key-value store of
        MXNet and P3 of Jayarajan et al., MLSys 2019, do) [B].

    Raises
    ------
    InputError
        No server, no key, an unknown way, more servers than there are shards, or too many slices.

    Examples
    --------
    >>> [shard.server for shard in place_keys([4.0, 1.0, 1.0, 2.0], servers=2)]
    [0, 1, 1, 1]
    >>> len(place_keys([100.0], servers=2, slice_size=30.0))
    4
    """
    problems = []
    if servers < 1:
        problems.append(Problem("at least one server is needed", key="servers", value=str(servers)))
    if not sizes:
        problems.append(Problem("there is no key to keep", key="keys"))
    if not all(0.0 <= size < math.inf for size in sizes):
        problems.append(Problem("every key has a finite size, 0 or more", key="keys", expected="0 B or more"))
    if servers > MOST_SERVERS:
        problems.append(Problem(f"at most {MOST_SERVERS:,} servers can be set", key="servers", value=f"{servers:,}"))
    if how not in PLACEMENTS:
        problems.append(Problem(f"no such placement{nearest(how, PLACEMENTS)}", key="placement", value=how))
    if not slice_size > 0.0:
        problems.append(Problem("a slice has a size above 0", key="slice_size", value=str(slice_size)))
    if problems:
        raise InputError(problems)
    if how == "sliced":
        return tuple(
            Shard(key * servers + part, key, size / servers, part)
            for key, size in enumerate(sizes)
            for part in range(servers)
        )
    count = math.fsum(size / slice_size for size in sizes)
    if count > MOST_SLICES:
        expected = f"{math.fsum(sizes) / MOST_SLICES:.3g} B or more"
        message = f"{count:.3g} slices are more than {MOST_SLICES:,}"
        raise InputError(Problem(message, key="slice_size", value=f"{slice_size:g} B", expected=expected))
    parts = [
        (key, size / pieces)
        for key, size in enumerate(sizes)
        for pieces in [max(1, math.ceil(size / slice_size))]
        for _ in range(pieces)
    ]
    if servers > len(parts):
        message = f"{servers} servers for {len(parts)} shards: some would keep nothing"
        raise InputError(
            Problem(message, key="servers", expected=f"at most {len(parts)}, a smaller slice_size, or placement sliced")
        )
    return tuple(
        Shard(index, key, size, server)
        for index, ((key, size), server) in enumerate(zip(parts, _deal(parts, servers, how), strict=True))
    )


def _deal(parts: Sequence[tuple[int, float]], servers: int, how: str) -> list[int]:
    """Server of each part."""
    if how == "round-robin":
        return [index % servers for index in range(len(parts))]
    chosen = [0] * len(parts)
    heap = [(0.0, server) for server in range(servers)]
    for index in sorted(range(len(parts)), key=lambda i: (-parts[i][1], i)):
        load, server = heapq.heappop(heap)
        chosen[index] = server
        heapq.heappush(heap, (load + parts[index][1], server))
    return chosen


def loads(shards: Sequence[Shard], servers: int) -> list[float]:
    """Bytes that each server keeps [B]."""
    kept = [0.0] * servers
    for shard in shards:
        kept[shard.server] += shard.nbytes
    return kept


def worker_gpus(machine: Machine, workers: int = 0, *, servers: int = 0, where: str = "cpu") -> tuple[str, ...]:
    """Nodes of the GPUs that train: the first `workers` (0: all) of the machines that are not set aside for servers.

    Raises
    ------
    InputError
        There are fewer GPUs than asked for, fewer than none are, or no machine is left to train.
    """
    if workers < 0:
        raise InputError(Problem("a number of GPUs is expected, or 0 for all", key="workers", value=str(workers)))
    kept = {slot.name for slot in machine.servers}
    if where == "dedicated":
        names = [slot.name for slot in machine.servers]
        if servers >= len(names):
            message = f"{servers} dedicated server(s) leave none of {machine.name}'s {len(names)} machine(s) to train"
            expected = "more machines, or servers on the workers' machines (where = cpu or gpu)"
            raise InputError(Problem(message, key="where", expected=expected))
        kept = set(names[: len(names) - servers])
    gpus = tuple(gpu for gpu in machine.workers if len(machine.servers) == 1 or gpu.partition("/")[0] in kept)
    if workers > len(gpus) or not gpus:
        message = f"{workers or 'no'} workers wanted, but the machine has {len(gpus)} GPUs to train on"
        raise InputError(Problem(message, key="workers"))
    return gpus[: workers or None]


def server_nodes(machine: Machine, gpus: Sequence[str], *, servers: int, where: str) -> tuple[str, ...]:
    """Nodes of the servers.

    Parameters
    ----------
    machine : Machine
    gpus : sequence of str
        The workers.
    servers : int
    where : str
        ``"cpu"``: on the CPUs of the workers' machines, one a machine before the second of any;
        ``"gpu"``: on the workers' GPUs, likewise; ``"dedicated"``: on the CPUs of the last machines.

    Raises
    ------
    InputError
        No servers, no such place, or no CPU there.
    """
    if servers < 1:
        raise InputError(Problem("at least one server is needed", key="servers", value=str(servers)))
    if servers > MOST_SERVERS:
        raise InputError(Problem(f"at most {MOST_SERVERS:,} servers can be set", key="servers", value=f"{servers:,}"))
    if where not in _SITES:
        raise InputError(Problem(f"no such place{nearest(where, _SITES)}", key="where", value=where))
    if where == "gpu":
        pool = _one_each(machine, gpus)
    else:
        homes = {machine.nodes[gpu].server for gpu in gpus}
        away = where == "dedicated"
        pool = [cpu for cpu in _one_each(machine, machine.cpus) if (machine.nodes[cpu].server in homes) != away]
        if away:
            names = [slot.name for slot in machine.servers][-servers:]
            pool = [cpu for cpu in pool if cpu.partition("/")[0] in names]
    if not pool:
        raise InputError(
            Problem(
                f"{machine.name} has no {where} node for a parameter server",
                key="where",
                value=where,
                expected="a place that the machine has: gpu or cpu",
            )
        )
    return tuple(pool[index % len(pool)] for index in range(servers))


def _one_each(machine: Machine, nodes: Sequence[str]) -> list[str]:
    """The nodes, the first of every machine before the second of any."""
    seen: dict[str, int] = {}
    ranked = []
    for node in nodes:
        home = machine.nodes[node].server
        ranked.append((seen.setdefault(home, 0), node))
        seen[home] += 1
    return [node for _, node in sorted(ranked, key=lambda entry: entry[0])]
