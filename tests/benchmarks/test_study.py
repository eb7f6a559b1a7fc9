"""Speed of studies: a thousand points of data-parallel training, and plans of five hundred instances and layouts."""

import time

import pytest

from simperf import make_scenario
from simperf.study.layouts import make_layouts, plan_layouts
from simperf.study.planning import make_request, plan
from simperf.study.sweep import sweep


def ddp():
    """ResNet-50 on one to eight p3.16xlarge: 8 to 64 GPUs."""
    return make_scenario(
        {
            "scenario": {"title": "DDP"},
            "machine": {
                "server": "p3-16xlarge",
                "count": 8,
                "fabric": {"type": "star", "link": "ethernet-25g-jumbo", "switch": "ethernet-switch"},
            },
            "frontend": {"use": "pytorch"},
            "program": {"use": "train", "model": "resnet50", "steps": 2, "algorithm": "ring"},
        }
    )


def points(number):
    """`number` points over GPUs, batch and bucket."""
    gpus = list(range(8, 65, 8))
    batches = [8, 16, 32, 48, 64]
    buckets = [f"{size} MB" for size in range(1, 1 + -(-number // 40))]
    return {"program.gpus": gpus, "program.batch_per_gpu": batches, "program.bucket": buckets}


@pytest.mark.parametrize("engine", ["serial", "local:2"])
def test_a_thousand_ddp_points(benchmark, engine, request):
    number = 1000 if request.config.getoption("benchmark_enable", default=False) else 40
    scenario, vary = ddp(), points(number)

    def study():
        return sweep(scenario, vary, engine=engine, record=False, cache=False)

    table = benchmark.pedantic(study, rounds=1, iterations=1)
    assert len(table) == number
    assert not table.failed


#: of a cluster's servers, by which plans tell goodput
FAILURES = {"node_mtbf": "2000 h", "checkpoint": "500 MB/s", "restart": "5 min"}


def candidates(small):
    return make_request(
        {
            "failures": FAILURES,
            "plan": {"model": "resnet50", "precision": "fp16", "samples": 1_281_167, "epochs": 90},
            "candidates": {
                "instances": [
                    "p3-2xlarge",
                    "p3-8xlarge",
                    "p3-16xlarge",
                    "p3dn-24xlarge",
                    "p4d-24xlarge",
                    "g4dn-12xlarge",
                ],
                "nodes": [1, 2] if small else [1, 2, 3, 4, 5, 6, 7, 8],
                "batch_per_gpu": [64] if small else [16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192],
            },
        }
    )


def test_a_plan_of_five_hundred_candidates(benchmark, request):
    small = not request.config.getoption("benchmark_enable", default=False)
    asked = candidates(small)
    engine = "serial" if small else "local:2"
    found = benchmark.pedantic(lambda: plan(asked, engine=engine, cache=False), rounds=1, iterations=1)
    assert len(found.ranked) + len(found.pruned) == (12 if small else 528)


def layouts(small):
    """Layouts of Llama 3 8B on instances of several clouds."""
    instances = [
        "p4de-24xlarge",
        "p5-48xlarge",
        "p5en-48xlarge",
        "p6-b200-48xlarge",
        "a3-megagpu-8g",
        "nd96isr-h100-v5",
    ]
    some = {"cp": 1, "schedule": "1f1b", "microbatch": [1, 2], "recompute": ["none", "full"]}
    axes = {"tp": 1, "pp": 1, "microbatch": 1} if small else {}
    on = {"on": instances[:2] if small else instances, "gpus": 64, "batch": 256}
    table = {"model": "llama3-8b", **on, **some, **axes}
    return make_layouts({"plan": {"tokens": 1e12}, "failures": FAILURES, "layouts": table})


def test_a_plan_of_five_hundred_layouts_on_instances(benchmark, request):
    small = not request.config.getoption("benchmark_enable", default=False)
    asked = layouts(small)
    engine = "serial" if small else "local:2"
    found = benchmark.pedantic(lambda: plan_layouts(asked, engine=engine, cache=False), rounds=1, iterations=1)
    assert all(one.goodput < 1.0 for one in found.ranked)
    assert small or found.counts()["layouts"] >= 500
    benchmark.extra_info["layouts"] = found.counts()["layouts"]


def ratio():
    """Time of the thousand points in one process over that in two; printed by ``python -m``-style use."""
    times = []
    for engine in ("serial", "local:2"):
        began = time.perf_counter()
        sweep(ddp(), points(1000), engine=engine, record=False, cache=False)
        times.append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    one, two = ratio()
    print(f"serial {one:.1f} s, two processes {two:.1f} s: {one / two:.2f} times as fast")
