"""What each lesson calls surprising is what its program gives."""

import re
import runpy

import pytest

import simperf
from simperf.teach import find_lesson

pytest.importorskip("marimo", reason="marimo is not installed")


def notebook(name):
    return runpy.run_path(str(find_lesson(name).notebook))


def times(name, *cases, **always):
    """Time of the lesson's program in each case [s]."""
    program = notebook(name)["program"]
    return [simperf.simulate(program, **{**always, **case}).time for case in cases]


def test_hybrid():
    modes = [{"mode": mode} for mode in ("eager", "captured")]
    eager, captured = times("hybrid", *modes, machine="p3-2xlarge")
    assert eager / captured == pytest.approx(1.8, abs=0.05)
    eager, captured = times("hybrid", *modes, machine="p3-2xlarge", passes=1000)
    assert eager / captured == pytest.approx(2.3, abs=0.01)
    wide = times("hybrid", *modes, machine="p3-2xlarge", width=8192, batch=1024)
    assert wide == pytest.approx([wide[0]] * 2, rel=1e-3)  # the device has become the slower one


def test_asynchrony():
    hidden, equal, seen = times("asynchrony", {"t1": 1e-6}, {"t1": 20e-6}, {"t1": 25e-6}, n=200, t2=20e-6)
    assert equal - hidden == pytest.approx(19e-6, abs=1e-9)  # the first launch only
    assert seen == pytest.approx(200 * 25e-6 + 20e-6 + 10e-6)


def test_parallelism():
    cases = [{"pinned": True}, {"pinned": False}]
    pinned, pageable = times("parallelism", *cases, machine="p3-2xlarge")
    products = 12 * 8e-3
    one_copy = pinned - products
    assert 0 < one_copy < 6e-3  # all but the last disappear
    assert pageable > products + 12 * one_copy  # slower, and nothing is hidden


def test_hardware():
    program, way = notebook("hardware")["program"], notebook("hardware")["wires"]["NVLink"]
    rates = [simperf.simulate(program, piece=piece, **way).metrics["bandwidth"].value for piece in (1e3, 250e3)]
    assert rates[0] == pytest.approx(3e9, rel=0.1)
    assert rates[1] == pytest.approx(0.95 * 40e9, rel=0.02)


def test_several_gpus():
    one, four, apart, together = times(
        "several-gpus",
        *({"k": 1, "batch": 256}, {"k": 4, "batch": 256}, {"k": 1, "batch": 4096}, {"k": 4, "batch": 4 * 4096}),
        machine="p3-8xlarge",
    )
    assert four > one  # slower than one
    step = simperf.simulate(notebook("several-gpus")["program"], machine="p3-8xlarge", k=4, steps=1)
    assert sum(span.category == "copy" for span in step.spans) == 48
    assert 4 * apart / together > 3  # the gain appears


def test_data_parallel():
    one, four = times("data-parallel", {"buckets": 1}, {"buckets": 4}, machine="pcie-4gpu")
    assert (four - 60e-3) / (one - 60e-3) == pytest.approx(1 / 4, rel=0.05)  # three quarters disappear


def test_synchronisation():
    places = [{"where": where} for where in ("gpu0", "cpu0", "every GPU", "ring")]
    found = times("synchronisation", *places, machine="book-4gpu")
    assert found == pytest.approx([60e-3, 80e-3, 15e-3, 15e-3], rel=2e-3)


def test_many_machines():
    always = {"machine": notebook("many-machines")["machine"], "frontend": {"launch": "0 s", "result": "0 s"}}
    one, four, eight = times("many-machines", *({"servers": n} for n in (1, 4, 8)), **always, workers=4)
    assert one / 4 == pytest.approx(74e-3, rel=0.01)
    assert four < 0.5 * one
    assert eight == pytest.approx(four, rel=0.01)  # each worker's own port is the limit
    slow, apart = times("many-machines", {}, {"synchronous": False}, **always, workers=4, servers=4, slow=10.0)
    assert apart < 0.5 * slow


def test_regimes():
    cases = [{"flops": 1}, {"flops": 30}, {"flops": 1, "mode": "fused"}]
    light, heavy, fused = times("regimes", *cases, machine="p4d-24xlarge", elements=10**8)
    assert heavy == pytest.approx(light, rel=0.01)
    assert light / fused == pytest.approx(2, rel=0.02)


def test_planner_cluster():
    plan = notebook("planner-cluster")["program"]
    found = plan(days=4, budget=400, nodes=1)
    hour = found.request.prices.of
    small, large = "p3-2xlarge", "p4d-24xlarge"
    assert min((small, "p3-16xlarge", large), key=hour) == small
    assert hour(large) / hour(small) == pytest.approx(7, rel=0.05)
    of = {one.choice.instance: one for one in found.ranked}
    assert found.winner is of[large]
    assert of[large].cost == min(one.cost for one in found.ranked)
    assert of[small].time / of[large].time == pytest.approx(12, rel=0.05)
    assert 1.5 < of[small].cost / of[large].cost < 2
    in_a_day = plan(days=1, budget=400, nodes=1)
    assert {one.choice.instance for one in in_a_day.ranked if one.time > 86_400} == {small}  # it drops out
    wider = plan(days=4, budget=400, nodes=4).ranked
    several = {one.choice.nodes: one.cost for one in wider if one.choice.instance == large}
    assert 1 < several[4] / several[1] < 1.05


def test_planner_cluster_quotes_the_rates_that_it_has():
    text = find_lesson("planner-cluster").exercises[1].words["en"].text
    told = [float(rate) for rate in re.findall(r"([0-9.]+) thousand", text)]
    rates = {}
    for each in ({}, {"program.batch_per_gpu": 256}):
        result = simperf.run("training/batch-or-kb", set={"program.gpus": 8} | each)
        rates[len(each)] = result.metrics["samples per second"].value / 1000
    assert told == pytest.approx([rates[0], rates[1]], rel=0.005)


def test_planner_failures():
    book = notebook("planner-failures")

    def goodput(interval):
        given = {"pause": 100, "mtbf": 10_800, "seed": 1}
        return simperf.simulate(book["program"], interval=interval, **given).metrics["goodput"].value

    best = book["young"](100, 10_800)
    top = goodput(best)
    assert min(goodput(best / 2), goodput(2 * best)) > top - 0.05  # flat at its top
    assert goodput(60) < 0.5
    assert goodput(7200) == pytest.approx(2 / 3, abs=0.03)


def test_pipelines():
    program, found = notebook("pipelines")["program"], {}
    for schedule in ("gpipe", "1f1b", "zb-h1", "zb-v", "v-min"):
        always = {"machine": "dgx-a100", "frontend": {"launch": "0 s", "result": "0 s"}}
        result = simperf.simulate(program, schedule=schedule, **always)
        found[schedule] = result.time, result.metrics["bubble"].value, result.metrics["micro-batches kept"].value
    assert found["gpipe"][0] == pytest.approx(found["1f1b"][0])  # both take the same time
    assert found["1f1b"][1] == pytest.approx(3 / 11)
    assert (found["gpipe"][2], found["1f1b"][2]) == (8, 4)
    assert found["zb-v"][1] < found["zb-h1"][1] < found["1f1b"][1]
    assert found["v-min"][1] > found["zb-v"][1]
    assert found["v-min"][2] == found["zb-v"][2] / 2


def test_sharding():
    program, found = notebook("sharding")["program"], {}
    for sharding in ("none", "zero-3"):
        told = program(sharding=sharding).metrics
        found[sharding] = told["memory"].value, told["time per step"].value
    assert found["zero-3"][0] < found["none"][0] / 4
    assert found["zero-3"][1] < found["none"][1]
    assert program(sharding="zero-3", gpus=1).metrics["memory"].value > found["none"][0] * 0.9


def test_planner_layouts():
    book = notebook("planner-layouts")
    short = book["program"]().winner
    assert short.choice.layout.pp == 2
    assert short.parts["bubble"] / short.step == pytest.approx(0.1, abs=0.02)
    assert book["fastest"](gpus=16, sequence=8192) == "tp=2 dp=8"
    assert book["fastest"](gpus=8, sequence=2048) in ("tp=4 dp=2", "tp=2 dp=4")
    with pytest.raises(simperf.InputError, match="memory"):
        book["outcome"](gpus=4, sequence=16384, tp=1, pp=1, microbatch=1, recompute=False)
