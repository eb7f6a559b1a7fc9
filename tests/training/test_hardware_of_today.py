"""Servers and clusters of today carry collectives and training: within their bounds, and on every one of them."""

import pytest

import simperf
from simperf.hardware import Catalog
from tests.hardware.test_published import CLUSTERS, SERVERS

CATALOG = Catalog.load()
SIZE = 16 * 2**20


@pytest.mark.parametrize("name", SERVERS)
def test_an_all_reduce_takes_no_less_than_its_links_allow(name):
    machine = CATALOG.machine(name)
    (row,) = simperf.collective("all-reduce", on=name, sizes=[SIZE]).rows
    out = sum(edge.bandwidth for edge in machine.leaving(machine.gpus[0]))
    assert row.time >= SIZE / out  # each GPU sends its payload once at least, also where switches add up
    assert row.floor <= row.time < 10e-3


@pytest.mark.parametrize("name", ["p6-b200-x16", "a3-mega-x16", "a3-ultra-x16", "nd-h200-v5-x16", "gb200-nvl72"])
def test_a_training_step_runs_on_it_and_many_gpus_are_not_faster_each_than_one(name):
    machine = CATALOG.machine(name)
    result = simperf.train("resnet18", on=name, strategy=simperf.DDP(), batch_per_gpu=32)
    assert result.metrics["GPUs"].value == len(machine.gpus)
    assert 0.5 < result.metrics["scaling efficiency"].value <= 1.0


def test_every_cluster_has_routes_between_its_first_and_last_gpu():
    for name in CLUSTERS:
        machine = CATALOG.machine(name)
        route = machine.route(machine.gpus[0], machine.gpus[-1])
        assert route.bandwidth > 0, name
        cards = [node for node in route.nodes if machine.nodes[node].kind == "nic"]
        assert len(cards) == 2, name
