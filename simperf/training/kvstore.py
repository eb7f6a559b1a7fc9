"""A key-value store for weights: push a gradient, pull the weight.

One training step of a worker reads as it does in MXNet (T. Chen et al., 2015)::

    for i, parameter in enumerate(parameters):
        kv.push(i, grad)        # the gradient, as soon as it is there
        weights[i] = kv.pull(i) # comes when the store's rule says that it is fresh
    yield kv.wait()

Pushes of one key are added up in any order (addition commutes), so that the servers never wait
for a particular worker.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import simpy

from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.training.compression import DENSE, Codec
from simperf.training.kvworker import KVWorker
from simperf.training.multi_machine import Team, make_routes
from simperf.training.placement import Shard, place_keys
from simperf.training.servers import ServerWork, ShardServer
from simperf.training.sites import Courier, Lane, Site
from simperf.training.staleness import Consistency, Staleness

__all__ = ["KVStore", "StoreOptions"]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store is set up.

    Parameters
    ----------
    rule : Consistency
    placement : str
        Keys to servers, as in `place_keys`.
    slice_size : float
        Keys above this are cut [B].
    reduction : str
        Where a machine adds up first, as in `Route`.
    via_host, spread : bool or None
        As in `make_routes`.
    codec : Codec
    work : ServerWork
    server_bandwidth : float
        Memory of a server [B/s]; 0 takes the part's.
    window : int
        Transfers of a worker under way at one time; 0 for all at once.
    duplex : bool
        The window holds for each direction, not for both together.
    accepts : int
        Transfers of a server under way at one time, each way; 0 for all.
    priority : bool
        Those of a lower key go first (weights that the next forward pass needs first); needs a window.
    message : float
        Time of a message beside the wire [s].
    rate : float
        Rate that one transfer cannot exceed [B/s].
    """

    rule: Consistency = field(default_factory=Consistency)
    placement: str = "balanced"
    slice_size: float = math.inf
    reduction: str = "none"
    via_host: bool | None = None
    spread: bool | None = None
    codec: Codec = DENSE
    work: ServerWork = field(default_factory=ServerWork)
    server_bandwidth: float = 0.0
    window: int = 0
    duplex: bool = True
    accepts: int = 0
    priority: bool = False
    message: float = 0.0
    rate: float = math.inf

    def __post_init__(self) -> None:
        problems = []
        if self.priority and not self.window:
            message = "a priority decides who goes next: it needs a window of transfers"
            problems.append(Problem(message, key="window", expected="1 or more"))
        for key, value in (("window", self.window), ("accepts", self.accepts)):
            if value < 0:
                problems.append(Problem("it is a number of transfers, 0 or more", key=key, value=str(value)))
        if problems:
            raise InputError(problems)


class KVStore:
    """Keys on servers, and the workers that push and pull them.

    Parameters
    ----------
    m : Session
    sizes : sequence of float
        Size of each key [B], in the order in which the forward pass needs them.
    gpus : sequence of str
        The workers' GPUs.
    servers : sequence of str
        Node of each server.
    options : StoreOptions

    Raises
    ------
    InputError
        No workers, no servers, more servers than shards, or a rule without meaning.
    MachineError
        A worker has no way to a server.
    """

    def __init__(
        self,
        m: Session,
        sizes: Sequence[float],
        *,
        gpus: Sequence[str],
        servers: Sequence[str],
        options: StoreOptions | None = None,
    ) -> None:
        self.m, self.sizes, self.servers = m, tuple(sizes), tuple(servers)
        self.options = options = options or StoreOptions()
        if not gpus:
            raise InputError(Problem("at least one worker is needed", key="workers", value="0"))
        self.shards = place_keys(
            self.sizes, servers=len(self.servers), how=options.placement, slice_size=options.slice_size
        )
        self.courier = Courier(m, message=options.message, rate=options.rate)
        self.staleness = Staleness()
        self.updates = 0
        self._sites: dict[tuple[str, float], Site] = {}
        routes = make_routes(
            gpus,
            reduction=options.reduction,
            host_of=m.machine.host_of,
            via_host=options.via_host,
            spread=options.spread,
        )
        codec = options.codec
        sums = options.rule.collects  # else the answer is the weights, and they are dense
        work = ServerWork(
            options.work.add,
            options.work.update,
            options.work.decode + codec.decoding(1.0),
            options.work.encode + (codec.encoding(1.0) if sums and not codec.sparse else 0.0),
        )
        self.tables = [
            ShardServer(
                shard,
                self.site(self.servers[shard.server], options.server_bandwidth),
                options.rule,
                workers=len(routes),
                work=work,
                staleness=self.staleness,
                updated=self._updated,
            )
            for shard in self.shards
        ]
        by_key: dict[int, list[Shard]] = {key: [] for key in range(len(self.sizes))}
        for shard in self.shards:
            by_key[shard.key].append(shard)
        self.by_key = {key: tuple(parts) for key, parts in by_key.items()}
        self.teams = [
            Team(
                number,
                route,
                self.courier,
                sites=self.site,
                codec=codec,
                back=partial(codec.back, workers=options.rule.needed(len(routes))) if sums else float,
                unpack=codec.decoding if sums else lambda nbytes: 0.0,
                window=options.window,
                duplex=options.duplex,
                add=options.work.add,
            )
            for number, route in enumerate(routes)
        ]
        self.workers = [KVWorker(self, team, gpu) for team in self.teams for gpu in team.route.gpus]
        inboxes = [Lane(options.accepts) for _ in self.servers]
        outboxes = [Lane(options.accepts) for _ in self.servers]
        for team in self.teams:
            team.servers, team.nodes = self.tables, self.servers
            team.inboxes, team.outboxes = inboxes, outboxes
            if options.priority:
                team.priority = lambda shard: shard.key
            for door in dict.fromkeys(team.route.door(shard) for shard in self.shards):
                for server in self.servers:
                    self.courier.way(door, server)
                    self.courier.way(server, door)
        self._goal = -1
        self._behind = 0
        self._reached: simpy.Event | None = None

    def site(self, node: str, bandwidth: float = 0.0) -> Site:
        """The memory at `node`, with a bandwidth of its own or the part's [B/s]."""
        key = (node, bandwidth)
        if key not in self._sites:
            self._sites[key] = Site(self.m, node, bandwidth=bandwidth)
        return self._sites[key]

    def server_sites(self) -> tuple[Site, ...]:
        """Memories of the servers, each once."""
        return tuple(dict.fromkeys(table.site for table in self.tables))

    @property
    def dropped(self) -> int:
        """Gradients of shards that came too late for their step."""
        return sum(table.dropped for table in self.tables)

    def reached(self, version: int) -> simpy.Event:
        """Event that comes when every shard has been updated `version` times; one at a time."""
        self._goal, self._reached = version, simpy.Event(self.m.simulation.env)
        self._behind = sum(1 for table in self.tables if table.version < version)
        if not self._behind:
            self._reached.succeed()
        return self._reached

    def _updated(self, table: ShardServer) -> None:
        self.updates += 1
        if table.version == self._goal and self._reached is not None:
            self._behind -= 1
            if not self._behind:
                self._reached.succeed()
