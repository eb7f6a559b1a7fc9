"""Speed of data-parallel steps, kernel by kernel, from 8 GPUs to 16,384, beside raw SimPy of as many kernels."""

import resource

import pytest
import simpy

from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_cluster
from simperf.training.driver import train
from simperf.training.job import Devices, Job
from simperf.training.replica import Traced
from simperf.training.strategies import DDP
from simperf.workload.zoo import load

CATALOG = Catalog.load()


def machine(servers, fabric="rail"):
    if servers == 1:
        return CATALOG.machine("dgx-h100")
    if fabric == "fat-tree":
        options = {"link": "infiniband-ndr", "servers_per_leaf": 32, "oversubscription": 2.0}
        return build_cluster("dgx-h100", servers, fabric=fabric, **options)
    return build_cluster("dgx-h100", servers, fabric="rail", switch="infiniband-ndr-switch", link="infiniband-ndr")


def step(wired, exact=None):
    """One DDP step of ResNet-50, batch 64 a GPU."""
    m = Session(Simulation(wired), profile=CATALOG.frontend("pytorch"))
    algorithm = "hierarchical" if len(wired.servers) > 1 else "ring"
    run = Job(
        Traced(load("resnet50"), "tf32"),
        DDP(algorithm),
        devices=Devices(exact="yes" if exact else "auto"),
        batch_per_gpu=64,
        steps=1,
    )
    m.play(train(m, run))
    return m


def raw_simpy(ranks, kernels):
    """As many timeouts as there are kernels on all ranks, a process a rank."""
    env = simpy.Environment()

    def rank():
        for _ in range(kernels):
            yield env.timeout(1e-4)

    for _ in range(ranks):
        env.process(rank())
    env.run()


@pytest.mark.parametrize(
    ("servers", "fabric", "limit"),
    [(1, "", 0.1), (128, "rail", 1.0), (2048, "rail", 5.0), (128, "fat-tree", 1.0), (2048, "fat-tree", 5.0)],
)
def test_a_ddp_step(benchmark, shown, servers, fabric, limit):
    step(machine(1))  # imports and the model
    taken, _ = shown(step, lambda: machine(servers, fabric))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # [KiB], of all benchmarks so far
    assert benchmark.disabled or peak < 1e6 * 1.5
    assert benchmark.disabled or taken < 2 * limit  # twice the aim, because a test machine may be busy


def test_a_thousand_ranks_cost_less_than_raw_simpy_of_their_kernels(benchmark, shown, seconds):
    wired = machine(128)
    step(wired)
    kernels = sum(map(len, (load("resnet50").at(64, "tf32").forward, load("resnet50").at(64, "tf32").backward)))
    taken, _ = shown(lambda: step(wired))
    raw, _ = seconds(lambda: raw_simpy(1024, kernels))
    benchmark.extra_info["raw"] = raw
    assert benchmark.disabled or taken < raw


def test_every_rank_simulated_is_no_slower_than_twelve_times_raw_simpy(benchmark, shown, seconds):
    wired = machine(1)
    step(wired, exact=True)
    kernels = len(load("resnet50").at(64, "tf32").ops)
    taken, _ = shown(lambda: step(wired, exact=True))
    raw, _ = seconds(lambda: raw_simpy(8, 2 * kernels))
    benchmark.extra_info["raw"] = raw
    assert benchmark.disabled or taken < 12 * raw
