"""Memory of each stage of a pipeline: from what its layers keep and its rank holds to its peak."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

from simperf.layout import Layout
from simperf.memory import (
    ChunkMemory,
    LayerMemory,
    ParameterBytes,
    StageMemory,
    TensorKind,
    allocated,
    stage_memory,
    state_memory,
    workspace,
)
from simperf.schedules import Schedule
from simperf.workload.precision import element_size
from simperf.workload.transformers.parallel import RankPasses
from simperf.workload.transformers.passes import LayerPasses

__all__ = ["pipeline_memory", "stage_weights"]

Library: TypeAlias = Literal["torch", "transformer-engine"]
_SINGLE = element_size("fp32")


def pipeline_memory(
    plan: Schedule,
    parts: Sequence[Sequence[LayerPasses]],
    passes: RankPasses,
    layout: Layout,
    *,
    libraries: Collection[Library] = (),
    architecture: str = "",
) -> tuple[StageMemory, ...]:
    """Memory of a rank of each stage over a step.

    Parameters
    ----------
    plan : Schedule
    parts : sequence of sequence of LayerPasses
        Layers of each part of the model, in the order of the plan's path; the first has the embedding, the last the
        head.
    passes : RankPasses
        Messages between parts, and bytes of weights, gradients and states.
    layout : Layout
        Sharding, and the ranks that share.
    libraries : collection of str
        Whose matrix products keep a workspace, beside that of PyTorch for the head: see `simperf.memory.workspace`.
    architecture : str
        Of the GPU.

    Examples
    --------
    >>> from simperf.schedules import make_schedule
    >>> from simperf.workload.layer_kernels import LayerKernels
    >>> from simperf.workload.transformers import Transformer
    >>> from simperf.workload.transformers.parallel import rank_passes
    >>> small = Transformer(layers=2, hidden=64, heads=4, vocabulary=1024, sequence=16)
    >>> passes = rank_passes(small, LayerKernels(norm="fused"))
    >>> parts = [(passes.embedding, passes.block), (passes.block, passes.head)]
    >>> plan = make_schedule("1f1b", stages=2, microbatches=4)
    >>> [one.peak.name for one in pipeline_memory(plan, parts, passes, Layout(pp=2))]
    ['B0', 'B1']
    """
    places = {at: part for path, _ in plan.paths for part, at in enumerate(path)}
    found: dict[object, StageMemory] = {}
    stages, last = [], len(parts) - 1
    for stage, order in enumerate(plan.stages):
        numbers = sorted(chunk for at, chunk in places if at == stage)
        own = [places[stage, number] for number in numbers]
        key = (order, tuple((part == 0, part == last, len(parts[part])) for part in own))
        if key not in found:
            layers = [layer for part in own for layer in parts[part]]
            chunks = [_chunk(parts[part], part, len(parts), passes.message_nbytes) for part in own]
            resident = _resident(layers, passes, layout)
            products: set[Library] = {*libraries, "torch"} if last in own else {*libraries}
            resident["workspace"] = sum(allocated(workspace(one, architecture)) for one in products)
            found[key] = stage_memory(order, chunks, resident)
        stages.append(found[key])
    return tuple(stages)


def stage_weights(layers: Sequence[LayerPasses], *, tied: bool) -> int:
    """Weights of a stage's layers; a head that has the embedding's weights counts them where it has no embedding.

    Parameters
    ----------
    layers : sequence of LayerPasses
    tied : bool
        Whether the head has the weights of the embedding.
    """
    total = sum(layer.parameters for layer in layers)
    if tied and {"embedding", "head"} <= {layer.name for layer in layers}:
        head = next(layer for layer in layers if layer.name == "head")
        total -= sum(one.elements for one in head.weights if one.name == "embed.weight")
    return total


def _chunk(layers: Sequence[LayerPasses], part: int, parts: int, message: float) -> ChunkMemory:
    last = part == parts - 1
    return ChunkMemory([_layer(one) for one in layers], 0.0 if last else message, message if part else 0.0)


def _layer(one: LayerPasses) -> LayerMemory:
    kept = sum(allocated(tensor.nbytes) for tensor in one.kept)
    return LayerMemory(one.name, kept, one.temporary_forward, one.temporary_backward)


def _resident(layers: Sequence[LayerPasses], passes: RankPasses, layout: Layout) -> dict[TensorKind, float]:
    """What a rank of a stage holds for the whole step, by kind [B]."""
    master = _SINGLE if passes.weight_width < _SINGLE else 0.0
    each = ParameterBytes(passes.weight_width, passes.gradient_width, master, passes.state_width - master)
    weights = stage_weights(layers, tied=passes.tied)
    found = state_memory(weights, each, sharding=layout.sharding, over=layout.dp * layout.cp)
    placeholders = {one.name: one.nbytes for layer in layers for one in layer.placeholders}
    if placeholders:
        found["gradient placeholders"] = sum(map(allocated, placeholders.values()))
    return found
