"""Speed where machines and studies are large, beside the same thing on a small machine or one by one."""

from simperf import make_scenario, run
from simperf.collectives import algorithms
from simperf.collectives.bench import best_rows, measure
from simperf.collectives.calls import Call
from simperf.collectives.plan_bounds import SURVEY
from simperf.errors import InputError
from simperf.hardware import build_cluster
from simperf.study.sweep import sweep
from tests.benchmarks.test_study import ddp, points


def training(servers):
    """DDP of gpt2-xl on servers of eight H100."""
    fabric = {"type": "fat-tree", "link": "infiniband-ndr", "switch": "infiniband-ndr-switch", "servers_per_leaf": 32}
    machine = {"server": "dgx-h100", "count": servers, "fabric": fabric}
    program = {"use": "train", "model": "gpt2-xl", "batch_per_gpu": 1}
    return make_scenario({"machine": machine, "frontend": {"use": "pytorch"}, "program": program})


def test_training_on_a_thousand_gpus(benchmark, shown, seconds):
    """A machine 64 times as large costs its routes, not its ranks."""
    few, one = seconds(lambda: run(training(2), record=False))
    taken, result = shown(lambda: run(training(128), record=False))
    assert result.metrics["GPUs"].value == 64 * one.metrics["GPUs"].value
    benchmark.extra_info["two servers"] = few
    assert benchmark.disabled or taken < 8 * few


def tables(servers, sizes):
    """Every idealised algorithm that a survey allows."""
    machine = build_cluster("dgx-h100", servers, link="infiniband-ndr")
    found = {}
    for name in algorithms("all-reduce"):
        try:
            found[name] = [
                measure(Call(machine, "all-reduce", name, nbytes=size, ranks=machine.gpus, bounds=SURVEY))
                for size in reversed(sizes)
            ]
        except InputError:
            continue
    return best_rows(found)


def test_the_best_algorithm_among_sixteen_thousand_gpus(benchmark, shown, seconds, request):
    """The second and later sizes of an algorithm find the routes of the first one."""
    enabled = request.config.getoption("benchmark_enable", default=False)
    sizes, servers = [float(1 << power) for power in range(20, 31)], 2048 if enabled else 16
    once, _ = seconds(lambda: tables(servers, sizes[-1:]))
    taken, rows = shown(lambda: tables(servers, sizes))
    assert len(rows) == len(sizes)
    benchmark.extra_info["one size"] = once
    assert benchmark.disabled or taken < 0.5 * len(sizes) * once


def test_points_of_a_sweep_beside_runs_one_by_one(benchmark, shown, seconds):
    """A point costs no more than a run of a scenario that is made for it alone."""
    vary = points(40)

    def alone():
        return [run(ddp(), record=False) for _ in range(40)]

    by_hand, _ = seconds(alone)
    taken, table = shown(lambda: sweep(ddp(), vary, engine="serial", record=False, cache=False))
    assert len(table) == 40
    benchmark.extra_info["one by one"] = by_hand
    assert benchmark.disabled or taken < 1.2 * by_hand
