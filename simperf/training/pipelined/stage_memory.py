"""Memory of each stage of a divided model: from what its layers keep and its rank holds to its peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from simperf.layout import Layout
from simperf.memory import (
    Allocator,
    ChunkMemory,
    LayerMemory,
    ParameterBytes,
    StageMemory,
    TakenBytes,
    TensorKind,
    allocated,
    stage_memory,
    state_memory,
    taken,
    workspace,
)
from simperf.memory.allocator import LARGE_SEGMENT
from simperf.training.pipelined.host_memory import offloaded_layers, without_states
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.sharded_memory import flat_layers, sharded_layers
from simperf.training.pipelined.weight_shares import WeightShares
from simperf.training.pipelined.work import StepWork
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.precision import SINGLE
from simperf.workload.transformers.parallel.adam import MOMENTS
from simperf.workload.transformers.passes import LayerPasses

__all__ = ["Library", "fullest_stages", "libraries_of", "work_memory"]

Library: TypeAlias = Literal["torch", "transformer-engine"]
#: schedules of which stages differ in the forward passes ahead of their first backward pass alone
_STAGGERED = ("1f1b", "gpipe", "interleaved")


def libraries_of(kernels: LayerKernels) -> tuple[Library, ...]:
    """Libraries of the blocks' matrix products; Transformer Engine is known by its placeholders."""
    return ("transformer-engine",) if kernels.placeholders == "by-shape" else ("torch",)


def work_memory(
    work: StepWork,
    layout: Layout,
    pacing: Pacing,
    *,
    libraries: Sequence[Library] = (),
    architecture: str = "",
    allocator: Allocator = "none",
    stages: Sequence[int] | None = None,
) -> tuple[StageMemory, ...]:
    """Memory of a rank of each stage over a step, of that whose experts get most rows.

    Parameters
    ----------
    work : StepWork
        Layers of each part of the model, the schedule, and bytes of messages, weights and gradients.
    layout : Layout
        Sharding, and the ranks that share.
    pacing : Pacing
    libraries : sequence of str
        Whose matrix products keep a workspace, beside that of PyTorch for the head: see `simperf.memory.workspace`.
    architecture : str
        Of the GPU.
    allocator : str
        Of its memory. With segments of fixed sizes passes leave blocks of single tensors, in which tensors of all
        gradients find no place if they are larger; with those that expand, and with none named, what they leave is one
        block.
    stages : sequence of int, optional
        Those that are asked for; all by default.
    """
    if work.rows:
        work = work.at(work.rows.index(max(work.rows)))
    found: dict[object, StageMemory] = {}
    held = []
    for stage in range(work.stages) if stages is None else stages:
        order = _order(work, stage)
        numbers = work.chunks(stage)
        own = [work.layers(stage, number) for number in numbers]
        chunks = tuple(_chunk(work, stage, number, layout, pacing, allocator) for number in numbers)
        if (order, chunks) not in found:
            layers = [layer for chunk in own for layer in chunk]
            resident = _resident(layers, work, stage, layout, pacing)
            head = any(layer.name == "head" for layer in layers)
            products: set[Library] = {*libraries, "torch"} if head else {*libraries}
            if products:
                resident["workspace"] = sum(allocated(workspace(one, architecture)) for one in products)
            apart: tuple[TensorKind, ...] = ("gradients", "gathered weights") if work.units else ()
            # what a host updates, or what goes through the GPU piece by piece, holds next to nothing there
            end = work.ends[stage]
            update = allocated(end.temporary) if work.offload.states == "gpu" else 0.0
            apart_of_all = _without_block(end.joined, layers) if allocator == "fixed-segments" else 0.0
            joined = (update, apart_of_all) if end.joined and update else (0.0, 0.0)
            parts = _reduced(layers, work, stage, layout) if work.units and not pacing.each else 0.0
            made = stage_memory(
                order, chunks, resident, update=update - joined[0], reduced=parts, joined=joined, apart=apart
            )
            if work.units and not pacing.each:
                made = replace(made, apart=(*made.apart, ("buckets", _parts(work, stage, layout))))
            found[order, chunks] = made
        held.append(found[order, chunks])
    return tuple(held)


def fullest_stages(work: StepWork) -> tuple[int, ...]:
    """Stages of which one holds most: of those with like layers, that with most micro-batches in flight.

    So it is where all stages have passes in one order, but for how many forward passes go ahead of the first backward
    pass; of other schedules all stages are given.
    """
    if work.plan.name not in _STAGGERED:
        return tuple(range(work.stages))
    found: dict[object, int] = {}
    in_flight = work.plan.in_flight
    for stage in range(work.stages):
        like = tuple(tuple(id(one.forward) for one in work.layers(stage, chunk)) for chunk in work.chunks(stage))
        if like not in found or in_flight[stage] > in_flight[found[like]]:
            found[like] = stage
    return tuple(found.values())


def _without_block(tensors: Sequence[float], layers: Sequence[LayerPasses]) -> float:
    """What tensors take that are larger than each one of the passes, whose blocks are free at the update [B].

    Tensors that live inside of a block's pass alone are not larger than all that is kept and all of the head.
    """
    left = {one.nbytes for layer in layers for one in layer.kept}
    left |= {one.nbytes or 0.0 for layer in layers if layer.tensors for one in layer.tensors.backward}
    left |= {one.nbytes or 0.0 for layer in layers if layer.tensors for one in layer.tensors.forward}
    largest = max(left, default=0.0)
    return sum(allocated(one) for one in tensors if one > max(largest, LARGE_SEGMENT))


def _parts(work: StepWork, stage: int, layout: Layout) -> float:
    """A rank's parts of gradients that were added up whole: made on the stream of reductions, up to the next step."""
    shares = WeightShares.of(layout, work.plan.copies)
    buckets = (one for unit in work.units[stage] for one in unit.buckets)
    return sum(one.weights * work.ends[stage].gradient / shares.along(one.dimension) for one in buckets)


def _order(work: StepWork, stage: int) -> tuple[tuple[str, int, int], ...]:
    """Passes of a stage, one behind the other; of those that are done beside each other the forward pass goes first."""
    found: list[tuple[str, int, int]] = []
    for turn in work.plan.turns(stage):
        found += turn[:2]
        if len(turn) > 2:
            found[-1] = ("BW", *found[-1][1:])
    return tuple(found)


def _chunk(
    work: StepWork, stage: int, number: int, layout: Layout, pacing: Pacing, allocator: Allocator
) -> ChunkMemory:
    part = work.part(stage, number)
    sends, returns = part < len(work.parts) - 1, part > 0
    passes = work.layers(stage, number)
    known = {id(one): _layer(one, allocator) for one in {id(one): one for one in passes}.values()}
    layers = [known[id(one)] for one in passes]
    units = [unit for unit in work.units[stage] if unit.bucket.chunk == number] if work.units else []
    if units:
        layers = list(
            sharded_layers(layers, units, work.ends[stage], WeightShares.of(layout, work.plan.copies), pacing)
        )
    end = work.ends[stage]
    if late := end.late:
        behind = [late * sum(one.parameters for one in passes[index + 1 :]) for index in range(len(passes))]
        layers = [
            one._replace(backward_beside=(*one.backward_beside, ("gradients", nbytes))) if nbytes else one
            for one, nbytes in zip(layers, behind, strict=True)
        ]
    if away := work.offloaded(stage, number):
        layers = offloaded_layers(layers, away)
    if units and pacing.flat:
        layers = list(flat_layers(layers, [one.parameters for one in passes], units, end.weight))
    if late:  # each gradient is copied and added, when the backward pass of all layers is over
        whole = late * sum(one.parameters for one in passes)
        beside: tuple[tuple[TensorKind, float], ...] = (("gradients", whole),)
        layers.insert(0, LayerMemory("gradients", 0.0, 0.0, allocated(end.widened), 0.0, backward_beside=beside))
    return ChunkMemory(tuple(layers), work.message if sends else 0.0, work.message if returns else 0.0)


def _layer(one: LayerPasses, allocator: Allocator) -> LayerMemory:
    kept = sum(allocated(tensor.nbytes) for tensor in one.kept)
    left = sum(allocated(tensor.nbytes) for tensor in one.left)
    return LayerMemory(
        one.name,
        kept,
        one.temporary_forward,
        one.temporary_backward,
        left,
        one.temporary_inputs,
        one.temporary_weights,
        taken=taken(one.tensors, allocator) if one.tensors is not None else TakenBytes(),
    )


def _reduced(layers: Sequence[LayerPasses], work: StepWork, stage: int, layout: Layout) -> float:
    """Bytes of whole gradients that a rank gives back when they are reduced, once a step."""
    weights, experts = sum(layer.parameters for layer in layers), sum(layer.of_experts for layer in layers)
    parts = WeightShares.of(layout, work.plan.copies).part(weights, experts)
    return (weights - parts) * work.ends[stage].gradient


def _resident(
    layers: Sequence[LayerPasses], work: StepWork, stage: int, layout: Layout, pacing: Pacing
) -> dict[TensorKind, float]:
    """Memory that a rank of a stage holds for the whole step, by kind [B]."""
    end = work.ends[stage]
    states = min(end.state, MOMENTS * SINGLE)
    each = ParameterBytes(end.weight, end.gradient, end.state - states, states)
    weights, experts = sum(layer.parameters for layer in layers), sum(layer.of_experts for layer in layers)
    scaled = sum(sum(layer.scaled) + sum(layer.scaled_experts) for layer in layers)
    if work.units:  # the part of a rank is in fp32, or has a copy that is but in pure training; gradients come and go
        own, copy = (end.part, end.state - states) if end.part else (SINGLE, 0.0)
        each = ParameterBytes(own, 0.0, copy, states)
    shares = WeightShares.of(layout, work.plan.copies)
    found = state_memory(weights - experts, each, sharding=layout.sharding, over=shares.others)
    if experts:
        for kind, nbytes in state_memory(experts, each, sharding=layout.sharding, over=shares.experts).items():
            found[kind] += nbytes
    if scaled and end.cast:
        found["weights"] += scaled * end.cast
    if work.units and not pacing.each:  # whole, up to the last backward pass
        found["gradients"] = weights * end.gradient
    if frozen := sum(one.nbytes for layer in layers for one in layer.frozen):
        found["weights"] = found.get("weights", 0.0) + frozen / (shares.others if work.units else 1)
    placeholders = {one.name: one.nbytes for layer in layers for one in layer.placeholders}
    if placeholders:
        found["gradient placeholders"] = sum(map(allocated, placeholders.values()))
    updated = max((one.elements for one in end.update if isinstance(one, Op)), default=0.0)
    return without_states(found, updated, work.offload)
