"""The division of a transformer among the ranks of a layout: what each stage computes, sends and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simperf.errors import InputError, Problem, UnknownNameError, nearest_divisors
from simperf.layout import Layout
from simperf.schedules import Schedule, make_schedule
from simperf.training.pipelined.work import StepEnd, StepWork
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel
from simperf.workload.mixed import TRAINING_PRECISIONS, training_precision
from simperf.workload.transformers.parallel import RankPasses, rank_passes
from simperf.workload.transformers.passes import LayerPasses

__all__ = ["divide"]

#: weights of the embedding, which the head has too where both are one
_TIED = "embed.weight"


def divide(model: Dimensions, layout: Layout, strategy: ModelParallel, batch: int) -> StepWork:
    """What the stages of a job do in a step.

    Parameters
    ----------
    model : Dimensions
    layout : Layout
    strategy : ModelParallel
    batch : int
        Samples of a step on all ranks together.

    Raises
    ------
    InputError
        All that does not divide, with what would.
    """
    plan = _plan(layout, strategy, batch)
    parts = _layers_of_parts(model.model.layers, len(plan.path), strategy.stage_layers)
    made = _passes(model, layout, strategy, again=True)
    first = strategy.recompute_layers
    plain = _passes(model, layout, strategy, again=False).block if first else made.block
    blocks = [(made.block,) * (min(first, count) if first else count) for count in parts]
    rest = [(plain,) * (count - len(own)) for count, own in zip(parts, blocks, strict=True)]
    layers = [[*own, *more] for own, more in zip(blocks, rest, strict=True)]
    layers[0].insert(0, made.embedding)
    shares = plan.path[0][0] == plan.path[-1][0]  # whether the first and the last part are on one stage
    layers[-1].append(_without(made.head, _TIED) if made.tied and shares else made.head)
    work = StepWork(plan, tuple(map(tuple, layers)), made.message_nbytes, (), 0.0, made.received)
    sharing = layout.dp * layout.cp if layout.sharding != "none" else 1
    ends = tuple(_end(work, stage, made, strategy, sharing) for stage in range(len(plan.stages)))
    return replace(work, ends=ends, tied=0.0 if shares else made.tied_nbytes)


def _plan(layout: Layout, strategy: ModelParallel, batch: int) -> Schedule:
    """The schedule of a step."""
    each = layout.dp * strategy.microbatch
    if batch < 1 or batch % each:
        message = f"{layout.dp} data-parallel ranks with micro-batches of {strategy.microbatch} do not divide it"
        near = batch // each * each
        expected = " or ".join(str(count) for count in (near, near + each) if count > 0)
        raise InputError(Problem(message, key="batch", value=str(batch), expected=expected))
    chunks = {"chunks": strategy.chunks} if strategy.schedule == "interleaved" else {}
    if strategy.chunks > 1 and not chunks:
        message = f"schedule {strategy.schedule} has none"
        raise InputError(
            Problem(message, key="chunks", value=str(strategy.chunks), expected='schedule = "interleaved"')
        )
    try:
        plan = make_schedule(strategy.schedule, stages=layout.pp, microbatches=batch // each, **chunks)
    except UnknownNameError as error:
        raise InputError(Problem(str(error), key="schedule", value=strategy.schedule)) from None
    if plan.second:
        message = "gradients of two copies of the model are not yet added up"
        raise InputError(
            Problem(message, key="schedule", value=strategy.schedule, expected="1f1b, or another schedule")
        )
    return plan


def _layers_of_parts(layers: int, parts: int, given: Sequence[int]) -> tuple[int, ...]:
    """Layers of each part of the model."""
    if given:
        told, key = ", ".join(map(str, given)), "stage_layers"
        if len(given) != parts:
            message = f"there are {parts} parts of the model"
            raise InputError(Problem(message, key=key, value=told, expected=f"{parts} numbers of layers"))
        if sum(given) != layers or min(given) < 0:
            message = f"the model has {layers} layers, and these are {sum(given)}"
            raise InputError(Problem(message, key=key, value=told, expected=f"numbers of 0 or more that make {layers}"))
        return tuple(given)
    if layers % parts:
        message = f"{parts} parts (stages, and chunks on each) do not divide the {layers} layers of the model"
        near = " or ".join(str(count) for count in nearest_divisors(layers, parts))
        expected = f"{near} parts, or stage_layers = layers of each part"
        raise InputError(Problem(message, key="layout.pp", value=str(parts), expected=expected))
    return (layers // parts,) * parts


def _passes(model: Dimensions, layout: Layout, strategy: ModelParallel, *, again: bool) -> RankPasses:
    """Passes of one rank; `again` says whether layers are computed again as the strategy has it."""
    precision = training_precision(model.precision)
    if not precision.master and model.precision != "fp32":
        known = ", ".join(["fp32", *(name for name, one in TRAINING_PRECISIONS.items() if one.master)])
        message = "weights of a divided model are as narrow as their products, beside a copy in fp32"
        raise InputError(Problem(message, key="precision", value=model.precision, expected=known))
    return rank_passes(
        model.model,
        model.kernels,
        tp=layout.tp,
        sequence_parallel=strategy.sequence_parallel,
        microbatch=strategy.microbatch,
        recompute=strategy.recompute if again else "none",
        precision=precision.matrix,
        scattered=strategy.messages.scattered,
    )


def _end(work: StepWork, stage: int, made: RankPasses, strategy: ModelParallel, sharing: int) -> StepEnd:
    """What a rank of a stage does around its passes, where `sharing` ranks divide the states of its optimizer."""
    layers = [layer for chunk in work.chunks(stage) for layer in work.layers(stage, chunk)]
    names = [layer.name for layer in layers]
    weights = sum(layer.parameters for layer in layers)
    own = -(-weights // sharing)
    embedding, head = made.embedding.name in names, made.head.name in names
    blocks = len(layers) - embedding - head
    return StepEnd(
        begin=(made.clear_gradients(weights),),
        replicated=made.replicated_gradients(blocks, embedding=embedding, head=head),
        norm=made.clipping(own) if strategy.clip else (),
        update=made.update(own),
        gradient=made.gradient_width,
        weight=made.weight_width,
    )


def _without(layer: LayerPasses, name: str) -> LayerPasses:
    """A layer without a weight that another one of its stage has."""
    return replace(layer, weights=tuple(one for one in layer.weights if one.name != name))
