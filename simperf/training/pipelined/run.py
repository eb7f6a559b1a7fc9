"""A job whose model is divided among ranks: it is set up, simulated, and reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.layout import Layout
from simperf.memory import StageMemory
from simperf.training.job import Job
from simperf.training.pipelined.division import divide, pacing_of
from simperf.training.pipelined.draws import disturb, draw_steps, step_times, tell_draws, tell_percentiles, varies
from simperf.training.pipelined.excess import refuse_numbers, refuse_processes
from simperf.training.pipelined.fitting_changes import Divided, refuse_what_does_not_fit
from simperf.training.pipelined.host_memory import refuse_full_hosts
from simperf.training.pipelined.layer_graphs import refuse_unlaunched, tell_graphs
from simperf.training.pipelined.outcome import tell
from simperf.training.pipelined.play import Pipeline
from simperf.training.pipelined.refusals import refuse_idle_messages, together
from simperf.training.pipelined.whole_run import refuse_run, tell_run
from simperf.training.replica import Dimensions
from simperf.training.stragglers import change_links
from simperf.training.strategies import DataExchange, ModelParallel
from simperf.workload.op import Op
from simperf.workload.product_recipe import RECIPES, product_recipe

__all__ = ["refuse_divided", "train_divided"]


def _pipeline_of(m: Session, job: Job) -> Pipeline:
    """The pipeline of a job.

    Parameters
    ----------
    m : Session
    job : Job
        Of strategy `ModelParallel` and a model by its dimensions.

    Raises
    ------
    InputError
        All that has no meaning, or does not divide.
    """
    strategy, layout, model = job.strategy, job.layout, job.model
    assert isinstance(strategy, ModelParallel)
    assert isinstance(layout, Layout)
    if not isinstance(model, Dimensions):
        message = "a transformer by its dimensions is expected: a layout divides no other model"
        expected = "layers, hidden, heads, ..., or a shipped transformer"
        raise InputError(Problem(message, key="model", value=model.name, expected=expected))
    together(partial(_refuse_shards, layout, strategy), partial(refuse_idle_messages, layout, strategy))
    refuse_numbers(layout, strategy, job.batch, model.model.layers, steps=job.steps, most=m.simulation.most)
    nodes = _nodes(m, job, layout)
    disturbances = job.disturbances
    speeds = _speeds(m, job, nodes)
    marks = {change.resource: index for index, change in enumerate(disturbances.changes)}
    return Pipeline(
        layout,
        nodes,
        divide(
            model,
            layout,
            strategy,
            job.batch,
            architecture=_architecture(m, nodes, model),
            offload=job.devices.offload,
            seed=m.simulation.seed,
        ),
        pacing_of(layout, strategy),
        strategy.exchange.bucket,
        speeds,
        strategy.options,
        marks,
    )


def _architecture(m: Session, nodes: Sequence[str], model: Dimensions) -> str:
    """Architecture of the GPUs that train, which have the units that a recipe needs.

    Raises
    ------
    InputError
        One of them has not, or they have several architectures, whose units differ.
    """
    parts = {m.machine.nodes[node].part: node for node in nodes}
    kinds: dict[str, str] = {getattr(part, "architecture", ""): node for part, node in parts.items()}
    name = model.kernels.products
    if name == "as-weights":
        return next(iter(kinds))
    recipe = product_recipe(name)
    for part, node in parts.items():
        peaks = getattr(part, "peak", {})
        if recipe.units not in peaks:
            units = "which apply factors of small blocks" if recipe.units == "fp4" else "of 8 bits"
            message = f"{node} ({getattr(part, 'name', node)}) has no units for {name}, {units}"
            known = [one for one in RECIPES if product_recipe(one).units in peaks]
            expected = f"{', '.join(['as-weights', *known])}, or GPUs with {recipe.units}"
            raise InputError(Problem(message, key="product_precision", value=name, expected=expected))
    if len(kinds) > 1 and len({recipe.on(one).copies for one in kinds}) > 1:
        message = f"casts of {name} differ between the GPUs: {', '.join(sorted(kinds))}"
        raise InputError(Problem(message, key="product_precision", value=name, expected="GPUs of one architecture"))
    return next(iter(kinds))


def _refuse_shards(layout: Layout, strategy: ModelParallel) -> None:
    """Refuse options without effect on what data-parallel ranks share.

    Raises
    ------
    InputError
        All of them.
    """
    problems = []
    sharding, fully = layout.sharding, layout.sharding == "zero-3"
    if strategy.exchange.overlap_weights and sharding not in ("zero-1", "zero-2"):
        message = (
            "every rank updates all of its weights" if sharding == "none" else "weights are gathered layer by layer"
        )
        expected = 'layout.sharding = "zero-1"' if sharding == "none" else "false"
        problems.append(Problem(message, key="overlap_weights", value="true", expected=expected))
    if fully and strategy.exchange.bucket:
        message = "gradients are reduced layer by layer"
        problems.append(Problem(message, key="gradient_bucket", value=f"{strategy.exchange.bucket:g}", expected="0"))
    if sharding == "zero-2" and not strategy.exchange.bucket:
        message = "a rank keeps its part of gradients that are reduced as they become ready"
        expected = "the size of a bucket, such as 160 MB"
        problems.append(Problem(message, key="gradient_bucket", value="0", expected=expected))
    narrow = sharding != "none" and strategy.exchange.gathered == "fp8"
    own = replace(strategy.exchange, bucket=0.0, overlap_weights=False, clip=True, runs=1)
    if not fully and (replace(own, gathered="as-products") if narrow else own) != DataExchange():
        message, expected = "every rank has all weights of its stage", 'layout.sharding = "zero-3"'
        problems.append(Problem(message, key="exchange", value=str(strategy.exchange), expected=expected))
    if problems:
        raise InputError(problems)


def refuse_divided(m: Session, job: Job) -> tuple[Pipeline, tuple[StageMemory, ...]]:
    """Refuse a job that cannot be simulated or does not fit, before it is; else its pipeline and memory of each stage.

    Raises
    ------
    InputError
        All that has no meaning, or does not divide.
    DeviceMemoryError
        It does not fit.
    """
    pipeline = _pipeline_of(m, job)
    if m.mode.waits and pipeline.layout.pp > 1:
        message = "a process that waits for each send would wait for a stage that waits for it"
        raise InputError(Problem(message, key="execution.mode", value=m.mode.name, expected="eager or scripted"))
    if pipeline.work.captured:
        refuse_unlaunched(m.profile, m.mode)
    _refuse_attention(m, pipeline)
    return pipeline, _memory(m, job, pipeline)


def _refuse_attention(m: Session, pipeline: Pipeline) -> None:
    """Refuse a library of attention without constants, which no change that fits would mend."""
    layers = {id(one): one for part in pipeline.work.parts for one in part}.values()
    ops = [op for layer in layers for op in layer.forward if isinstance(op, Op) and op.family == "attention"]
    for node in {m.machine.nodes[node].part: node for node in reversed(pipeline.nodes)}.values():
        for op in dict.fromkeys(ops):
            m.model(m.simulation.device(node)).cost(op)


def train_divided(m: Session, job: Job) -> Program:
    """Simulate a job whose model is divided among ranks, and report what came of it."""
    pipeline, memory = refuse_divided(m, job)
    why, asked = pipeline.apart(m), job.devices.exact
    if why and asked == "no":
        raise InputError(Problem(f"ranks cannot be taken together: {why}", key="exact", value="no"))
    if why and asked == "auto":
        m.notes.append(f"every rank is simulated: {why}")
    exact = bool(why) or asked == "yes"
    processes = pipeline.processes(m, exact=exact, steps=job.steps)
    if not exact and len(processes) < len(pipeline.nodes):
        m.notes.append(
            f"{len(processes)} of {len(pipeline.nodes)} ranks are simulated, one for each class of like ranks"
        )
    if draws := len(pipeline.work.draws.parts):
        split = pipeline.work.plan.split
        m.notes.append(
            f"experts of each layer and micro-batch have one of {draws} loads: the rank with most rows stands for all"
            + (", which is approximate where gradients of weights are passes of their own" if split else "")
        )
    assert isinstance(job.strategy, ModelParallel)
    assert isinstance(job.model, Dimensions)
    parts, most = job.model.kernels.product_parts, m.simulation.most
    refuse_processes(processes, pipeline.layout, job.strategy, job.batch, most=most, parts=parts)
    change_links(m.simulation, job.disturbances.changes)
    noisy = varies(job.disturbances)
    refuse_run(job)
    if noisy and job.devices.offload and asked != "yes":
        message = "what noise does to copies to the host is simulated with every rank and step"
        raise InputError(Problem(message, key="exact", value=asked, expected="yes"))
    if noisy and asked == "yes":
        _refuse_draws(job)
        disturb(m, job.disturbances, processes, len(pipeline.nodes))
    yield from pipeline.play(m, processes)
    tell(m, job, pipeline, processes, memory)
    if pipeline.work.captured:
        tell_graphs(m)
    step = float(step_times(processes).mean())
    if noisy and asked == "yes":
        tell_percentiles(m, step_times(processes))
    elif noisy:
        step = tell_draws(m, draw_steps(m, job.disturbances, pipeline, processes), step)
    tell_run(m, job, pipeline, step)


def _refuse_draws(job: Job) -> None:
    """Refuse draws beside steps that are drawn themselves."""
    if draws := job.disturbances.noise.draws:
        message, expected = "with exact = yes each step that is simulated is drawn", f"steps = {draws}"
        raise InputError(Problem(message, key="draws", value=str(draws), expected=expected))


def _memory(m: Session, job: Job, pipeline: Pipeline) -> tuple[StageMemory, ...]:
    """Memory of each stage, which the GPU with least of it has to hold."""
    parts = {m.machine.nodes[node].part: node for node in reversed(pipeline.nodes)}
    capacity, node, architecture = min(
        (getattr(part, "memory_capacity", math.inf), node, getattr(part, "architecture", ""))
        for part, node in parts.items()
    )
    assert isinstance(job.model, Dimensions)
    assert isinstance(job.strategy, ModelParallel)
    divided = Divided(
        job.model,
        pipeline.layout,
        job.strategy,
        job.batch,
        architecture,
        job.devices.offload,
        job.stack.allocator,
    )
    if job.devices.offload:
        hosts = refuse_full_hosts(m.machine, pipeline.nodes, pipeline.layout, pipeline.work)
        m.metric("host memory", max(hosts.values()), "B")
    alike = len({getattr(part, "architecture", "") for part in parts}) == 1  # divided for it
    return refuse_what_does_not_fit(divided, capacity, name=node, work=pipeline.work if alike else None)


def _nodes(m: Session, job: Job, layout: Layout) -> tuple[str, ...]:
    """Node of each rank."""
    if job.devices.nodes:
        return job.devices.nodes
    there: tuple[str, ...] = m.machine.workers
    if not there:
        raise ProgramError("the machine has no GPU to train on; name the nodes that take part as devices")
    if layout.ranks > len(there):
        message = f"the layout has {layout.ranks} ranks, and the machine has {len(there)} devices"
        raise InputError(Problem(message, key="layout", value=str(layout), expected=layout.fewer(len(there))))
    return there[: layout.ranks]


def _speeds(m: Session, job: Job, nodes: Sequence[str]) -> tuple[float, ...]:
    """Speed of each rank [1], by the stack's pace on its GPU; none where all are 1."""
    given, count, ranks = job.devices.speeds, job.disturbances.stragglers, len(nodes)
    if len(given) > ranks:
        message, expected = f"there are more speeds than {ranks} devices", f"at most {ranks} numbers"
        raise InputError(Problem(message, key="speeds", value=str(len(given)), expected=expected))
    if count > ranks:
        expected = f"at most {ranks}"
        raise InputError(Problem(f"there are {ranks} devices", key="stragglers", value=str(count), expected=expected))
    if any(not 0.0 < speed < float("inf") for speed in given):
        raise InputError(Problem("a device's speed is a factor above 0", key="speeds", value=str(list(given))))
    speeds = [*given, *[1.0] * (ranks - len(given))]
    for rank in range(ranks - count, ranks):
        speeds[rank] /= job.disturbances.slowdown
    parts = [m.machine.nodes[node].part for node in nodes]
    paces = [job.stack.pace(getattr(part, "architecture", ""), getattr(part, "name", "")) for part in parts]
    named = {f"{job.stack.name}: pace on {', '.join(one.gpus) or one.architecture}": one for one in paces}
    m.assumed |= {name: one.source for name, one in named.items() if one.share < 1.0}
    speeds = [speed * pace.share for speed, pace in zip(speeds, paces, strict=True)]
    return tuple(speeds) if set(speeds) != {1.0} else ()
