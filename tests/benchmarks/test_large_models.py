"""Large models: a step of GPT-3 175B on 1,024 GPUs, of Llama 3 405B on 16,384, and one of every rank and kernel.

Machine, classes of ranks and the report are included; baselines of plain work of the same size stand beside them:

pytest tests/benchmarks/test_large_models.py --benchmark-enable --benchmark-columns=median

Imports are excluded. With `--benchmark-timer=time.process_time` other work on the machine is, too; with `-k` one job
runs in a process of its own.
"""

import importlib
import pkgutil

import numpy as np
import pytest
import simpy

from simperf import run
from simperf.scenario import load_scenario

SCENARIO = "large/gpt3-175b-1024-a100"
#: events that two steps of a model play
EVENTS = {"gpt3-175b-1024": 59_000, "llama3-405b-16384": 13_700, "exact-16": 75_800, "deepseek-v3-2048": 185_000}
#: links of communicators that the classes of the largest job are found on
LINKS = 1_000_000

#: packages whose modules a run loads when it first needs them
LOADED = ["collectives", "execution", "hardware", "programs", "scenario", "schedules", "training"]
LOADED += ["workload.transformers"]

LLAMA = [
    "machine.server=dgx-h100",
    "machine.count=2048",
    "machine.fabric.link=infiniband-ndr",
    "machine.fabric.switch=infiniband-ndr-switch",
    "model.name=llama3-405b",
    "layout.pp=16",
    "layout.dp=128",
    "program.batch=2048",
    "program.recompute=none",
    "program.sequence_parallel=true",
    "program.schedule=1f1b",
    "program.chunks=1",
    "program.stage_layers=[7,8,8,8,8,8,8,8,8,8,8,8,8,8,8,7]",
    "program.steps=2",
]


@pytest.fixture(scope="module", autouse=True)
def modules():
    """Modules of a run, imported before it."""
    for name in LOADED:
        package = importlib.import_module(f"simperf.{name}")
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(one.name)


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
def test_as_many_events_of_simpy(benchmark, events):
    """The baseline: what the clock alone needs for as many events."""

    def play():
        env = simpy.Environment()

        def program():
            for _ in range(events):
                yield env.timeout(1.0)

        env.process(program())
        env.run()
        return env.now

    assert benchmark.pedantic(play, rounds=1, iterations=1) == events


def test_as_many_links_of_numpy(benchmark):
    """The baseline of the largest job: sorting the links that its communicators draw on once."""
    links = np.random.default_rng(0).integers(0, LINKS // 8, LINKS)
    assert len(benchmark.pedantic(lambda: np.unique(links), rounds=1, iterations=1)) > LINKS // 9


def test_gpt3_175b_on_1024_gpus(benchmark):
    """Interleaved 1F1B with 64 micro-batches."""

    def play():
        scenario = load_scenario(SCENARIO, ["program.batch=1024", "program.steps=2"])
        return run(scenario, record=False)

    result = benchmark.pedantic(play, rounds=1, iterations=1)
    assert result.metrics["GPUs"].value == 1024


def test_llama3_405b_on_16384_gpus(benchmark):
    """Sixteen stages of eight ranks that share matrices and tokens, 128 replicas."""
    result = benchmark.pedantic(lambda: run(load_scenario(SCENARIO, LLAMA), record=False), rounds=1, iterations=1)
    assert result.metrics["GPUs"].value == 16384


def test_deepseek_v3_on_2048_gpus_with_uneven_experts(benchmark):
    """Sixteen stages, experts over 64 ranks, one of sixteen loads in each layer of each of eight micro-batches."""
    uneven = {"program.expert_load": "power-law-0.1", "program.expert_draws": 16, "program.batch": 1024}
    scenario = load_scenario("large/deepseek-v3-2048-h800", uneven)
    result = benchmark.pedantic(lambda: run(scenario, record=False), rounds=1, iterations=1)
    assert result.metrics["GPUs"].value == 2048


def test_every_kernel_on_every_rank(benchmark):
    """Sixteen ranks (2 x 4 x 2), eight layers, eight micro-batches a replica."""
    exact = {
        "machine.count": 2,
        "model": {"layers": 8, "hidden": 8192, "heads": 64, "vocabulary": 51200, "sequence": 2048},
        "layout": {"tp": 2, "pp": 4, "dp": 2, "sharding": "zero-1"},
        "program.batch": 16,
        "program.chunks": 1,
        "program.schedule": "1f1b",
        "program.exact": "yes",
        "program.steps": 2,
    }
    result = benchmark.pedantic(lambda: run(load_scenario(SCENARIO, exact), record=False), rounds=1, iterations=1)
    assert result.metrics["GPUs"].value == 16
