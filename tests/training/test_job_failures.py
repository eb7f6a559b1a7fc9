"""A training job among failures: the run that was simulated, played on by the events of `failing-job`."""

import pytest

import simperf
from simperf import DDP, Devices, Failures, FailureTimes, Job, Recovery, Repair, Saving, Servers
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.programs import PROGRAMS
from simperf.training.driver import train
from simperf.training.replica import Layers

CLUSTER = {"server": "dgx-1v", "count": 4, "fabric": {"type": "star", "link": "infiniband-edr"}}
PROGRAM = {"use": "train", "model": "resnet18", "precision": "fp16", "batch": 1024, "total": 100_000_000}
KEYS = {
    "node_mtbf": "200 h",
    "cluster_mtbf": "50 h",
    "interval": "30 min",
    "size": "100 GB",
    "storage": "2 GB/s",
    "timeout": "60 s",
    "restart": "300 s",
    "spares": 1,
    "repair": "12 h",
    "runs": 5,
}
TABLES = {"machine": CLUSTER, "frontend": {"use": "pytorch"}, "program": PROGRAM, "failures": KEYS}


def refused(**tables):
    with pytest.raises(InputError) as caught:
        simperf.run(simperf.make_scenario({**TABLES, **tables}))
    return str(caught.value)


@pytest.fixture(scope="module")
def result():
    return simperf.run(simperf.make_scenario(TABLES), record=False)


def failing_job(work, nodes, **more):
    data = {"program": {"use": "failing-job", "nodes": nodes, "work": f"{work!r} s", **KEYS, **more}}
    return simperf.run(simperf.make_scenario(data), record=False)


def test_it_is_failing_job_given_the_same_time_of_training(result):
    alone = failing_job(result.metrics["run time"].value, 4)
    assert alone.metrics["interruptions"].value > 3
    for name, metric in alone.metrics.items():
        assert result.metrics[name].value == pytest.approx(metric.value, rel=1e-12), name
    assert result.metrics["run time among failures"].value == pytest.approx(alone.time, rel=1e-12)


def test_the_simulated_steps_are_those_of_the_same_job_without_failures(result):
    plain = simperf.run(simperf.make_scenario({**TABLES, "failures": {"runs": 0, "interval": "1 h"}}), record=False)
    unbroken = simperf.run(
        simperf.make_scenario({key: TABLES[key] for key in ("machine", "frontend", "program")}), record=False
    )
    assert result.time == plain.time == unbroken.time
    for name, metric in unbroken.metrics.items():
        assert plain.metrics[name].value == result.metrics[name].value == metric.value
    assert plain.metrics["run time among failures"].value == pytest.approx(
        unbroken.metrics["run time"].value, rel=1e-12
    )
    assert plain.metrics["goodput"].value == 1.0


def test_the_parts_add_up_to_the_run(result):
    named = ("useful", "fewer nodes", "checkpoint", "redone", "detection", "restart", "repair", "reassignment")
    parts = [result.metrics[f"{name} time"].value for name in named]
    assert sum(parts) == pytest.approx(result.metrics["run time among failures"].value, rel=1e-9)
    assert result.metrics["useful time"].value == pytest.approx(result.metrics["run time"].value, rel=1e-9)
    assert result.metrics["mean run time among failures"].value > result.metrics["run time"].value


def test_from_python_it_is_the_same_scenario(result):
    found = simperf.train(
        "resnet18",
        on=CLUSTER,
        precision="fp16",
        batch=1024,
        set={"program.total": 100_000_000, **{f"failures.{key}": value for key, value in KEYS.items()}},
        record=False,
    )
    assert found.metrics == result.metrics


def play(job, name="dgx-1v"):
    m = Session(Simulation(Catalog.load().machine(name)))
    m.play(train(m, job))
    return {name: metric[0] for name, metric in m.metrics.items()}


FAILING = Failures(
    FailureTimes(node_mtbf=1e5),
    saving=Saving(2000.0, size=1e9, storage=1e8),
    recovery=Recovery(timeout=10.0, restart=60.0),
    repair=Repair(3600.0),
)
WORK = Layers(4, 0.1e-3, 0.2e-3, 10e6)


@pytest.mark.parametrize("strategy", [DDP(), Servers(2)])
def test_a_job_of_types(strategy):
    found = play(Job(WORK, strategy, failures=FAILING, batch_per_gpu=32, total=30_000_000))
    m = Session(Simulation())
    given = {"node_mtbf": 1e5, "interval": 2000.0, "size": 1e9, "storage": 1e8, "timeout": 10.0, "restart": 60.0}
    m.play(PROGRAMS["failing-job"].function(m, nodes=1, work=found["run time"], repair=3600.0, **given))
    for name, metric in m.metrics.items():
        assert found[name] == pytest.approx(metric[0], rel=1e-12), name


def test_servers_that_are_machines_fail_too():
    job = Job(WORK, Servers(1, where="dedicated"), failures=FAILING, batch_per_gpu=8, total=30_000_000)
    m = Session(Simulation(build_machine({**CLUSTER, "count": 3}, Catalog.load())))
    m.play(train(m, job))
    assert m.metrics["mean time between failures"][0] == pytest.approx(1e5 / 3)


def test_only_machines_that_take_part_fail():
    m = Session(Simulation(build_machine(CLUSTER, Catalog.load())))
    m.play(train(m, Job(WORK, devices=Devices(gpus=16), failures=FAILING, total=30_000_000)))
    assert m.metrics["mean time between failures"][0] == pytest.approx(1e5 / 2)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            {"failures": {**KEYS, "node_mtbs": "1 h"}},
            "failures.node_mtbs: failures have no option 'node_mtbs'; did you",
        ),
        ({"failures": {**KEYS, "interval": "30 mins"}}, "failures.interval"),
        ({"failures": {**KEYS, "shape": 0.5}}, "failures.shape: only Weibull's distribution has a shape"),
        ({"failures": {**KEYS, "search": True, "runs": 0}}, "failures.runs: a search needs 1 run or more"),
        ({"failures": {**KEYS, "spares": 9}}, "failures.spares: more spares than the 4 nodes"),
        ({"failures": {**KEYS, "interval": "1000 h"}}, "failures.interval: the run of"),
        ({"failures": {"node_mtbf": "200 h"}}, "failures.interval: give an interval"),
        ({"failures": {}}, "failures: nothing fails and nothing is saved"),
        ({"program": {**PROGRAM, "total": 0}}, "total: failures are simulated over the whole run"),
        ({"program": {**PROGRAM, "failures": KEYS}}, "program.failures: failures have a table of their own"),
        ({"program": {"use": "async-chain"}}, "failures: the program 'async-chain' has no failures"),
    ],
)
def test_what_has_no_meaning_is_told_where_it_stands(tables, words):
    assert words in refused(**tables)


def test_times_of_repair_are_given_once():
    with pytest.raises(InputError, match=r"recovery\.repair: Repair"):
        Failures(recovery=Recovery(repair=Repair(5.0).times()))
