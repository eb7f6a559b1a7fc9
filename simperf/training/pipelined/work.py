"""The work of a pipeline's stages: layers of each part of the model, messages between parts, buckets of gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from simperf.collectives.relayed import TokenKernel
from simperf.schedules import Pass, Schedule
from simperf.training.offload import Offload
from simperf.training.pipelined.load_draws import LoadDraws
from simperf.workload.op import Op
from simperf.workload.transformers.passes import Item, LayerPasses, Sync

__all__ = ["Boundary", "LayerBucket", "Place", "StepEnd", "StepWork", "WeightUnit", "layer_buckets"]


class Boundary(NamedTuple):
    """Neighbouring parts of a model between which messages go: activations forward, their gradients backward.

    Parameters
    ----------
    backward : bool
        Whether gradients go.
    copy : int
        Copy of the model, 0 or 1.
    part : int
        The earlier one of the two parts.
    """

    backward: bool
    copy: int
    part: int

    @property
    def stream(self) -> str:
        """Stream on which its messages run."""
        second = "'" if self.copy else ""
        return f"pipeline {'B' if self.backward else 'F'}{self.part}{second}"


class Place(NamedTuple):
    """The place of a pass in the model.

    Parameters
    ----------
    part : int
        Of the model, counted along its way.
    receives, sends : Boundary or None
        Messages before and after it; None where the neighbour is on the same stage, or there is none.
    """

    part: int
    receives: Boundary | None
    sends: Boundary | None


class LayerBucket(NamedTuple):
    """Weights of layers of one part that travel together, and their gradients.

    Parameters
    ----------
    chunk : int
        Of the stage.
    ready : int
        Index of the layer whose backward pass completes it.
    layers : tuple of int
        Indices of its layers.
    weights : int
        Number of weights that are trained; 0 where all are frozen.
    experts : bool
        Whether they are those of experts, whose copies are on fewer ranks.
    scaled : int
        How many of the weights a recipe multiplies in a narrower precision.
    frozen : float
        Weights that are not trained, and are gathered with these [B].
    """

    chunk: int
    ready: int
    layers: tuple[int, ...]
    weights: int
    experts: bool = False
    scaled: int = 0
    frozen: float = 0.0

    @property
    def dimension(self) -> Literal["dp", "edp"]:
        """Along which they are added up."""
        return "edp" if self.experts else "dp"


class WeightUnit(NamedTuple):
    """Layers of a chunk whose weights are gathered at one time, and given back together.

    Weights of experts that ranks have different ones of are gathered over the ranks that have copies of them.

    Parameters
    ----------
    bucket : LayerBucket
        Its layers, and its gradients, which are reduced together.
    reshard : bool
        Whether its weights are given back after the forward pass.
    spread : tuple of Op
        Copy of gathered weights from the buffer to their tensors.
    pack : tuple of Op
        Copy of gradients to the buffer that is reduced.
    experts : LayerBucket, optional
        Weights and gradients of its experts, if these are on fewer ranks; `bucket` is without them then.
    pack_experts : tuple of Op
        Copy of their gradients to the buffer that is reduced.
    """

    bucket: LayerBucket
    reshard: bool
    spread: tuple[Op, ...]
    pack: tuple[Op, ...]
    experts: LayerBucket | None = None
    pack_experts: tuple[Op, ...] = ()

    @property
    def buckets(self) -> tuple[LayerBucket, ...]:
        """Its gradients in the order in which they are gathered; they are reduced in the other one."""
        return (self.bucket,) if self.experts is None else (self.bucket, self.experts)


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The work of a rank before the passes of a step, and after them.

    Parameters
    ----------
    begin : tuple of Item
        Before the first pass.
    replicated : tuple of Item
        The sum of gradients of weights that each tensor-parallel rank has, after those of data-parallel ranks.
    norm : tuple of Item
        The norm of its gradients; empty without clipping.
    update : tuple of Item
        Clipping and the optimizer.
    gradient : float
        Bytes of a gradient as it travels [B].
    weight : float
        Bytes of a weight as it is gathered [B].
    narrow : float
        The same of one that a recipe multiplies in a narrower precision, where that is gathered; 0: as the others [B].
    cast : float
        What a rank holds of such a weight beside `weight`, or less than that [B].
    state : float
        Bytes of what the optimizer keeps of a weight, with its copy in fp32 where it is narrower [B].
    part : float
        Bytes of a weight of the part that a rank has of fully sharded ones, beside `state` [B].
    late : float
        Bytes of a gradient that stays up to the end of a backward pass, before it is added to a wider one [B].
    temporary : float
        What the update holds beside gradients and states [B].
    joined : tuple of float
        Tensors that the update makes of joined gradients; `temporary` is what there is of them at a time [B].
    widened : float
        The largest gradient's copy that is as wide as the gradients that it is added to [B].
    """

    begin: tuple[Item, ...] = ()
    replicated: tuple[Item, ...] = ()
    norm: tuple[Item, ...] = ()
    update: tuple[Item, ...] = ()
    gradient: float = 4.0
    weight: float = 2.0
    narrow: float = 0.0
    cast: float = 0.0
    state: float = 12.0
    part: float = 0.0
    late: float = 0.0
    temporary: float = 0.0
    joined: tuple[float, ...] = ()
    widened: float = 0.0

    def gathered(self, bucket: LayerBucket) -> float:
        """Size of the weights of a bucket as they are gathered [B]."""
        narrower = self.weight - self.narrow if self.narrow else 0.0
        return self.weight * bucket.weights - narrower * bucket.scaled + bucket.frozen


@dataclass(frozen=True, slots=True)
class StepWork:
    """The work of a step on all stages.

    Parameters
    ----------
    plan : Schedule
    parts : tuple of tuple of LayerPasses
        Layers of each part of the model, in the order of the forward pass; the first has the embedding, the last the
        head.
    message : float
        Of the activations of a micro-batch between two parts, for one rank [B].
    ends : tuple of StepEnd
        Of each stage.
    tied : float
        Gradients that the first and the last stage add up, of an embedding that is the head too [B].
    received : tuple of Item
        What a rank does with a message before it computes.
    rows : tuple of int
        Rows that the experts of each rank get that they are spread over; none where all get as many.
    kernel : TokenKernel, optional
        What exchanges tokens between ranks that experts are spread over, in place of NCCL.
    others : tuple of tuple of tuple of LayerPasses
        Parts on the ranks behind the first of those that the experts are spread over, where rows are unequal.
    units : tuple of tuple of WeightUnit
        Of each stage, those of a chunk in the order of the forward pass; none where each rank has all weights of its
        stage.
    offload : Offload
        What ranks hold in the memory of their hosts.
    draws : LoadDraws
        Layers by the loads of their experts, where these change; `parts` have the largest.
    captured : bool
        Whether each pass over a block is a replay of a graph.
    """

    plan: Schedule
    parts: tuple[tuple[LayerPasses, ...], ...]
    message: float
    ends: tuple[StepEnd, ...]
    tied: float = 0.0
    received: tuple[Item, ...] = ()
    rows: tuple[int, ...] = ()
    kernel: TokenKernel | None = None
    others: tuple[tuple[tuple[LayerPasses, ...], ...], ...] = ()
    units: tuple[tuple[WeightUnit, ...], ...] = ()
    offload: Offload = field(default_factory=Offload)
    draws: LoadDraws = field(default_factory=LoadDraws)
    captured: bool = False
    _places: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for copy, (path, _) in enumerate(self.plan.paths):
            for part, at in enumerate(path):
                self._places[at] = copy, part

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return len(self.plan.stages)

    def part(self, stage: int, chunk: int) -> int:
        """The part of the model that a chunk of a stage is."""
        return self._places[stage, chunk][1]

    def layers(self, stage: int, chunk: int) -> tuple[LayerPasses, ...]:
        """Layers of a chunk of a stage."""
        return self.parts[self.part(stage, chunk)]

    def layers_of(self, stage: int, one: Pass) -> tuple[LayerPasses, ...]:
        """Layers of a chunk of a stage in a pass, with the loads that their experts have in its micro-batch."""
        if not self.draws.parts:
            return self.layers(stage, one.chunk)
        return self.draws.layers(self.part(stage, one.chunk), one.microbatch)

    def every_layer(self, stage: int, chunk: int) -> Iterator[LayerPasses]:
        """Layers of a chunk of a stage, with each load of their experts."""
        yield from self.layers(stage, chunk)
        yield from self.draws.every(self.part(stage, chunk))

    def all_layers(self, stage: int) -> Iterator[LayerPasses]:
        """Layers of all chunks of a stage, with each load of their experts."""
        for chunk in self.chunks(stage):
            yield from self.every_layer(stage, chunk)

    def offloaded(self, stage: int, chunk: int) -> list[int]:
        """Indices of a chunk's layers whose activations go to the host's memory."""
        blocks = [index for index, one in enumerate(self.layers(stage, chunk)) if one.is_block]
        return blocks[: self.offload.layers]

    def chunks(self, stage: int) -> list[int]:
        """Chunks of a stage."""
        return sorted(chunk for at, chunk in self._places if at == stage)

    def holders(self, stage: int) -> tuple[int, ...]:
        """Stages that have the same parts of the model as a stage, itself among them."""
        if self.plan.copies == 1:
            return (stage,)
        own = self._held(stage)
        return tuple(one for one in range(self.stages) if self._held(one) == own)

    def _held(self, stage: int) -> list[int]:
        return sorted(part for (at, _), (_, part) in self._places.items() if at == stage)

    def at(self, place: int) -> StepWork:
        """The work of the rank of a place among those that the experts are spread over."""
        return replace(self, parts=self.others[place - 1]) if place and self.others else self

    def place(self, stage: int, one: Pass) -> Place:
        """The place of a pass of a stage in the model."""
        copy, part = self._places[stage, one.chunk]
        path = self.plan.paths[copy][0]

        def edge(backward: bool, earlier: int) -> Boundary | None:
            inside = 0 <= earlier < len(path) - 1
            return Boundary(backward, copy, earlier) if inside and path[earlier][0] != path[earlier + 1][0] else None

        if one.kind == "F":
            return Place(part, edge(False, part - 1), edge(False, part))
        if one.kind == "B":
            return Place(part, edge(True, part), edge(True, part - 1))
        return Place(part, None, None)

    def edges(self) -> Iterator[tuple[Boundary, int, int]]:
        """All edges with the stages of sender and receiver."""
        for copy, (path, _) in enumerate(self.plan.paths):
            for part, ((here, _), (there, _)) in enumerate(pairwise(path)):
                if here != there:
                    yield Boundary(False, copy, part), here, there
                    yield Boundary(True, copy, part), there, here

    def syncs(self, stage: int) -> Iterator[Sync]:
        """All collectives in the passes of a stage."""
        for chunk in self.chunks(stage):
            for layer in self.every_layer(stage, chunk):
                for items in (layer.forward, layer.backward, layer.input_gradients, layer.weight_gradients):
                    yield from (item for item in items if isinstance(item, Sync))
        end = self.ends[stage]
        for items in (end.begin, end.replicated, end.norm, end.update, self.received):
            yield from (item for item in items if isinstance(item, Sync))


def layer_buckets(chunk: int, layers: Sequence[LayerPasses], size: float, gradient: float) -> list[LayerBucket]:
    """Buckets of gradients, the first one ready first: layers from the last one on, until a bucket is full.

    Gradients of experts have buckets of their own.

    Parameters
    ----------
    chunk : int
    layers : sequence of LayerPasses
    size : float
        At which a bucket is closed [B]; infinite for one bucket.
    gradient : float
        Bytes of a gradient [B].

    Examples
    --------
    >>> from simperf.workload.transformers.dimensions import Weight
    >>> layers = [LayerPasses("block", (), (), (), (), (), 0.0, 0.0, (Weight("w", (10,)),))] * 3
    >>> [(one.ready, one.layers) for one in layer_buckets(0, layers, 80.0, 4.0)]
    [(1, (2, 1)), (0, (0,))]
    """
    found: list[LayerBucket] = []
    for experts in (False, True):
        inside: list[int] = []
        weights = scaled = 0
        for index in reversed(range(len(layers))):
            inside.append(index)
            one = layers[index]
            weights += one.of_experts if experts else one.parameters - one.of_experts
            scaled += sum(one.scaled_experts if experts else one.scaled)
            if weights and (weights * gradient >= size or index == 0):
                found.append(LayerBucket(chunk, index, tuple(inside), weights, experts, scaled))
                inside, weights, scaled = [], 0, 0
    return sorted(found, key=lambda one: -one.ready)
