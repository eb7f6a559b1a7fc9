"""Captured blocks: one launch a pass, the same in every executor, and nothing else changes."""

import re
from dataclasses import replace

import pytest

import simperf
from simperf import Layout, ModelParallel, Transformer
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.profile import FREE
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.play import Pipeline
from simperf.training.pipelined.stage import never_closed
from simperf.workload.routing import Routing
from tests.training.pipelined.small import clipped, work
from tests.training.pipelined.test_classes import cases
from tests.training.pipelined.test_closed import same

PLAIN = {"layers": 4, "hidden": 1024, "heads": 8, "vocabulary": 8192, "sequence": 512, "norm": "layer"}
SMALL = {**PLAIN, "hidden": 128, "sequence": 128}
MIXED = {**PLAIN, "experts": 4, "experts_per_token": 2, "expert_ffn": 1024}
HOST = replace(FREE, launch=20e-6, collective=40e-6, result=20e-6, graph_launch=30e-6, graph_node=0.5e-6)


def played(of, *, profile=HOST, machine="dgx-a100-x4", tp=1, pp=1, dp=1, captured=True, steps=2, **options):
    exact, reuse = options.pop("exact", False), options.pop("reuse", True)
    m = Session(Simulation(build_machine({"name": machine}, Catalog.load())), profile=profile)
    order = {"order": order} if (order := options.pop("order", None)) else {}
    layout = Layout(tp=tp, pp=pp, dp=dp, **order)
    nodes = m.machine.workers[: layout.ranks]
    pipeline = Pipeline(layout, nodes, replace(of, captured=captured), options.get("pacing") or Pacing(), 40e6)
    processes = pipeline.processes(m, exact=exact, steps=steps, reuse=reuse)
    m.play(pipeline.play(m, processes))
    return m, processes


@pytest.mark.parametrize(("machine", "tp", "pp", "dp", "schedule", "pacing", "order", "overlaps"), list(cases()))
def test_one_rank_of_a_class_takes_as_long_as_all_ranks(machine, tp, pp, dp, schedule, pacing, order, overlaps):
    of = work(pp, 2 * pp, schedule, tied=6e6, end=clipped(), overlaps=overlaps, time=20e-6)
    options = {"machine": machine, "tp": tp, "pp": pp, "dp": dp, "pacing": pacing, "order": order}
    options["profile"] = replace(HOST, graph_gap=-2e-6 if overlaps else 1.5e-6)
    (one, few), (every, all_of) = (played(of, exact=exact, **options) for exact in (False, True))
    assert one.now == pytest.approx(every.now, rel=1e-9)
    readings = {each.rank: each.spent.readings for each in all_of}
    for process in few:
        for mine, other in zip(process.spent.readings, readings[process.rank], strict=True):
            assert (mine.time, mine.waiting, mine.kernels) == pytest.approx(
                (other.time, other.waiting, other.kernels), rel=1e-9, abs=1e-12
            )


@pytest.mark.parametrize("launch", [30e-6, 2e-3], ids=["device", "host"])
@pytest.mark.parametrize("overlaps", [False, True], ids=["waits", "overlaps"])
def test_closed_layers_give_what_every_node_gives(launch, overlaps):
    of = work(2, 6, blocks=3, end=clipped(), overlaps=overlaps)
    pacing = Pacing(gradients=True, weights=True, sharded=True)
    profile = replace(HOST, graph_launch=launch, graph_gap=1e-6)
    one, other = (
        played(of, tp=8, pp=2, dp=2, pacing=pacing, profile=profile, steps=3, reuse=reuse) for reuse in (True, False)
    )
    assert {each.close is not never_closed for each in one[1]} == {launch < 1e-3}
    same(one, other)


def test_graphs_that_cost_nothing_change_nothing():
    of = work(2, 4, "zb-h1", end=clipped())
    for pair in ({"tp": 4, "pp": 2}, {"pp": 2, "dp": 2}):
        one, other = (played(of, profile=FREE, captured=captured, **pair) for captured in (True, False))
        same(one, other)


def test_a_gap_is_added_to_every_kernel_of_a_block():
    gap, of = 3e-6, work(1, 4, blocks=5, ends=False, nbytes=0.0)
    one, other = (played(of, profile=replace(FREE, graph_gap=each), steps=1) for each in (gap, 0.0))
    kernels = 4 * 5 * 3  # of each block one forward and two backward
    assert one[0].now - other[0].now == pytest.approx(kernels * gap, rel=1e-6)


@pytest.mark.parametrize("tp", [1, 8])
def test_a_step_that_launches_bound_takes_its_launches(tp):
    of = work(1, 4, blocks=5, ends=False, nbytes=1e3 if tp > 1 else 0.0, time=1e-9)
    profile = replace(FREE, launch=1e-3, collective=2e-3, graph_launch=5e-3, graph_node=1e-4)
    m, _ = played(of, tp=tp, profile=profile, steps=1)
    passes, nodes = 4 * 5 * 2, 4 * 5 * 3 * (2 if tp > 1 else 1)
    assert m.now == pytest.approx(passes * 5e-3 + nodes * 1e-4, rel=0.01)
    m, _ = played(of, tp=tp, profile=profile, steps=1, captured=False)
    assert m.now == pytest.approx(4 * 5 * 3 * (3e-3 if tp > 1 else 1e-3), rel=0.01)


def test_a_step_that_kernels_bind_is_as_long_but_for_its_first_launch():
    of = work(1, 4, blocks=5, ends=False, nbytes=0.0, time=1e-3)
    (one, _), (other, _) = (played(of, captured=captured, steps=1) for captured in (True, False))
    first = HOST.graph_launch + HOST.graph_node - HOST.launch  # of one kernel
    assert one.now - other.now == pytest.approx(first, rel=1e-6)


def test_embedding_head_and_update_are_launched_one_by_one():
    of = work(1, 2, blocks=0, end=clipped(), nbytes=0.0, time=1e-6)
    one, other = (played(of, captured=captured) for captured in (True, False))
    same(one, other)


def trained(layout, strategy=None, *, on="dgx-a100", batch=8, model=PLAIN, **options):
    given = {f"program.{key}": value for key, value in {"steps": 2, "captured": "layers", **options}.items()}
    return simperf.train(
        Transformer(**model),
        on=on,
        layout=layout,
        strategy=strategy or ModelParallel(),
        precision="bf16-master",
        batch=batch,
        set={"frontend.use": "pytorch", "run.force": True, **given},
        record=False,
    )


CASES = {
    "bound by the host": (Layout(tp=2, pp=2, dp=2), None, {"model": SMALL}),
    "tokens are gathered first": (Layout(tp=4, dp=2), ModelParallel(sequence_parallel=True), {"model": SMALL}),
    "bound by the device": (Layout(pp=2), ModelParallel(), {"batch": 4}),
    "split backward": (Layout(tp=2, pp=4), ModelParallel(schedule="zb-h1"), {}),
    "experts": (
        Layout(ep=2, dp=4),
        ModelParallel(routing=Routing(capacity=1.0, padded=True)),
        {"model": MIXED},
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_drawn_step_is_the_one_that_every_rank_plays_with_the_same_devices(name):
    layout, strategy, options = CASES[name]
    drawn = trained(layout, strategy, variation="3 %", **options)
    every = trained(layout, strategy, variation="3 %", exact="yes", **options)
    mean = "time per step with noise, mean"
    assert drawn.metrics[mean].value == pytest.approx(every.metrics[mean].value, rel=1e-9)
    told = [note for note in drawn.notes if "with noise" in note]
    assert told == ["1 step with noise is drawn beside the one that is simulated without"]


def test_a_result_says_what_is_captured():
    one, other = (trained(Layout(tp=2), model=SMALL, captured=each) for each in ("layers", "none"))
    assert one.metrics["time per step"].value < 0.7 * other.metrics["time per step"].value
    assert "pytorch: graph_launch" in one.sources
    assert "pytorch: graph_launch" not in other.sources
    assert one.assumed["pytorch: graph_gap"] == "0: no source gives it"
    assert any("captured graphs" in line for line in one.modelled)
    assert any(line.startswith("capture of graphs") for line in one.not_modelled)
    assert not any("graphs" in line for line in (*other.modelled, *other.not_modelled))


@pytest.mark.parametrize(
    ("layout", "strategy", "options", "message"),
    [
        (Layout(ep=2, dp=2), None, {"model": MIXED}, "an expert_capacity with pad_experts = true"),
        (Layout(tp=2), ModelParallel(recompute="full"), {}, 'recompute = "none"'),
        (Layout(dp=2), None, {"offload_layers": 1}, "offload_layers: activations of captured blocks"),
        (Layout(dp=2, sharding="zero-3"), None, {}, "layout.sharding: a graph reads weights where they were"),
        (Layout(pp=2), ModelParallel(schedule="dualpipe"), {}, "schedule: its passes take turns"),
        (Layout(tp=2), None, {"captured": "steps"}, "one of none, layers"),
    ],
)
def test_what_cannot_be_captured_is_refused(layout, strategy, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        trained(layout, strategy, **options)


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ({"frontend.use": "pytorch", "execution.mode": "synchronous"}, "a host that waits for each kernel"),
        ({"frontend.use": "pytorch", "frontend.graph_launch": "0 us"}, 'frontend.graph_launch = "8 us"'),
    ],
)
def test_a_host_that_launches_no_graph_is_refused(host, message):
    with pytest.raises(InputError, match=re.escape(message)):
        simperf.train(
            Transformer(**PLAIN),
            on="dgx-a100",
            layout=Layout(tp=2),
            strategy=ModelParallel(),
            precision="bf16-master",
            batch=2,
            set={**host, "program.captured": "layers"},
        )
