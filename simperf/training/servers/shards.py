"""Shards of the parameters on servers, and who takes them over when a server is lost.

The plan is a pure function of where the shards lie; moving their bytes over the links of
the machine is `move_shards`. A shard with a replica on a server that lives is taken over where the
replica lies, and nothing moves; one without comes from the store of the checkpoints.

Not modelled: making the replicas whole again after a take-over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.execution.session import Session

__all__ = ["Move", "ReplicatedShard", "move_shards", "place_shards", "take_over"]


@dataclass(frozen=True, slots=True)
class ReplicatedShard:
    """One part of the parameters.

    Parameters
    ----------
    name : str
    nbytes : float
        Size [B].
    home : str
        Server that answers for it.
    replicas : tuple of str
        Servers that hold it as well.
    """

    name: str
    nbytes: float
    home: str
    replicas: tuple[str, ...] = ()


class Move(NamedTuple):
    """A shard that gets a new home; `nbytes` [B] go from `source` to `target`, 0 if they are there."""

    shard: str
    source: str
    target: str
    nbytes: float


def place_shards(
    nbytes: float, servers: Sequence[str], *, shards: int, replicas: int = 0
) -> tuple[ReplicatedShard, ...]:
    """Spread `nbytes` [B] in equal shards round the servers, replicas on the servers that follow.

    Raises
    ------
    InputError
        No servers, fewer shards than servers, or as many replicas as there are servers.
    """
    count = len(servers)
    problems = []
    if count < 1 or len(set(servers)) < count:
        problems.append(
            Problem(
                "one server or more, each named once",
                key="servers",
                value=", ".join(servers),
                expected="one name or more, each once",
            )
        )
    if shards < max(count, 1):
        message = f"{count} servers need as many shards or more: otherwise some have nothing to do"
        problems.append(Problem(message, key="shards", value=str(shards)))
    if not 0 <= replicas < max(count, 1):
        message = f"from 0 to {max(count - 1, 0)} replicas fit on {count} servers"
        problems.append(Problem(message, key="replicas", value=str(replicas)))
    if nbytes < 0:
        problems.append(Problem("a size of 0 B or more is expected", key="nbytes", value=f"{nbytes:g}"))
    if problems:
        raise InputError(problems)

    def server(index: int) -> str:
        return servers[index % count]

    return tuple(
        ReplicatedShard(
            f"shard{i}", nbytes / shards, server(i), tuple(server(i + 1 + copy) for copy in range(replicas))
        )
        for i in range(shards)
    )


def take_over(
    shards: Sequence[ReplicatedShard], lost: Iterable[str], *, store: str = ""
) -> tuple[tuple[ReplicatedShard, ...], list[Move]]:
    """New homes for the shards of lost servers: a replica's server, or the one with the fewest bytes.

    Parameters
    ----------
    shards : sequence of ReplicatedShard
    lost : iterable of str
        Servers that are gone.
    store : str
        Node that holds the checkpoint of every shard.

    Raises
    ------
    InputError
        No server is left, or a shard is nowhere to be had.
    """
    gone = set(lost)
    load = {server: 0.0 for shard in shards for server in (shard.home, *shard.replicas) if server not in gone}
    if not load:
        message = "no server is left to take the shards over"
        raise InputError(Problem(message, key="servers", expected="servers that are not lost"))
    for shard in shards:
        if shard.home not in gone:
            load[shard.home] += shard.nbytes
    after, moves, nowhere = [], [], []
    for shard in shards:
        kept = tuple(server for server in shard.replicas if server not in gone)
        if shard.home not in gone:
            after.append(ReplicatedShard(shard.name, shard.nbytes, shard.home, kept))
            continue
        home = min(kept or load, key=lambda server: load[server])
        load[home] += shard.nbytes
        if not kept and not store:
            nowhere.append(shard.name)
        moves.append(Move(shard.name, home if kept else store, home, 0.0 if kept else shard.nbytes))
        after.append(
            ReplicatedShard(shard.name, shard.nbytes, home, tuple(server for server in kept if server != home))
        )
    if nowhere:
        message = f"{', '.join(nowhere)} had no replica, and there is no store with a checkpoint"
        raise InputError(Problem(message, key="store", expected="replicas = 1, or the node of a store"))
    return tuple(after), moves


def move_shards(m: Session, moves: Sequence[Move]) -> Generator[Any, Any, float]:
    """Carry `moves` out, all at the same time, over the links of the machine; returns the time it took [s]."""
    started = m.now
    events = [
        m.send(move.source, move.target, move.nbytes, name=f"take over {move.shard}") for move in moves if move.nbytes
    ]
    if events:
        yield m.simulation.env.all_of(events)
    return m.now - started
