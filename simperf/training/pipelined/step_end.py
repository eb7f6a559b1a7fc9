"""The work of a rank of a stage around its passes: casts before them, the norm of gradients and the update behind."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.layout import Layout
from simperf.training.pipelined.weight_shares import WeightShares
from simperf.training.pipelined.work import StepEnd, StepWork, WeightUnit
from simperf.training.strategies import ModelParallel
from simperf.workload.precision import SINGLE
from simperf.workload.transformers.parallel import RankPasses

__all__ = ["gathered_width", "step_end", "step_ends"]


def gathered_width(made: RankPasses, strategy: ModelParallel) -> float:
    """Bytes of a weight as fully sharded ones are gathered [B]."""
    return SINGLE if strategy.exchange.gathered == "fp32" else made.weight_width


def step_ends(
    work: StepWork,
    made: RankPasses,
    strategy: ModelParallel,
    layout: Layout,
    *,
    units: Sequence[Sequence[WeightUnit]] = (),
    each: bool = False,
) -> tuple[StepEnd, ...]:
    """The work around the passes of each stage, once for stages with the same layers; parameters as of `step_end`."""
    found: dict[tuple[object, ...], StepEnd] = {}
    ends = []
    for stage in range(len(work.plan.stages)):
        own = tuple(units[stage]) if units else ()
        like = (tuple(id(layer) for chunk in work.chunks(stage) for layer in work.layers(stage, chunk)), own)
        if like not in found:
            found[like] = step_end(work, stage, made, strategy, layout, units=own, each=each)
        ends.append(found[like])
    return tuple(ends)


def step_end(
    work: StepWork,
    stage: int,
    made: RankPasses,
    strategy: ModelParallel,
    layout: Layout,
    *,
    units: Sequence[WeightUnit] = (),
    each: bool = False,
) -> StepEnd:
    """The work of a rank of a stage around its passes.

    Parameters
    ----------
    work : StepWork
    stage : int
    made : RankPasses
    strategy : ModelParallel
    layout : Layout
    units : sequence of WeightUnit
        Of the stage, if weights are fully sharded.
    each : bool
        Whether gradients are reduced after each backward pass.
    """
    layers = [layer for chunk in work.chunks(stage) for layer in work.layers(stage, chunk)]
    weights, experts = sum(layer.parameters for layer in layers), sum(layer.of_experts for layer in layers)
    shares = WeightShares.of(layout, work.plan.copies)
    own = (shares if layout.sharding != "none" else WeightShares(1, 1)).largest(weights, experts)
    scaled, fully = 0, layout.sharding == "zero-3"
    if made.gathered_width:
        scaled = shares.largest(sum(sum(one.scaled) for one in layers))
        scaled += shares.largest((others := sum(sum(one.scaled_experts) for one in layers)), others)
    keeps = fully and strategy.exchange.kept == "as-products"
    late = made.late and made.sizes.width < made.gradient_width
    largest = max((one.elements for layer in layers for one in layer.weights), default=0)
    updated = float(largest)  # of one tensor
    if fully:
        flat = max((one.weights / shares.along(one.dimension) for unit in units for one in unit.buckets), default=0.0)
        updated = flat if strategy.exchange.flat else largest / shares.others
    return StepEnd(
        begin=(*(() if each else (made.clear_gradients(weights),)), *made.cast_weights(layers)),
        replicated=made.replicated_gradients(layers),
        norm=made.clipping(own) if strategy.exchange.clip else (),
        update=made.adam.kernels(own, copies=not fully or keeps, scaled=scaled),
        gradient=made.gradient_width,
        weight=gathered_width(made, strategy) if fully else made.weight_width,
        narrow=made.gathered_width,
        cast=made.cast_width,
        state=made.state_width,
        part=made.weight_width if keeps else 0.0,
        late=made.sizes.width if late else 0.0,
        # gradients of weights that are kept in fp32 are cast one by one, and the narrow ones are gone then
        temporary=made.adam.temporary(own, min(own, updated), cast_apart=fully and not keeps),
        joined=made.adam.joined(own),
        widened=largest * made.gradient_width if late else 0.0,
    )
