"""Small models of hand-made layers and pipelines of them, and runs of small transformers."""

from dataclasses import replace

import simperf
from simperf.engine.simulation import Simulation
from simperf.execution.profile import FREE
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.layout import Layout
from simperf.schedules import make_schedule
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.play import Pipeline
from simperf.training.pipelined.weight_units import UnitBytes, weight_units
from simperf.training.pipelined.work import StepEnd, StepWork
from simperf.training.stragglers import change_links
from simperf.training.strategies import DataExchange, ModelParallel
from simperf.workload.op import Op
from simperf.workload.transformers.dimensions import Weight
from simperf.workload.transformers.passes import Await, LayerPasses, Sync


def train(layout, *, model, on="dgx-a100-80gb", batch=8, set=None, **options):
    """Two steps of a transformer that a layout divides, by Megatron-Core."""
    return simperf.train(
        model,
        on=on,
        layout=layout,
        strategy=ModelParallel(**{"sequence_parallel": layout.get("tp", 1) > 1, **options}),
        stack="megatron-core",
        precision="bf16-master",
        batch=batch,
        set={"program.steps": 2, **(set or {})},
    )


def step_time(result):
    """Time of a step [s]."""
    return result.metrics["time per step"].value


def op(name, time):
    """An operation of about a time [s] on an A100 at its peak."""
    return Op(name, "gemm", flops=time * 312e12, dtype="fp16", family="gemm", nbytes_read=1e6, nbytes_written=1e6)


def layer(name="block", *, time=0.3e-3, nbytes=8e6, weights=10_000_000, overlaps=False):
    """A layer whose backward pass takes twice as long, with collectives of a size between its operations."""

    def items(kind, count):
        found = []
        for index in range(count):
            found.append(op(f"{kind}{index}", time))
            if nbytes:
                what = "all-gather" if index % 2 else "reduce-scatter"
                found.append(Sync(what, "tp", nbytes, f"{kind}{index}", waits=not overlaps))
        if nbytes and overlaps:
            found += [Await(f"{kind}{index}") for index in range(count)]
        return tuple(found)

    inputs, of_weights = items("inputs", 1), items("weights", 1)
    backward = (*inputs, *of_weights)
    return LayerPasses(name, items("forward", 1), backward, inputs, of_weights, (), 0, 0, (Weight("w", (weights,)),))


def work(stages, microbatches, schedule="1f1b", *, blocks=1, message=4e6, tied=0.0, end=None, ends=True, **options):
    """The work of a model of equal parts; with `ends`, the first has an embedding and the last a head."""
    named = {key: options.pop(key) for key in ("time", "nbytes", "weights", "overlaps") if key in options}
    plan = make_schedule(schedule, stages=stages, microbatches=microbatches, **options)
    parts = [[layer(**named)] * blocks for _ in plan.path]
    if ends:
        parts[0].insert(0, layer("embedding", **{**named, "time": 0.1e-3}))
        parts[-1].append(layer("head", **{**named, "time": 0.2e-3}))
    return StepWork(plan, tuple(map(tuple, parts)), message, (end or StepEnd(),) * stages, tied)


def with_experts(of, weights):
    """The same work with so many more weights of experts in each layer."""
    own = Weight("experts", (weights,))
    parts = tuple(tuple(replace(one, weights=(*one.weights, own), experts=(own,)) for one in part) for part in of.parts)
    return replace(of, parts=parts)


def sharded(of, *, apart=False, **options):
    """The same work with weights that data-parallel ranks share."""
    stages = of.stages
    units = tuple(
        tuple(
            unit
            for chunk in of.chunks(stage)
            for unit in weight_units(
                chunk, of.layers(stage, chunk), DataExchange(**options), UnitBytes(), stages=stages, apart=apart
            )
        )
        for stage in range(stages)
    )
    return replace(of, units=units)


def clipped():
    """The end of a step with a norm and an optimizer."""
    return StepEnd(norm=(op("norm", 0.05e-3),), update=(op("adam", 0.4e-3),))


def session(machine, *, launch=0.0, depth=1024):
    """A session on a machine of the catalogue, whose hosts take a time for each launch."""
    profile = replace(FREE, launch=launch, collective=2 * launch, result=launch)
    return Session(Simulation(build_machine({"name": machine}, Catalog.load()), depth=depth), profile=profile)


def played(  # noqa: PLR0913 - a test changes one or two of many defaults
    machine,
    of,
    *,
    tp=1,
    pp=1,
    dp=1,
    exact=False,
    reuse=True,
    steps=2,
    pacing=None,
    bucket=40e6,
    order=None,
    speeds=(),
    launch=0.0,
    depth=1024,
    slow=None,
    copies=1,
    ep=1,
):
    """The session, and the processes after their end."""
    m = session(machine, launch=launch, depth=depth)
    if slow is not None:
        change_links(m.simulation, slow.changes)
    shared = {"sharding": "zero-3", "dp_replicate": copies} if of.units and dp > 1 else {}
    layout = Layout(tp=tp, pp=pp, dp=dp, ep=ep, **({"order": order} if order else {}), **shared)
    pipeline = Pipeline(
        layout,
        m.machine.workers[: layout.ranks],
        of,
        pacing or Pacing(),
        bucket,
        speeds,
        marks={slow.link: 0} if slow else {},
    )
    processes = pipeline.processes(m, exact=exact, steps=steps, reuse=reuse)
    m.play(pipeline.play(m, processes))
    return m, processes


def last_step(process):
    """Readings at the begin and the end of the last step."""
    return process.spent.readings[-2:]
