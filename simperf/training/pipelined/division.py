"""The division of a transformer among the ranks of a layout: what each stage computes, sends and keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import NamedTuple

from simperf.collectives.relayed import TokenKernel
from simperf.errors import InputError, Problem, UnknownNameError, nearest_divisors
from simperf.layout import Layout
from simperf.schedules import SCHEDULES, Schedule, make_schedule, options_of
from simperf.training.offload import Offload
from simperf.training.pipelined.layer_graphs import refuse_uncapturable
from simperf.training.pipelined.load_draws import LoadDraws, Parts
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.refusals import (
    batches_of_schedule,
    keys_of_files,
    refuse_flat_base,
    refuse_idle_bucket,
    refuse_idle_layers,
    refuse_idle_split,
    refuse_kept_weights,
    refuse_offload,
    refuse_scattered_experts,
    together,
)
from simperf.training.pipelined.step_end import gathered_width, step_ends
from simperf.training.pipelined.weight_units import UnitBytes, weight_units
from simperf.training.pipelined.work import StepWork, WeightUnit
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel
from simperf.workload.mixed import TRAINING_PRECISIONS, training_precision
from simperf.workload.product_recipe import RECIPES, product_recipe
from simperf.workload.routing import Routing
from simperf.workload.transformers.flops import Recomputation
from simperf.workload.transformers.parallel import RankPasses, RankPrecision, Spread, rank_passes
from simperf.workload.transformers.passes import LayerPasses
from simperf.workload.tuning import Trained

__all__ = ["divide", "pacing_of"]

#: passes of ranks that are kept: layouts that are searched differ in few of them
MOST_KEPT = 512
#: plans of schedules that are kept, which have up to a million passes each
PLANS_KEPT = 16
#: weights of the embedding, which the head has too where both are one
_TIED = "embed.weight"


@keys_of_files()
def divide(
    model: Dimensions,
    layout: Layout,
    strategy: ModelParallel,
    batch: int,
    *,
    architecture: str = "",
    offload: Offload | None = None,
    seed: int = 0,
) -> StepWork:
    """The work of the stages of a job in a step.

    Parameters
    ----------
    model : Dimensions
    layout : Layout
    strategy : ModelParallel
    batch : int
        Samples of a step on all ranks together.
    architecture : str
        Of the GPUs, whose units decide what a recipe of narrow products casts.
    offload : Offload, optional
        What ranks hold in the memory of their hosts.
    seed : int
        By which each layer's experts have one of several loads in each micro-batch.

    Raises
    ------
    InputError
        All that does not divide, with what would.
    """
    part = _PartOfRank.of(layout, strategy)
    passes = cache(partial(_passes, model, part))
    loads = strategy.routing.loads(model.model.experts) if model.model.experts else (strategy.routing,)

    def spread(routing: Routing, place: int = 0, *, gates: bool = False) -> Spread:
        return Spread(layout.ep, layout.etp, routing, place, layout.cp, strategy.context_exchange, gates)

    def of_rank() -> tuple[RankPrecision, RankPasses]:
        numbers = _rank_precision(model, layout, strategy, architecture)
        return numbers, passes(numbers, strategy.recompute, spread(loads[0]))

    (plan, counts), _, _, _, (numbers, made) = together(
        partial(_parts_of_plan, model.model.layers, layout, strategy, batch),
        partial(refuse_scattered_experts, model, layout),
        partial(refuse_flat_base, model, strategy),
        partial(refuse_kept_weights, model, strategy),
        of_rank,
    )
    shares = any(
        path[0][0] == plan.path[-1][0] for path, _ in plan.paths
    )  # whether one stage has the first and last part
    experts = made.sizes.experts
    uneven = model.model.experts > 0 and experts.uneven and len(loads) == 1

    def on(place: int, routing: Routing = loads[0]) -> Parts:
        """Layers of all parts on the rank of a place among those that the experts are spread over."""
        own = spread(routing, place, gates=len(loads) > 1)

        def block(index: int, number: int) -> RankPasses:
            again = not strategy.recompute_layers or index < strategy.recompute_layers
            wide = number < model.kernels.wide_first or number >= model.model.layers - model.kernels.wide_last
            precision = replace(numbers, recipe=None) if wide else numbers
            return passes(precision, strategy.recompute if again else "none", own)

        return _parts(passes(numbers, strategy.recompute, own), block, counts, whole=made.tied and shares)

    drawn = [replace(made.sizes, routing=load).experts for load in loads] if len(loads) > 1 else []
    largest = max(range(len(loads)), key=lambda number: max(drawn[number].of_places)) if drawn else 0
    parts = [on(one.fullest, load) for one, load in zip(drawn, loads, strict=bool(drawn))] or [on(0)]
    work = StepWork(plan, parts[largest], made.message_nbytes, (), 0.0, made.received)
    if plan.copies > 1 and any(len(work.holders(stage)) != plan.copies for stage in range(work.stages)):
        message = (
            "stages are expected that have the same parts of all copies of the model: their gradients are added up"
        )
        raise InputError(Problem(message, key="schedule", value=strategy.schedule, expected="such as dualpipe"))
    refuse_offload(offload or Offload(), plan, counts, layout)
    refuse_uncapturable(model, layout, strategy, plan, offload or Offload())
    fully, each = layout.sharding == "zero-3", _reduces_each(layout, strategy)
    units = _units(work, made, strategy, apart=layout.spreads_experts) if fully else ()
    ends = step_ends(work, made, strategy, layout, units=units, each=each)
    return replace(
        work,
        ends=ends,
        tied=0.0 if shares else made.tied_nbytes,
        rows=experts.of_places if uneven else (),
        kernel=TokenKernel(experts.copies, strategy.routing.exchange_blocks) if experts.copies else None,
        others=tuple(on(place) for place in range(1, layout.ep)) if uneven else (),
        units=units,
        offload=offload or Offload(),
        draws=LoadDraws(tuple(parts), plan.microbatches, seed) if drawn else LoadDraws(),
        captured=model.kernels.captured == "layers",
    )


def _parts(
    made: RankPasses, block: Callable[[int, int], RankPasses], counts: Sequence[int], *, whole: bool
) -> tuple[tuple[LayerPasses, ...], ...]:
    """Layers of each part of the model.

    Parameters
    ----------
    made : RankPasses
        Of the embedding and the head.
    block : callable
        Passes of a block, by its number in its part and in the model.
    counts : sequence of int
        Blocks of each part.
    whole : bool
        Whether the head leaves out the embedding's weights, which its stage has.
    """
    layers: list[list[LayerPasses]] = []
    number = 0
    for count in counts:
        part = []
        for index in range(count):
            part.append(block(index, number).numbered(number))
            number += 1
        layers.append(part)
    layers[0].insert(0, made.embedding)
    last = block(counts[-1], number - 1)
    for depth in range(made.sizes.model.mtp):
        join, *others = last.ahead
        # the embedding's weights are there once
        layers[-1] += [_without(join, _TIED) if whole or depth or made.sizes.model.tied else join, *others]
    layers[-1].append(_without(made.head, _TIED) if whole else made.head)
    return tuple(map(tuple, layers))


def pacing_of(layout: Layout, strategy: ModelParallel) -> Pacing:
    """Overlaps of the ranks of a job, and waits of their processes."""
    return Pacing(
        gradients=strategy.exchange.bucket > 0.0 or layout.sharding == "zero-3",
        weights=strategy.exchange.overlap_weights,
        messages=strategy.messages.overlap,
        synchronous=strategy.messages.synchronous,
        sharded=layout.sharding != "none",
        each=_reduces_each(layout, strategy),
        prefetch=strategy.exchange.prefetch,
        flat=strategy.exchange.flat,
        stays=strategy.exchange.reshard == "never" or layout.pp > 1,
    )


def _reduces_each(layout: Layout, strategy: ModelParallel) -> bool:
    """Whether gradients are reduced after the backward pass of each micro-batch."""
    chosen = strategy.exchange.reduce
    fully = layout.sharding == "zero-3" and (chosen == "each" or (chosen == "auto" and layout.pp == 1))
    return fully or layout.sharding == "zero-2"


def _parts_of_plan(
    layers: int, layout: Layout, strategy: ModelParallel, batch: int
) -> tuple[Schedule, tuple[int, ...]]:
    """The schedule of a step, and the blocks of each part of the model."""
    if _takes_chunks(strategy.schedule):  # whose parts are known before it is made
        _layers_of_parts(layers, layout.pp * strategy.chunks, strategy.stage_layers)
    plan = _plan(layout, strategy, batch)
    counts = _layers_of_parts(layers, len(plan.path), strategy.stage_layers)
    together(
        partial(refuse_idle_layers, strategy, counts),
        partial(refuse_idle_split, layout, strategy, plan),
        partial(refuse_idle_bucket, layout, strategy, plan),
    )
    return plan, counts


def _plan(layout: Layout, strategy: ModelParallel, batch: int) -> Schedule:
    """The schedule of a step."""
    each = layout.dp * strategy.microbatch
    if batch < 1 or batch % each:
        message = f"{layout.dp} data-parallel ranks with micro-batches of {strategy.microbatch} do not divide it"
        near = batch // each * each
        expected = " or ".join(str(count) for count in (near, near + each) if count > 0)
        raise InputError(Problem(message, key="batch", value=str(batch), expected=expected))
    chunks = {"chunks": strategy.chunks} if _takes_chunks(strategy.schedule) else {}
    if strategy.chunks > 1 and not chunks and strategy.schedule in SCHEDULES:
        message = f"schedule {strategy.schedule} has none"
        known = " or ".join(f'"{name}"' for name in SCHEDULES if _takes_chunks(name))
        raise InputError(Problem(message, key="chunks", value=str(strategy.chunks), expected=f"schedule = {known}"))
    runs, count = strategy.exchange.runs, batch // each
    if runs > 1 and layout.pp == 1:
        message, expected = "has no effect without a pipeline", "layout.pp of 2 or more"
        raise InputError(Problem(message, key="pipeline_runs", value=str(runs), expected=expected))
    if count % runs:
        message = f"{count} micro-batches of each data-parallel rank are not divided by it"
        expected = " or ".join(map(str, nearest_divisors(count, runs)))
        raise InputError(Problem(message, key="pipeline_runs", value=str(runs), expected=expected))
    try:
        with batches_of_schedule(each * runs):
            plan = _schedule(strategy.schedule, layout.pp, count // runs, runs, **chunks)
    except UnknownNameError as error:
        raise InputError(Problem(str(error), key="schedule", value=strategy.schedule)) from None
    if plan.copies > 1 and layout.sharding == "zero-3":
        message = f"weights of two copies of the model, as schedule {strategy.schedule} has them, are not gathered"
        raise InputError(
            Problem(message, key="layout.sharding", value=layout.sharding, expected='"zero-1" or "zero-2"')
        )
    return plan


def _takes_chunks(schedule: str) -> bool:
    """Whether a schedule takes a number of parts of the model on each stage (`chunks`)."""
    return schedule in SCHEDULES and "chunks" in options_of(schedule)


@lru_cache(maxsize=PLANS_KEPT)
def _schedule(name: str, stages: int, microbatches: int, runs: int, **options: int) -> Schedule:
    found = make_schedule(name, stages=stages, microbatches=microbatches, **options)
    if runs > 1 and found.copies > 1:
        message = f"a pipeline of schedule {name}, with two copies of the model, is filled once a step"
        raise InputError(Problem(message, key="pipeline_runs", value=str(runs), expected="1, or another schedule"))
    return found.repeated(runs) if runs > 1 else found


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


def _rank_precision(
    model: Dimensions, layout: Layout, strategy: ModelParallel, architecture: str = ""
) -> RankPrecision:
    """Precision of a rank's numbers, and the recipe of its products.

    Raises
    ------
    InputError
        Weights are wider than their products, or an option has no effect.
    """
    precision, kernels = training_precision(model.precision), model.kernels
    pure = precision.weights == precision.states == precision.matrix != "fp32"
    if not (precision.master or pure) and model.precision != "fp32":
        played = [
            name for name, one in TRAINING_PRECISIONS.items() if one.master or one.weights == one.states != "fp32"
        ]
        message = "weights of a divided model are as narrow as their products"
        raise InputError(
            Problem(message, key="precision", value=model.precision, expected=", ".join(["fp32", *played]))
        )
    if pure and layout.sharding == "zero-3" and strategy.exchange.kept == "fp32":
        message = "weights that ranks share and gather are kept in fp32"
        expected = f'{precision.matrix}-master, or kept_precision = "as-products"'
        raise InputError(Problem(message, key="precision", value=model.precision, expected=expected))
    made = RankPrecision.of(precision.matrix, kernels, architecture, pure=pure)
    problems = []
    for key, count in (("wide_first", kernels.wide_first), ("wide_last", kernels.wide_last)):
        if count and (made.recipe is None or not 0 < count < model.model.layers):
            message = "has no effect: all blocks are as wide" if count > 0 else "a number of blocks is expected"
            expected = f"0 to {model.model.layers - 1} with product_precision, or 0"
            problems.append(Problem(message, key=key, value=str(count), expected=expected))
    narrow = strategy.exchange.gathered == "fp8"
    if narrow and (made.recipe is None or not made.recipe.gathers_weights):
        known = ", ".join(name for name in RECIPES if product_recipe(name).gathers_weights)
        message = "weights travel in the precision of their products, with one factor for each matrix"
        problems.append(
            Problem(message, key="gathered_precision", value="fp8", expected=f"product_precision = one of {known}")
        )
    if model.adapters.base == "narrow" and made.recipe is None:
        message, expected = "products are as wide as the weights", f"as-products, or one of {', '.join(RECIPES)}"
        problems.append(Problem(message, key="frozen_precision", value="narrow", expected=expected))
    if model.adapters and made.recipe is not None:
        if layout.sharding == "zero-3":
            message = "frozen weights that ranks share are gathered as wide as products in 16 bits read them"
            expected = "none or zero-1, or no product_precision"
            problems.append(Problem(message, key="layout.sharding", value="zero-3", expected=expected))
        for key, value in (("gathered_precision", narrow and "fp8"), ("frozen_precision", model.adapters.base)):
            if value not in (False, "as-products", "narrow"):
                message = "frozen weights do not travel" if narrow else "frozen weights have one narrow precision"
                expected = "as-products, or no product_precision"
                problems.append(Problem(message, key=key, value=str(value), expected=expected))
    if problems:
        raise InputError(problems)
    if model.adapters and made.recipe is not None:
        return replace(made, recipe=made.recipe.of_frozen())
    if made.recipe is not None and (narrow or layout.sharding == "zero-3"):  # nobody keeps whole weights
        each = "gathered-each" if layout.sharding == "zero-3" else "gathered"
        weights = each if narrow else "pass"
        made = replace(made, recipe=replace(made.recipe, weights=weights))
    return made


class _PartOfRank(NamedTuple):
    """A rank's part of each layer, as far as layout and strategy decide it; those of many layouts are equal."""

    tp: int
    sequence_parallel: bool
    microbatch: int
    scattered: bool
    reduces_each: bool

    @classmethod
    def of(cls, layout: Layout, strategy: ModelParallel) -> _PartOfRank:
        """That of a rank of a layout."""
        each = _reduces_each(layout, strategy)
        return cls(layout.tp, strategy.sequence_parallel, strategy.microbatch, strategy.messages.scattered, each)


@lru_cache(maxsize=MOST_KEPT)
def _passes(
    model: Dimensions, part: _PartOfRank, numbers: RankPrecision, recompute: Recomputation, spread: Spread
) -> RankPasses:
    """Passes of one rank."""
    return rank_passes(
        model.model,
        model.kernels,
        tp=part.tp,
        sequence_parallel=part.sequence_parallel,
        microbatch=part.microbatch,
        recompute=recompute,
        precision=numbers,
        scattered=part.scattered,
        spread=spread,
        trained=Trained(model.adapters, model.documents, part.reduces_each),
    )


def _units(
    work: StepWork, made: RankPasses, strategy: ModelParallel, *, apart: bool
) -> tuple[tuple[WeightUnit, ...], ...]:
    """Units of each stage; `apart` as for `weight_units`."""
    options, stages = strategy.exchange, len(work.plan.stages)
    product = made.sizes.width if made.sizes.fresh_gradients else made.gradient_width
    gathered = gathered_width(made, strategy)
    nbytes = UnitBytes(gathered, made.weight_width, product, made.gradient_width, made.gathered_width)
    return tuple(
        tuple(
            unit
            for chunk in work.chunks(stage)
            for unit in weight_units(chunk, work.layers(stage, chunk), options, nbytes, stages=stages, apart=apart)
        )
        for stage in range(stages)
    )


def _without(layer: LayerPasses, name: str) -> LayerPasses:
    """A layer without a weight that another one of its stage has."""
    weights = tuple(one for one in layer.weights if one.name != name)
    return replace(layer, weights=weights, frozen=tuple(one for one in layer.frozen if one.name != name))
