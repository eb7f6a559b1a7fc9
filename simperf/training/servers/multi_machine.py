"""A machine's way to the parameter server and back: the chapter's seven steps, shard by shard.

"Dive into Deep Learning", section 12.7.3: (1) each machine reads data and its GPUs compute
gradients; (2) the gradients are added up inside the machine, (3) go to the CPU, (4) to the server,
which adds them up and (5) sends updated weights back to the CPUs, (6) on to a GPU, (7) and to all GPUs.
Step 1 is the worker's own (`simperf.training.servers.worker`), the sum on the server is `ShardServer`'s; the rest
is here. A `Team` is what one server sees as one worker: a machine, or a single GPU where nothing
is added up inside the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from simperf.errors import InputError, Problem, nearest
from simperf.training.servers.compression import Codec
from simperf.training.servers.placement import Shard
from simperf.training.servers.requests import Buffers, Requests
from simperf.training.servers.shard_server import ShardServer
from simperf.training.servers.transfers import Courier, Lane, Site, Then

__all__ = ["AROUND", "Team", "TeamOptions", "TeamRoute", "make_routes"]

Reduction = Literal["none", "gpu", "cpu", "sharded", "ring", "switch-rings"]

#: where gradients are added up inside a machine
_REDUCTIONS: tuple[str, ...] = get_args(Reduction)

#: those that cut every slice over all GPUs
AROUND = ("ring", "switch-rings")


@dataclass(frozen=True, slots=True)
class TeamRoute:
    """Route of a team's gradients out of its machine.

    Parameters
    ----------
    gpus : tuple of str
        Its GPUs.
    host : str
        CPU of its machine.
    reduction : str
        Where they are added up first: ``"gpu"`` on the team's first GPU, ``"sharded"`` shard by shard on a GPU
        in turn, ``"cpu"`` on the host, ``"ring"`` and ``"switch-rings"`` part by part on all GPUs (see
        `simperf.training.servers.ring_team`), ``"none"`` nowhere (the team is one GPU).
    via_host : bool
        The sum goes to the CPU's memory before the network (steps 3 and 6).
    spread : bool
        Weights go to one GPU and from there to the others (steps 6 and 7), not from the CPU to each.
    """

    gpus: tuple[str, ...]
    host: str
    reduction: str = "none"
    via_host: bool = False
    spread: bool = False

    def root(self, shard: Shard) -> str:
        """Node that adds up a shard inside the machine."""
        if self.reduction == "cpu":
            return self.host
        return self.gpus[shard.index % len(self.gpus) if self.reduction == "sharded" else 0]

    def door(self, shard: Shard) -> str:
        """Node that talks to the servers."""
        return self.host if self.via_host else self.root(shard)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamOptions:
    """Options of a team: how it encodes, adds up, copies and sends.

    Parameters
    ----------
    sites : callable
        From a node to its `Site`.
    codec : Codec
    back : callable
        From the size of a shard to the bytes of the servers' answer [B].
    unpack : callable
        From the size of a shard to the memory traffic of reading the answer on a GPU [B].
    window : int
        Transfers that it has under way at one time; 0 for all.
    duplex : bool
        The window holds for each direction, not for both together.
    connections : int
        Transfers between it and one server under way at one time, each way; 0 for all.
    requests : int
        Slices sent and not answered yet, as in `Requests`; 0 for all.
    handle : float
        Time of the thread that posts them, for posting one and for its answer [s].
    add : float
        Memory traffic of adding up, for each byte [1].
    copiers : int
        Threads that copy for each GPU, from a queue in which the last key goes first and what leaves for the CPU
        last, as in MXNet's engine; 0 for copy engines: to the CPU, from it and to one other GPU, each in turn.
    take : callable, optional
        Takes an answer of so many bytes [B] from the network, then continues.
    coder : Site, optional
        Memory of the machine's CPU, which encodes and decodes what is dense inside the machine; without it the GPUs do.
    """

    sites: Callable[[str], Site]
    codec: Codec
    back: Callable[[float], float]
    unpack: Callable[[float], float]
    window: int = 0
    duplex: bool = True
    connections: int = 0
    requests: int = 0
    handle: float = 0.0
    add: float = 3.0
    copiers: int = 0
    take: Callable[[float, Then], None] | None = None
    coder: Site | None = None


class Team:
    """One worker, as the servers see it.

    Parameters
    ----------
    number : int
        Of the team.
    route : TeamRoute
    courier : Courier
    options : TeamOptions
    """

    def __init__(self, number: int, route: TeamRoute, courier: Courier, options: TeamOptions) -> None:
        codec, coder, back = options.codec, options.coder, options.back
        self.number, self.route, self.courier, self.sites, self.codec = number, route, courier, options.sites, codec
        self.back, self.unpack, self.add, self.coder = back, options.unpack, options.add, coder
        self.inward: Callable[[float], float] = float if coder else codec.wire  # bytes of a gradient inside the machine
        self.homeward: Callable[[float], float] = float if coder else back
        self.out = Lane(options.window)
        self.home = Lane(options.window) if options.duplex else self.out
        self.requests = Requests(options.requests, handle=options.handle, env=courier.env)
        self.connections, self.copiers, self._take = options.connections, options.copiers, options.take
        self.steps = [0]
        self.servers: Sequence[ShardServer] = ()
        self.nodes: Sequence[str] = ()
        self.inboxes: Sequence[Lane] = ()
        self.outboxes: Sequence[Lane] = ()
        self.buffers: Sequence[Buffers] = ()
        self.priority: Callable[[Shard], float] = lambda shard: 0.0
        self.receivers: dict[str, Callable[[Shard], None]] = {}
        self._engines: dict[tuple[str, str], Lane] = {}
        self._lines: dict[tuple[str, int], Lane] = {}
        self._came: dict[int, int] = {}
        self._summed: dict[int, int] = {}

    def gradient(self, gpu: str, shard: Shard, clock: int) -> None:
        """Step 2: the gradient of one GPU is there, and goes where the machine adds it up."""
        self._copy("reduce", gpu, self.route.root(shard), shard, shard.nbytes, partial(self._gathered, shard, clock))

    def _gathered(self, shard: Shard, clock: int) -> None:
        came = self._came.get(shard.index, 0) + 1
        self._came[shard.index] = came % len(self.route.gpus)
        then = partial(self._added, shard, clock)
        if came == 1:
            then()
        else:
            self.sites(self.route.root(shard)).work("add", self.add * shard.nbytes, then)

    def _added(self, shard: Shard, clock: int) -> None:
        count = self._summed.get(shard.index, 0) + 1
        self._summed[shard.index] = count % len(self.route.gpus)
        if count == len(self.route.gpus):
            traffic = 0.0 if self.coder else self.codec.encoding(shard.nbytes)
            self.sites(self.route.root(shard)).work("encode", traffic, partial(self._encoded, shard, clock))

    def _encoded(self, shard: Shard, clock: int) -> None:
        """Step 3: to the CPU, if that is the way."""
        root, door = self.route.root(shard), self.route.door(shard)
        self._copy("to cpu", root, door, shard, self.inward(shard.nbytes), partial(self._outside, shard, clock))

    def _outside(self, shard: Shard, clock: int) -> None:
        """Encode what came dense to the CPU, where the CPU does that."""
        then = partial(self._push, shard, clock)
        if self.coder:
            self.coder.work("encode", self.codec.encoding(shard.nbytes), then)
        else:
            then()

    def _lanes(self, way: str, shard: Shard, port: Lane) -> tuple[Lane, ...]:
        """What a transfer waits for: the connection to the server, the team's window, the server's port."""
        own = self.out if way == "out" else self.home
        if not self.connections:
            return own, port
        return self._lines.setdefault((way, shard.server), Lane(self.connections)), own, port

    def _start(self, lanes: Sequence[Lane], urgency: float, start: Callable[[], None]) -> None:
        """Start a transfer when one lane after the other lets it."""
        if lanes:
            lanes[0].submit(urgency, partial(self._start, lanes[1:], urgency, start))
        else:
            start()

    def _push(self, shard: Shard, clock: int) -> None:
        """Step 4: to the server, when the port's turn comes; it will answer when its weights are fresh enough."""
        door, node = self.route.door(shard), self.nodes[shard.server]

        def start() -> None:
            nbytes, claim = self.codec.wire(shard.nbytes), self.courier.claim()
            self.courier.send(door, node, nbytes, arrived, name=f"push {shard.key}", weight=claim)
            self.requests.sent()

        def arrived() -> None:
            for lane in reversed(lanes):
                lane.free()
            server = self.servers[shard.index]
            server.push(self.number, clock)
            server.pull(self.number, clock + 1, partial(self._reply, shard))

        lanes = self._lanes("out", shard, self.inboxes[shard.server])
        begin = partial(self._start, lanes, self.priority(shard), start)
        self.requests.ask(shard.index, partial(self.buffers[shard.server].take, shard.index, begin))

    def _reply(self, shard: Shard) -> None:
        """Step 5: weights on their way back."""
        door, node = self.route.door(shard), self.nodes[shard.server]

        def start() -> None:
            nbytes, claim = self.back(shard.nbytes), self.courier.claim()
            self.courier.send(node, door, nbytes, arrived, name=f"pull {shard.key}", weight=claim)

        def arrived() -> None:
            for lane in reversed(lanes):
                lane.free()
            self.requests.answered(shard.index, partial(self._answered, shard, door))

        lanes = self._lanes("home", shard, self.outboxes[shard.server])
        self._start(lanes, self.priority(shard), start)

    def _answered(self, shard: Shard, door: str) -> None:
        """Take the answer from the network."""
        then = partial(self._decoded, shard, door)
        if self._take is None:
            then()
        else:
            self._take(self.back(shard.nbytes), then)

    def _decoded(self, shard: Shard, door: str) -> None:
        """Decode the answer, where the CPU does that."""
        if self.coder:
            self.coder.work("decode", self.unpack(shard.nbytes), partial(self._returned, shard, door))
        else:
            self._returned(shard, door)

    def _returned(self, shard: Shard, door: str) -> None:
        """Steps 6 and 7: to one GPU and on to the others, or to each at once."""
        route, nbytes = self.route, self.homeward(shard.nbytes)
        if not route.spread or door != route.host:
            self._spread(shard, door)
            return
        first = route.gpus[shard.index % len(route.gpus) if route.reduction == "sharded" else 0]
        self._copy("to gpu", door, first, shard, nbytes, partial(self._spread, shard, first))

    def _spread(self, shard: Shard, source: str) -> None:
        for gpu in self.route.gpus:
            then = partial(self._landed, shard, gpu)
            self._copy("broadcast", source, gpu, shard, self.homeward(shard.nbytes), then)

    def _copy(self, name: str, source: str, target: str, shard: Shard, nbytes: float, then: Callable[[], None]) -> None:
        """Copy inside the machine, when a copy engine or a thread of the GPU has time for it."""
        if source == target:
            then()
            return
        host, urgency = self.route.host, self.priority(shard)
        if self.copiers:
            key = (target if source == host else source, "")
            urgency = 0.0 if target == host else float(-shard.key)
        else:
            key = (target, "h2d") if source == host else (source, "d2h") if target == host else (source, target)
        engine = self._engines.setdefault(key, Lane(self.copiers or 1))

        def over() -> None:
            engine.free()
            then()

        engine.submit(urgency, lambda: self.courier.send(source, target, nbytes, over, name=name))

    def _landed(self, shard: Shard, gpu: str) -> None:
        traffic = 0.0 if self.coder else self.unpack(shard.nbytes)
        self.sites(gpu).work("decode", traffic, partial(self.receivers[gpu], shard))


def make_routes(
    gpus: Sequence[str],
    *,
    reduction: str,
    host_of: Callable[[str], str],
    via_host: bool | None = None,
    spread: bool | None = None,
) -> tuple[TeamRoute, ...]:
    """Teams of GPUs: those of one machine together if it adds up first, else each on its own.

    Parameters
    ----------
    gpus : sequence of str
    reduction : str
        One of `Reduction`.
    host_of : callable
        From a GPU to the CPU of its machine.
    via_host, spread : bool, optional
        As in `TeamRoute`; by default a machine that adds up first goes by its CPU, and weights are spread by a GPU
        unless the CPU adds up.

    Raises
    ------
    InputError
        No such reduction, or parts around a ring that are not to go by the CPU.
    """
    if reduction not in _REDUCTIONS:
        raise InputError(
            Problem(f"no such reduction{nearest(reduction, _REDUCTIONS)}", key="reduction", value=reduction)
        )
    if reduction in AROUND and (via_host is False or spread is False):
        message = "what goes around the ring leaves by the CPU and comes back part by part"
        raise InputError(
            Problem(
                message,
                key="via_host" if via_host is False else "spread",
                value="no",
                expected="yes, or another reduction",
            )
        )
    teams: dict[str, list[str]] = {}
    for gpu in gpus:
        teams.setdefault(gpu if reduction == "none" else host_of(gpu), []).append(gpu)
    by_host = reduction != "none" if via_host is None else via_host
    by_gpu = reduction in ("gpu", "sharded", *AROUND) if spread is None else spread
    return tuple(TeamRoute(tuple(team), host_of(team[0]), reduction, by_host, by_gpu) for team in teams.values())
