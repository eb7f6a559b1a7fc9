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
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import simpy

from simperf.engine.items import Marker
from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import wait
from simperf.execution.session import Session
from simperf.time_use import RankClass
from simperf.training.servers.compression import DENSE, Codec
from simperf.training.servers.local_rings import LocalRings
from simperf.training.servers.multi_machine import AROUND, Team, TeamOptions, TeamRoute, make_routes
from simperf.training.servers.placement import Shard, place_keys
from simperf.training.servers.requests import Buffers
from simperf.training.servers.ring_team import RingTeam, ring_groups
from simperf.training.servers.shard_server import ServerWork, ShardServer
from simperf.training.servers.staleness import Consistency, Staleness
from simperf.training.servers.symmetry import sharers
from simperf.training.servers.transfers import Courier, Lane, Site, Then
from simperf.training.stack import ServerTransport, Serving, Stack
from simperf.training.strategies import Servers

__all__ = ["KVStore", "KVWorker", "StoreOptions"]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options of a `KVStore`.

    Parameters
    ----------
    rule : Consistency
    placement : str
        Keys to servers, as in `place_keys`.
    reduction : str
        Where a machine adds up first, as in `TeamRoute`.
    via_host, spread : bool or None
        As in `make_routes`.
    codec : Codec
    codec_on : str
        Where workers encode and decode: on the GPU, or on the CPU of their machine, to which gradients go dense then.
    work : ServerWork
    transport : ServerTransport
    serving : Serving

    Raises
    ------
    InputError
        Options that do not go together.
    """

    rule: Consistency = field(default_factory=Consistency)
    placement: str = "balanced"
    reduction: str = "none"
    via_host: bool | None = None
    spread: bool | None = None
    codec: Codec = DENSE
    codec_on: str = "gpu"
    work: ServerWork = field(default_factory=ServerWork)
    transport: ServerTransport = field(default_factory=ServerTransport)
    serving: Serving = field(default_factory=Serving)

    @classmethod
    def of(cls, strategy: Servers, stack: Stack) -> StoreOptions:
        """Those of a strategy and its stack."""
        update = strategy.update
        return cls(
            rule=strategy.consistency,
            placement=strategy.placement,
            reduction=strategy.reduction,
            via_host=strategy.via_host,
            spread=strategy.spread,
            codec=strategy.compression.made(),
            codec_on=strategy.compression.on,
            work=ServerWork(update.add, 0.0 if update.on_workers else update.apply),
            transport=stack.transport,
            serving=stack.serving,
        )

    def __post_init__(self) -> None:
        problems = []
        if self.codec_on not in ("gpu", "cpu"):
            problems.append(Problem("gpu or cpu is expected", key="codec_on", value=self.codec_on))
        if self.serving.buffers and (self.rule.mode != "synchronous" or self.rule.backup):
            message = "a server keeps a slice until all workers have sent it: they must be synchronous, without backup"
            problems.append(Problem(message, key="buffers", value=str(self.serving.buffers)))
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
    alike : bool
        All workers do the same at the same time: of machines that are wired alike one is simulated for all.

    Attributes
    ----------
    copies : int
        Machines that each simulated one stands for.

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
        alike: bool = False,
    ) -> None:
        self.m, self.sizes, self.servers = m, tuple(sizes), tuple(servers)
        self.options = options = options or StoreOptions()
        if not gpus:
            raise InputError(Problem("at least one worker is needed", key="workers", value="0"))
        transport, serving = options.transport, options.serving
        self.shards = place_keys(
            self.sizes,
            servers=len(self.servers),
            how=options.placement,
            slice_size=serving.slice_size or math.inf,
        )
        uneven = 0.0 if options.rule.collects else transport.uneven
        self.courier = Courier(m, message=transport.message, rate=transport.rate or math.inf, uneven=uneven)
        recorder = m.simulation.recorder
        self.staleness = Staleness(
            None if recorder is None else lambda age: recorder.counter("servers", "staleness", m.now, age)
        )
        self.updates = 0
        self._sites: dict[tuple[str, float], Site] = {}
        routes = make_routes(
            gpus,
            reduction=options.reduction,
            host_of=m.machine.host_of,
            via_host=options.via_host,
            spread=options.spread,
        )
        together = len(routes)
        if uneven and together > 1:
            m.notes.append(
                "workers that do not wait for each other get uneven shares of a port "
                f"(spread {uneven:g}, by the seed); with uneven = 0 equal workers stay in step"
            )
        self._sharers = self._share(routes) if alike else {}
        self.copies = together if self._sharers else 1
        self._others = [route.host.rpartition("/")[0] for route in routes[1:]] if self._sharers else []
        machines = routes
        if self._sharers:
            routes = routes[:1]
            for name, count in self._sharers.items():
                m.simulation.network.set_capacity(name, m.machine.resources[name] / count)
        codec = options.codec
        sums = options.rule.collects  # else the answer is the weights, and they are dense
        if options.codec_on == "cpu" and any(
            route.door(shard) != route.host for route in routes for shard in self.shards
        ):
            message = "the CPU encodes what goes through it: the machine must add up first, or via_host be yes"
            raise InputError(Problem(message, key="codec_on", value="cpu"))
        self.tables = [
            ShardServer(
                shard,
                self.site(self.servers[shard.server], options.serving.server_memory),
                options.rule,
                workers=len(routes),
                copies=self.copies,
                work=self._work(shard),
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
            self._team(
                number, route, back=partial(codec.back, workers=options.rule.needed(together)) if sums else float
            )
            for number, route in enumerate(routes)
        ]
        self.workers = [KVWorker(self, team, gpu) for team in self.teams for gpu in team.route.gpus]
        for team in self.teams:
            for place, gpu in enumerate(team.route.gpus):
                like = tuple(route.gpus[place] for route in machines) if self._sharers else (gpu,)
                m.ranks[gpu] = RankClass(like, "dp")
        inboxes = [Lane(options.transport.accepts) for _ in self.servers]
        outboxes = [Lane(options.transport.accepts) for _ in self.servers]
        self._buffers = [Buffers(options.serving.buffers) for _ in self.servers]
        for team in self.teams:
            team.servers, team.nodes = self.tables, self.servers
            team.inboxes, team.outboxes, team.buffers = inboxes, outboxes, self._buffers
            if options.transport.priority:
                team.priority = lambda shard: shard.key
            for door in dict.fromkeys(team.route.door(shard) for shard in self.shards):
                for server in self.servers:
                    self.courier.way(door, server)
                    self.courier.way(server, door)
        self._goal = -1
        self._behind = 0
        self._reached: simpy.Event | None = None

    def _work(self, shard: Shard) -> ServerWork:
        """What a server does with a shard, its codec included; a sparse sum is encoded as it is added up."""
        work, codec, nbytes = self.options.work, self.options.codec, shard.nbytes
        if not nbytes:
            return work
        encodes = self.options.rule.collects and not codec.sparse
        encode = codec.encoding(nbytes) / nbytes if encodes else 0.0
        return ServerWork(work.add, work.update, work.decode + codec.decoding(nbytes) / nbytes, work.encode + encode)

    def _team(self, number: int, route: TeamRoute, *, back: Callable[[float], float]) -> Team:
        """A worker as the servers see it, with what moves its gradients."""
        options = self.options
        on_cpu = options.codec_on == "cpu"
        given = TeamOptions(
            sites=self.site,
            codec=options.codec,
            back=back,
            unpack=options.codec.decoding if options.rule.collects else lambda nbytes: 0.0,
            window=options.transport.window,
            duplex=options.transport.duplex,
            connections=options.transport.connections,
            requests=options.transport.requests,
            handle=options.serving.handle if number < (options.serving.handlers or number + 1) else 0.0,
            add=options.work.add,
            copiers=options.serving.copiers,
            take=partial(self._take, route.host),
            coder=self.site(route.host, options.serving.server_memory) if on_cpu else None,
        )
        if options.reduction not in AROUND:
            return Team(number, route, self.courier, given)
        groups = ring_groups(self.m.machine, route.gpus, reduction=options.reduction)
        rings = [LocalRings(self.m, group, grouped=options.serving.grouped) for group in groups]
        return RingTeam(number, route, self.courier, given, rings=rings)

    def _take(self, host: str, nbytes: float, then: Then) -> None:
        """Take an answer of so many bytes [B] from the network, then continue."""
        traffic = self.options.serving.take * nbytes
        if traffic:
            self.site(host, self.options.serving.server_memory).work("take", traffic, then)
        else:
            then()

    def _share(self, routes: Sequence[TeamRoute]) -> dict[str, int]:
        """Machines that share each link with the first one; none if they are not taken together.

        A server adds up in the order of arrival: slices that come at one instant must not be of several keys. So does
        a GPU of a machine that adds up slice by slice on a GPU in turn, where slices of several keys come at one
        instant: which one is first is then a matter of rounding, and differs from machine to machine.
        """
        options, transport, serving = self.options, self.options.transport, self.options.serving
        in_turn = transport.connections == 1 and len(set(self.servers)) == len(self.servers)
        free = not (options.work.add or options.work.decode or options.codec.decode or options.codec.scatter)
        limited = transport.accepts or transport.requests or serving.buffers or serving.handle
        apart = options.reduction in ("none", "sharded") or self.m.simulation.own_times
        if len(routes) < 2 or options.rule.mode != "synchronous" or limited or apart:
            return {}
        return (sharers(self.m.machine, routes, self.servers) or {}) if in_turn or free else {}

    def settle(self) -> None:
        """Count the bytes of the machines that were not simulated, once, at the end."""
        network, first = self.m.simulation.network, f"{self.teams[0].route.host.rpartition('/')[0]}/"
        for name, nbytes in network.moved.items() if self.copies > 1 else ():
            others = self._sharers.get(name, 1) - 1
            if others:
                network.count({name: others * nbytes})
            elif first in name:
                network.count({name.replace(first, f"{home}/"): nbytes for home in self._others})
        self.courier.carried *= self.copies

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
        self._buffers[table.shard.server].free(table.shard.index)
        if table.version == self._goal and self._reached is not None:
            self._behind -= 1
            if not self._behind:
                self._reached.succeed()


@dataclass(slots=True)
class _Answer:
    """Shards of a key that have not come back yet, and the event of the whole weight."""

    left: int
    weight: simpy.Event


class KVWorker:
    """A GPU's view of the store: the `kv` of a training loop.

    Parameters
    ----------
    store : KVStore
    team : Team
    gpu : str
    """

    def __init__(self, store: KVStore, team: Team, gpu: str) -> None:
        self.store, self.team, self.gpu = store, team, gpu
        self.turn = 0
        self._pushed: dict[int, simpy.Event] = {}  # this step's weights, to come
        self._open: dict[int, deque[_Answer]] = {}  # answers on their way, oldest first
        self._outstanding = 0
        self._all: simpy.Event | None = None
        team.receivers[gpu] = self._got

    @property
    def step(self) -> int:
        """Number of the step that the worker is at."""
        return self.team.steps[self.turn]

    def push(self, key: int, grad: Marker | simpy.Event | None = None) -> None:
        """Send the gradient of a key, once a step; the server answers it with the weight.

        Parameters
        ----------
        key : int
        grad : Marker or simpy.Event, optional
            What says that the gradient is there, such as a marker recorded after its kernel; now, if left out.

        Raises
        ------
        ProgramError
            The key was pushed before in this step, or there is none such.
        """
        if key not in self.store.by_key:
            raise ProgramError(f"the store has no key {key}; one of 0 to {len(self.store.sizes) - 1} is expected")
        if key in self._pushed:
            raise ProgramError(f"key {key} is pushed twice in one step by {self.gpu}; call next() between steps")
        answer = _Answer(len(self.store.by_key[key]), simpy.Event(self.store.m.simulation.env))
        self._pushed[key] = answer.weight
        self._open.setdefault(key, deque()).append(answer)
        self._outstanding += 1
        event = grad.done if isinstance(grad, Marker) else grad
        if event is None or event.callbacks is None:
            self._send(key, self.step)
        else:
            step = self.step
            event.callbacks.append(lambda _: self._send(key, step))

    def pull(self, key: int) -> simpy.Event:
        """The event of a key's weight: it comes when the weight is on the GPU, fresh enough for the next step.

        Raises
        ------
        ProgramError
            The key's gradient was not pushed in this step.
        """
        if key not in self._pushed:
            raise ProgramError(f"key {key} is pulled by {self.gpu} before its gradient is pushed; use push() first")
        return self._pushed[key]

    def wait(self) -> Any:
        """A verb: wait until all weights are there whose gradients were pushed."""
        env = self.store.m.simulation.env
        self._all = simpy.Event(env) if self._outstanding else None
        return wait(self._all or simpy.Timeout(env, 0.0), why="wait: weights")

    def next(self) -> int:
        """Continue to the next step; returns its number.

        With backup workers, a team that came late continues to the step that the others are at.
        """
        self._pushed = {}
        self.turn += 1
        if self.turn == len(self.team.steps):
            ahead = min(table.version for table in self.store.tables) if self.store.options.rule.backup else 0
            self.team.steps.append(max(self.team.steps[-1] + 1, ahead))
        return self.step

    def leave(self) -> None:
        """Stop: the others no longer wait for this worker."""
        for table in self.store.tables:
            table.leave(self.team.number)

    def _send(self, key: int, step: int) -> None:
        for shard in self.store.by_key[key]:
            self.team.gradient(self.gpu, shard, step)

    def _got(self, shard: Shard) -> None:
        answer = self._open[shard.key][0]
        answer.left -= 1
        if answer.left:
            return
        self._open[shard.key].popleft()
        answer.weight.succeed(self.store.m.now)
        self._outstanding -= 1
        if self._all is not None and not self._outstanding:
            self._all.succeed()
            self._all = None
