"""The parameter server's side of one shard: what it does with gradients, and when it answers.

D. Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from simperf.errors import InputError, Problem
from simperf.training.servers.placement import Shard
from simperf.training.servers.staleness import Clocks, Consistency, Staleness
from simperf.training.servers.transfers import Site

__all__ = ["ServerWork", "ShardServer"]

Reply = Callable[[], None]


@dataclass(frozen=True, slots=True)
class ServerWork:
    """Traffic of a server's memory, in bytes for each byte of the gradient.

    Parameters
    ----------
    add : float
        Adding a gradient to the sum: reads both, writes one [1].
    update : float
        Applying a gradient or a sum: reads it and the weights, writes the weights; with momentum 5, with Adam 7 [1].
    decode : float
        Decoding what has come, of each byte of the dense gradient [1].
    encode : float
        Encoding the answer, likewise [1].
    """

    add: float = 3.0
    update: float = 3.0
    decode: float = 0.0
    encode: float = 0.0

    def __post_init__(self) -> None:
        if not min(self.add, self.update, self.decode, self.encode) >= 0.0:
            raise InputError(Problem("memory traffic of 0 or more is expected", key="server_work"))


class ShardServer:
    """One shard on its server.

    Parameters
    ----------
    shard : Shard
    site : Site
        Memory of the server.
    rule : Consistency
    workers : int
    copies : int
        Workers that each of them stands for: as many gradients come at once.
    work : ServerWork
    staleness : Staleness
        Called with the age of every gradient that is applied.
    updated : callable
        Called with the shard server after every update.
    """

    __slots__ = (
        "_added",
        "_arrived",
        "_copies",
        "_needed",
        "_read",
        "_rule",
        "_staleness",
        "_updated",
        "_waiting",
        "_work",
        "clocks",
        "dropped",
        "shard",
        "site",
        "version",
    )

    def __init__(
        self,
        shard: Shard,
        site: Site,
        rule: Consistency,
        *,
        workers: int,
        copies: int = 1,
        work: ServerWork,
        staleness: Staleness,
        updated: Callable[[ShardServer], None],
    ) -> None:
        self.shard, self.site, self._rule, self._work = shard, site, rule, work
        self._needed, self._copies = rule.needed(workers), copies
        self._staleness, self._updated = staleness, updated
        self.clocks = Clocks(workers)
        self.version = self.dropped = 0
        self._arrived = self._added = 0
        self._read = [-1] * workers
        self._waiting: dict[int, tuple[int, Reply]] = {}

    def push(self, worker: int, clock: int) -> None:
        """Take the gradient of a worker's step number `clock`."""
        if not self._rule.collects:
            traffic = (self._work.update + self._work.decode + self._work.encode) * self.shard.nbytes
            self.site.work("update", traffic, partial(self._applied, worker))
        elif clock < self.version or self._arrived == self._needed:
            self.dropped += 1
        else:
            self._arrived += 1
            sums = self._copies - (self._arrived == 1)  # the first gradient is not added to anything
            traffic = (self._copies * self._work.decode + sums * self._work.add) * self.shard.nbytes
            self.site.work("add", traffic, self._summed)

    def pull(self, worker: int, clock: int, reply: Reply) -> None:
        """Answer when the weights are fresh enough for a worker that has done `clock` steps."""
        if self._fresh(worker, clock):
            self._answer(worker, reply)
        else:
            self._waiting[worker] = (clock, reply)

    def leave(self, worker: int) -> None:
        """A worker stops: nobody waits for it any longer."""
        slowest = self.clocks.slowest
        self.clocks.leave(worker)
        if self.clocks.slowest != slowest:
            self._release()

    def _summed(self) -> None:
        self._added += 1
        if self._added == self._needed:
            traffic = (self._work.update + self._work.encode) * self.shard.nbytes
            self.site.work("update", traffic, self._collected)

    def _collected(self) -> None:
        self.version += 1
        self._arrived = self._added = 0
        self._updated(self)
        self._release()

    def _applied(self, worker: int) -> None:
        if self._read[worker] >= 0:
            self._staleness.note(self.version - self._read[worker])
        self.version += 1
        slowest = self.clocks.slowest
        self.clocks.tick(worker)
        self._updated(self)
        if self.clocks.slowest != slowest and self._rule.ahead < math.inf:
            self._release()
        elif worker in self._waiting and self._fresh(worker, self._waiting[worker][0]):
            self._answer(worker, self._waiting.pop(worker)[1])

    def _fresh(self, worker: int, clock: int) -> bool:
        if self._rule.collects:
            return self.version >= clock
        return self.clocks.done[worker] >= clock and self.clocks.slowest >= clock - self._rule.ahead

    def _answer(self, worker: int, reply: Reply) -> None:
        self._read[worker] = self.version
        reply()

    def _release(self) -> None:
        ready = [worker for worker, (clock, _) in self._waiting.items() if self._fresh(worker, clock)]
        for worker, reply in [(worker, self._waiting.pop(worker)[1]) for worker in ready]:
            self._answer(worker, reply)
