"""The process of a rank of a pipeline: its passes in the order of the schedule, with what goes between them.

Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021. Each
dimension communicates on a stream of its own: collectives between operations of a layer on ``"tensor"``, those of
gradients and weights on ``"data"``, messages between stages on one for each pair of neighbouring parts.

Not modelled: tokens that come from the host, and the loss that goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from simperf.engine.device import Device
from simperf.engine.items import Marker
from simperf.engine.kernel import Kernel
from simperf.execution import Program, collective, irecv, isend, item, launch, synchronize, wait
from simperf.execution.process_group import ProcessGroup
from simperf.execution.thread import Launch, Verb
from simperf.execution.works import Communication
from simperf.layout.layout import DIMENSION_WORDS
from simperf.schedules import Pass
from simperf.training.pipelined.closed import ClosedBlock, ClosedLayer, Sequel, in_blocks, launch_block, never_closed
from simperf.training.pipelined.communicators import INSIDE, NORM, REPLICAS, Dimension, Key
from simperf.training.pipelined.groups import ClassGroup
from simperf.training.pipelined.layer_graphs import GraphSync, LayerGraphs
from simperf.training.pipelined.noise_draws import RankNoise
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.paired_passes import TURN, side_by_side
from simperf.training.pipelined.stage_time import Hold, StageTime, StepMark
from simperf.training.pipelined.work import Boundary, LayerBucket, StepWork
from simperf.workload.op import Op
from simperf.workload.transformers.passes import Await, Item, Sync

__all__ = ["StageProcess", "dimensions_of_streams"]

#: streams of the collectives along each dimension
STREAMS: Mapping[Key, str] = {
    **DIMENSION_WORDS,  # type: ignore[dict-item]
    "replicas": "replicas",
    "expert replicas": "expert replicas",
    "norm": "data",
}

Launched: TypeAlias = Launch | Sync | Await
Steps: TypeAlias = Generator[Any, Any, None]


def dimensions_of_streams(groups: Collection[Key | Boundary]) -> tuple[tuple[str, str], ...]:
    """Streams of a rank that has these groups, each with the dimension along which it communicates.

    The norm of the gradients has the stream of data parallelism, and counts for it.
    """
    found = {STREAMS[one]: counted(one) for one in groups if isinstance(one, str) and one != "norm"}
    return tuple((found | {one.stream: "pp" for one in groups if isinstance(one, Boundary)}).items())


def counted(key: Key) -> Dimension:
    """The dimension that the time of a collective counts for."""
    return "dp" if key == "replicas" else "edp" if key == "expert replicas" else key


@dataclass(eq=False, slots=True)
class StageProcess:
    """A rank of a pipeline.

    Parameters
    ----------
    rank : int
        The first of all that it is simulated for.
    device : Device
    stage : int
    work : StepWork
    groups : mapping of Key or Boundary to ProcessGroup
        That it communicates in; none where it is the only rank.
    buckets : sequence of LayerBucket
        Of its gradients.
    pacing : Pacing
    kernel : callable
        The kernel of an operation within a pass.
    speed : float
        How many times as fast the device is [1].
    steps : int
    close : callable, optional
        The closed pass over a layer, of its items and what they are within; None where it is open.
    in_turn : bool
        Layers are closed only as long as neither gradients nor weights travel.
    noise : RankNoise, optional
        What makes its kernels vary.
    graphs : LayerGraphs, optional
        Those of its blocks; None where kernels are launched one by one.
    """

    rank: int
    device: Device
    stage: int
    work: StepWork
    groups: Mapping[Key | Boundary, ProcessGroup]
    buckets: Sequence[LayerBucket]
    pacing: Pacing
    kernel: Callable[[Op, str], Kernel]
    speed: float
    steps: int
    close: Callable[[tuple[Item, ...], str], ClosedLayer | None] = never_closed
    in_turn: bool = False
    noise: RankNoise | None = None
    graphs: LayerGraphs | None = None
    spent: StageTime = field(default_factory=StageTime)
    _split: bool = field(init=False)
    _beside: bool = field(default=False, init=False)
    _ready: dict[tuple[int, int], list[LayerBucket]] = field(default_factory=dict, init=False)
    _inside: dict[Dimension, ClassGroup] = field(init=False)
    _closed: list[ClosedLayer] = field(default_factory=list, init=False)
    _blocks: dict[tuple[ClosedLayer, ...], list[Sequel]] = field(default_factory=dict, init=False)
    _messages: dict[tuple[str, str, int], Verb | None] = field(default_factory=dict, init=False)
    _launched: dict[tuple[int, str], tuple[Launched, ...]] = field(default_factory=dict, init=False)
    _running: dict[str, tuple[Communication, StageTime, Dimension]] = field(default_factory=dict, init=False)
    _gathered: dict[tuple[int, int], list[tuple[Communication, Dimension]]] = field(default_factory=dict, init=False)
    _reduced: list[tuple[Communication, Dimension]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._split, self._inside = self.work.plan.split, self.inside
        for bucket in self.buckets:
            self._ready.setdefault((bucket.chunk, bucket.ready), []).append(bucket)

    def program(self) -> Program:
        """The process."""
        turns, last = list(self.work.plan.turns(self.stage)), self.work.plan.final(self.stage)
        for _ in range(self.steps) if self.noise is None else self.noise.steps(self.steps):
            yield from self._items(self.work.ends[self.stage].begin, "update")
            coming = yield from self._receive(turns[0])
            for index, turn in enumerate(turns):
                now, coming = coming, []
                ahead = turns[index + 1] if index + 1 < len(turns) else ()
                if self.pacing.messages:
                    coming = yield from self._receive(ahead)
                yield from self._await(now)
                yield from self._turn(turn, final=not last.isdisjoint(turn))
                yield from self._send(turn)
                if not self.pacing.messages:
                    coming = yield from self._receive(ahead)
            yield from self._end()
            yield launch(StepMark(self.device.env, self.spent), self.device)
        yield synchronize(self.device)

    def layer(self, items: tuple[Item, ...], within: str) -> Steps:
        """A pass over a layer, kernel by kernel."""
        return self._items(items, within)

    @property
    def inside(self) -> dict[Dimension, ClassGroup]:
        """Groups in which layers communicate."""
        found = {dimension: self.groups.get(dimension) for dimension in INSIDE}
        return {dimension: group for dimension, group in found.items() if isinstance(group, ClassGroup)}

    # Passes ----------------------------------------------------------------------------

    def _turn(self, passes: tuple[Pass, ...], *, final: bool) -> Steps:
        """A pass, or two beside each other."""
        if len(passes) == 1:
            yield from self._play(passes[0], final=final)
            return
        both = self._play(passes[0], final=False), self._play(passes[1], final=final, whole=len(passes) > 2)
        if self.groups.keys().isdisjoint(INSIDE):  # neither has anything to hide
            for each in both:
                yield from each
            return
        self._beside = True
        yield from side_by_side(*both)
        self._beside = False

    def _play(self, one: Pass, *, final: bool, whole: bool = False) -> Steps:
        """A pass over the layers of a chunk; after the `final` one gradients of a layer are ready.

        With `whole`, those of weights are part of a backward pass, where others are split.
        """
        layers = self.work.layers_of(self.stage, one)
        if one.kind == "F":
            for index, layer in enumerate(layers):
                yield from self._before(one, index)
                yield from self._over(layer.forward, "forward", str(one))
                yield from self._behind(one, index, final=final)
            yield from self._flush(str(one))
            return
        for index in reversed(range(len(layers))):
            layer = layers[index]
            both = layer.input_gradients if self._split and not whole else layer.backward
            yield from self._before(one, index)
            yield from self._over(layer.weight_gradients if one.kind == "W" else both, "backward", str(one))
            yield from self._behind(one._replace(kind="W") if whole else one, index, final=final)
        yield from self._flush(str(one))

    def _before(self, one: Pass, index: int) -> Steps:
        """Wait for weights of a layer that are gathered since the last step."""
        for weights, dimension in self._gathered.pop((one.chunk, index), ()) if one.kind == "F" else ():
            yield from self._flush(str(one))
            yield from self._hold([weights], dimension)

    def _behind(self, one: Pass, index: int, *, final: bool) -> Steps:
        """Reduce the gradients that a layer's pass has completed."""
        complete = one.kind == ("W" if self._split else "B") and (final or self.pacing.each)
        for bucket in self._ready.get((one.chunk, index), ()) if self.pacing.gradients and complete else ():
            yield from self._flush(str(one))
            yield from self._reduce(bucket)

    def _over(self, items: tuple[Item, ...], within: str, name: str) -> Steps:
        """A pass over a layer: put off until `_flush` if it is closed."""
        travelling = self.in_turn and (self._reduced or self._gathered)
        closed = None if travelling or self._beside else self.close(items, within)
        if closed is not None:
            self._closed.append(closed)
            return
        yield from self._flush(name)
        yield from self._items(items, within)

    def _flush(self, name: str) -> Steps:
        """Launch the closed layers that were put off."""
        if not self._closed:
            return
        stream, key = self.device.stream(), tuple(self._closed)
        if key not in self._blocks:
            self._blocks[key] = in_blocks(key, stream.depth)
        self._closed.clear()
        groups = self._inside
        for sequel in self._blocks[key]:
            yield from launch_block(ClosedBlock(name, sequel, 0.0, self.spent, groups), stream)

    def _items(self, items: tuple[Item, ...], within: str) -> Steps:
        for one in self._kernels(items, within):
            if isinstance(one, Launch):
                assert isinstance(one.kernel, Kernel)
                kernel = one.kernel if self.noise is None else self.noise.kernel(one.kernel)
                self.spent.launched += kernel.time
                yield one if self.noise is None else launch(kernel, self.device)
            elif isinstance(one, Await):
                yield launch(Hold(*self._running.pop(one.label)), self.device)
            else:
                dimension = cast(Dimension, one.dimension)
                launched = one.launch if isinstance(one, GraphSync) else None
                work = yield from self._collective(dimension, one.name, one.nbytes, launched=launched)
                if one.waits and self._beside:
                    yield TURN
                if one.waits:
                    yield from self._hold([work], dimension)
                else:
                    self._running[one.label] = work, self.spent, dimension

    def _kernels(self, items: tuple[Item, ...], within: str) -> tuple[Launched, ...]:
        """Items with launches of kernels for operations, without collectives of one rank."""
        key = (id(items), within)
        if key not in self._launched:
            alone = {one.label for one in items if isinstance(one, Sync) and one.dimension not in self.groups}
            found = tuple(
                launch(self.kernel(one, within), self.device) if isinstance(one, Op) else one
                for one in items
                if isinstance(one, Op) or one.label not in alone
            )
            self._launched[key] = found if self.graphs is None else self.graphs.nodes(items, found)
        return self._launched[key]

    def _collective(
        self, key: Key, name: str, nbytes: float, *, after: Marker | None = None, launched: float | None = None
    ) -> Generator[Any, Any, Communication]:
        """Begin a collective on its stream, after what the compute stream has been given, or after an event."""
        where: dict[str, Any] = {"stream": STREAMS[key], "device": self.device, "after": after, "launch": launched}
        work: Communication = yield collective(self.groups[key], name, nbytes, async_op=True, **where)
        self.spent.watch(work, counted(key), key)
        return work

    # Messages --------------------------------------------------------------------------

    def _receive(self, passes: Iterable[Pass]) -> Generator[Any, Any, list[Communication]]:
        found: list[Communication] = []
        for one in passes:
            message = self._message("receives", one)
            if message is not None:
                work: Communication = yield message
                self.spent.watch(work, "pp", self.work.place(self.stage, one).receives)
                found.append(work)
        return found

    def _await(self, messages: Iterable[Communication]) -> Steps:
        for message in messages:
            yield from self._hold([message], "pp")
            if self.pacing.synchronous:
                yield wait(message, why="wait: message")
            yield from self._items(self.work.received, "forward")

    def _send(self, passes: Iterable[Pass]) -> Steps:
        for message in (self._message("sends", one) for one in passes):
            if message is not None:
                yield message

    def _message(self, way: Literal["receives", "sends"], one: Pass) -> Verb | None:
        """The message that is received before a pass, or sent after it; the same for each micro-batch."""
        key = (way, one.kind, one.chunk)
        if key not in self._messages:
            edge: Boundary | None = getattr(self.work.place(self.stage, one), way)
            verb, other = (irecv, 0) if way == "receives" else (isend, 1)
            self._messages[key] = edge and verb(
                self.work.message, other, group=self.groups[edge], stream=edge.stream, device=self.device
            )
        return self._messages[key]

    # The end of a step -----------------------------------------------------------------

    def _reduce(self, bucket: LayerBucket) -> Steps:
        """Add up the gradients of a bucket over the ranks that have copies of its weights."""
        after, dimension, copies = None, bucket.dimension, REPLICAS[bucket.dimension]
        nbytes = bucket.weights * self.work.ends[self.stage].gradient
        if dimension in self.groups:
            name = "reduce-scatter" if self.pacing.sharded else "all-reduce"
            after = yield from self._collective(dimension, name, nbytes)
            self._reduced.append((after, dimension))
        if copies in self.groups:
            nbytes /= self.groups[dimension].size if after else 1
            work = yield from self._collective(copies, "all-reduce", nbytes, after=after)
            self._reduced.append((work, dimension))

    def _end(self) -> Steps:
        """Add up gradients, find their norm, update the weights and gather them."""
        end = self.work.ends[self.stage]
        if not self.pacing.gradients:
            for bucket in self.buckets:
                yield from self._reduce(bucket)
        for work, dimension in self._reduced:
            yield from self._hold([work], dimension)
        self._reduced.clear()
        yield from self._items(end.replicated, "update")
        if "pp" in self.groups:  # the embedding that is the head too
            yield from self._hold([(yield from self._collective("pp", "all-reduce", self.work.tied))], "pp")
        yield from self._items(end.norm, "update")
        if end.norm and "norm" in self.groups:
            yield from self._hold([(yield from self._collective("norm", "all-reduce", NORM))], "norm")
        if end.norm:
            yield item(self.device)  # total_norm.item()
        yield from self._update()
        if self.pacing.sharded:
            yield from self._gather()

    def _update(self) -> Steps:
        return self._items(self.work.ends[self.stage].update, "update")

    def _gather(self) -> Steps:
        """Gather the weights that the other data-parallel ranks have updated."""
        end = self.work.ends[self.stage]
        for bucket in reversed(self.buckets):
            dimension: Dimension = bucket.dimension
            if dimension not in self.groups:
                continue
            work = yield from self._collective(dimension, "all-gather", end.gathered(bucket))
            if self.pacing.weights:
                for index in bucket.layers:
                    self._gathered.setdefault((bucket.chunk, index), []).append((work, dimension))
            else:
                yield from self._hold([work], dimension)

    def _hold(self, works: Iterable[Communication], dimension: Dimension) -> Steps:
        """Let the compute stream wait for communication."""
        for work in works:
            yield launch(Hold(work, self.spent, dimension), self.device)
