"""Asynchronous workers a second, beside one process a worker over the bare flow network in the same run.

    pytest tests/benchmarks/test_servers.py --benchmark-enable --benchmark-columns=min,median

Goal: 256 asynchronous workers, 100 steps each, with jitter, in 10 s or less, whether the server is idle
most of the time, its port is full (all transfers at once, or eight at a time) or its memory is; BERT-large on
32 machines and 32 servers, slice by slice, in 5 s.
"""

import random

import pytest
import simpy

from simperf.cost import CostSettings
from simperf.engine.network import FlowNetwork
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_cluster, build_machine
from simperf.programs import PROGRAMS

WORKERS, STEPS, PORT = 256, 100, 50e9
CASES = {
    "idle": {"weights": 1e6},
    "port-shared": {"weights": 100e6},
    "port-full": {"weights": 100e6, "accepts": 8},
    "memory-full": {"weights": 1e6, "apply": 3.0, "server_memory": 1e9},
}


@pytest.fixture(scope="module")
def machine():
    link = {"b": "hub", "bandwidth": "50 GB/s", "latency": "250 ns"}
    ends = {f"gpu{{0..{WORKERS - 1}}}": {"gpu": "v100-pcie-16gb"}, "cpu0": {"cpu": "xeon-e5-2698v4"}}
    nodes = [{"id": name, **part} for name, part in ends.items()] + [{"id": "hub", "kind": "switch"}]
    return build_machine({"node": nodes, "link": [{"a": end, **link} for end in ends]}, Catalog.load())


def bert(catalog):
    cluster = build_cluster("v100-8gpu-rdma", 64, catalog=catalog, link="infiniband-edr")
    session = Session(Simulation(cluster), profile=catalog.frontend("mxnet"))
    plan = {
        "model": "bert-large-128",
        "precision": "fp16-master",
        "alone": 224.0,
        "batch": 64,
        "add": 3.0,
        "apply": 0.0,
    }
    plan |= {
        "servers": 32,
        "where": "dedicated",
        "reduction": "ring",
        "slice_size": 4.096e6,
        "connections": 1,
        "steps": 2,
    }
    session.play(PROGRAMS["parameter-server"].function(session, **plan))
    return session


def bare():
    """Compute, push, pull: no frontend, no stream, no store, no staleness."""
    env = simpy.Environment()
    ports = [f"{way}{worker}" for worker in range(WORKERS) for way in ("up", "down")]
    network = FlowNetwork(env, dict.fromkeys([*ports, "in", "out"], PORT))
    draw = random.Random(0)

    def worker(number):
        for _ in range(STEPS):
            yield env.timeout(0.1 * draw.lognormvariate(-0.045, 0.3))
            yield network.transfer((f"up{number}", "in"), 1e6, latency=5e-7)
            yield network.transfer(("out", f"down{number}"), 1e6, latency=5e-7)

    for number in range(WORKERS):
        env.process(worker(number))
    env.run()
    return env.now


def store(machine, **options):
    session = Session(Simulation(machine), cost=CostSettings(sharp=True))
    plan = {"steps": STEPS, "layers": 1, "backward": 0.1, "mode": "asynchronous", "jitter": 0.3}
    session.play(PROGRAMS["parameter-server"].function(session, **{**plan, "add": 0.0, "apply": 0.0, **options}))
    return session


def test_bare_processes_and_flows(shown):
    """The baseline: 51,200 flows of 256 processes."""
    assert shown(bare)[1] > STEPS * 0.09


@pytest.mark.parametrize("case", CASES)
def test_asynchronous_workers(shown, machine, case):
    _, session = shown(lambda: store(machine, **CASES[case]))
    assert session.metrics["staleness mean"][0] == pytest.approx(WORKERS - 1, rel=0.01)


def test_bert_on_equal_machines(benchmark, shown):
    """One machine is simulated for all 32; more than 600 slices a step go through rings, copies, wires and sums."""
    taken, session = shown(bert, Catalog.load)
    assert session.metrics["scaling efficiency"][0] > 0.8
    assert any("one is simulated for all" in note for note in session.notes)
    assert benchmark.disabled or taken < 2 * 5.0  # twice the aim, because a test machine may be busy
