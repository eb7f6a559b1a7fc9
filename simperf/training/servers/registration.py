"""Messages between workers and servers before the first step: every key is made known to its server.

BytePS pushes each slice once, dense, and waits until all machines have, before it continues to the next: first for
the weights, which then come from the first machine by a push and a pull, and then for the gradients (bytedance/byteps,
InitTensor in byteps/common/operations.cc and _init_params in byteps/mxnet/__init__.py at 6c44049f). The barrier after
each slice leaves all ports idle but those of one server, so that on a slow network this takes longer than a step.
"""

from __future__ import annotations

from collections.abc import Iterable

import simpy

from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.training.servers.kvstore import KVStore
from simperf.training.servers.placement import Shard

__all__ = ["announce"]


def announce(m: Session, store: KVStore) -> Program:
    """Make every key known to its server, weights and gradients, and give all workers the same weights.

    With m machines and as many servers on them this takes 2 (m-1) S/B for the pushes one after the other; the broadcast
    of the weights continues beside them.

    Parameters
    ----------
    m : Session
    store : KVStore
    """
    shards = sorted(store.shards, key=lambda shard: (shard.key, shard.index))
    broadcast = []
    for name in ("weights", "gradients"):
        for shard in shards:
            yield wait(_pushes(m, store, shard, f"announce {name} {shard.key}"), why="wait: keys made known")
            if name == "weights":
                broadcast.append(_broadcast(m, store, shard))
    for event in broadcast:
        yield wait(event, why="wait: first weights")


def _pushes(m: Session, store: KVStore, shard: Shard, name: str) -> simpy.Event:
    """Event that comes when a slice of every machine is at its server."""
    node = store.servers[shard.server]
    return _sends(m, store, [(team.route.door(shard), node) for team in store.teams], shard.nbytes, name)


def _broadcast(m: Session, store: KVStore, shard: Shard) -> simpy.Event:
    """Event that comes when every machine has pushed a slice and has the sum."""
    node, over = store.servers[shard.server], simpy.Event(m.simulation.env)

    def answer(_: simpy.Event) -> None:
        ways = [(node, team.route.door(shard)) for team in store.teams]
        back = _sends(m, store, ways, shard.nbytes, f"weights {shard.key}")
        assert back.callbacks is not None
        back.callbacks.append(there)

    def there(_: simpy.Event) -> None:
        over.succeed()

    pushed = _pushes(m, store, shard, f"broadcast {shard.key}")
    assert pushed.callbacks is not None
    pushed.callbacks.append(answer)
    return over


def _sends(m: Session, store: KVStore, ways: Iterable[tuple[str, str]], nbytes: float, name: str) -> simpy.Event:
    """Event that comes when `nbytes` [B] have gone every way."""
    ways, over = list(ways), simpy.Event(m.simulation.env)
    left = [len(ways)]

    def arrived() -> None:
        left[0] -= 1
        if not left[0]:
            over.succeed()

    for source, target in ways:
        store.courier.send(source, target, nbytes, arrived, name=name)
    return over
