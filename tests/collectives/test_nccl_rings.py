"""NCCL's rings and chains (simperf.collectives.nccl_rings) and what runs where (simperf.collectives.nccl_plans)."""

import math
from dataclasses import replace

import numpy as np
import pytest

from simperf.collectives import Transport, execute
from simperf.collectives.interpret import problems_of
from simperf.collectives.nccl_plans import Shape
from simperf.collectives.nccl_rings import Pace, chains, pipelined, ring_time, turned
from simperf.collectives.pace import paces
from simperf.collectives.placement import place
from simperf.hardware import Catalog, build_cluster

CATALOG = Catalog.load()
CLUSTER = build_cluster("dgx-a100", 2, link="infiniband-hdr")


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("machine", [CATALOG.machine("dgx-1v"), CLUSTER], ids=["cube-mesh", "two-servers"])
def test_a_paced_ring_takes_what_the_executor_says(collective, machine):
    """The closed form is the time of the same rings in pipeline style, played send by send."""
    shape = Shape(machine, machine.gpus, collective)
    plan, _ = shape.make("ring", 1)
    placement = place(plan, machine, ranks=machine.gpus)
    rates = paces(plan, placement)
    delays = {"nvlink": 3e-6, "pcie": 5e-6, "network": 40e-6}
    for nbytes, efficiency in ((1e4, 1.0), (1e8, 0.92)):
        transport = Transport(start=8e-6, media=delays, efficiency=efficiency, caps=rates)
        found = ring_time(plan, shape.orders, placement, transport, Pace(rates), nbytes)
        played = execute(pipelined(plan), machine, nbytes=nbytes, ranks=machine.gpus, transport=transport, exact=True)
        assert found == pytest.approx(played.time, rel=1e-9)


def test_the_last_step_moves_bytes_inside_memory():
    shape = Shape(CATALOG.machine("dgx-a100"), CATALOG.machine("dgx-a100").gpus, "all-reduce")
    plan, _ = shape.make("ring", 1)
    placement = place(plan, shape.machine, ranks=shape.ranks)
    transport = Transport()
    pace = Pace(paces(plan, placement), copy=1e11)
    less = ring_time(plan, shape.orders, placement, transport, replace(pace, copy=math.inf), 8e9)
    assert ring_time(plan, shape.orders, placement, transport, pace, 8e9) - less == pytest.approx(1e9 / 1e11)


def test_staged_rings_have_one_more_step():
    shape = Shape(CATALOG.machine("dgx-a100"), CATALOG.machine("dgx-a100").gpus, "all-gather")
    plan, _ = shape.make("ring", 1)
    placement = place(plan, shape.machine, ranks=shape.ranks)
    rates = tuple(1e9 for _ in plan.channels)
    one = ring_time(plan, shape.orders, placement, Transport(), Pace(rates), 8e9)
    staged = ring_time(plan, shape.orders, placement, Transport(), Pace(rates, host=rates), 8e9)
    assert staged / one == pytest.approx(8 / 7, rel=1e-3)


@pytest.mark.parametrize("name", ["broadcast", "reduce"])
def test_chains_deliver_everything(name):
    plan = chains(name, [[0, 2, 1, 3], [3, 1, 2, 0]], [0.5, 0.5], chunks=5)
    assert problems_of(plan) == []
    assert plan.sent == pytest.approx(1.0), "every rank but one passes on what it gets"


def test_pipelined_rings_deliver_everything():
    plan, _ = Shape(CLUSTER, CLUSTER.gpus, "all-reduce").make("ring", 1)
    assert problems_of(pipelined(plan)) == []


def test_turned_rings_enter_servers_at_another_rank():
    orders = turned([[0, 1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], 1)
    assert orders == [[1, 2, 0, 4, 5, 3]]
    assert turned([[0, 1, 2]], [[0, 1, 2]], 3) == [[0, 1, 2]]


def test_rings_go_both_ways_over_nvlink_only():
    """A PCIe ring fills every GPU's link in both directions already; NCCL looks for no second one."""
    dgx, pcie = CATALOG.machine("dgx-a100"), CATALOG.machine("pcie-4gpu")
    assert len(Shape(dgx, dgx.gpus, "all-reduce").orders) == 2
    assert len(Shape(pcie, pcie.gpus, "all-reduce").orders) == 1


def test_as_many_heads_as_adapters_and_more_channels_where_they_take_turns():
    assert len(Shape(CLUSTER, CLUSTER.gpus, "all-reduce").heads(inside=False)) == 8
    assert Shape(CLUSTER, CLUSTER.gpus, "all-reduce").adapters() == 8
    two = build_cluster("p3dn-24xlarge", 2, link="ethernet-100g-jumbo")
    one = Shape(two, two.gpus, "all-reduce")
    spread = Shape(two, two.gpus, "all-reduce", spread=True)
    assert (len(one.heads(inside=False)), len(spread.heads(inside=False))) == (1, 4)
    assert len(spread.orders) == 4 * len(one.orders)
    assert np.isclose(sum(spread.shares), 1.0)


def test_chunks_are_those_of_the_buffers():
    shape = Shape(CLUSTER, CLUSTER.gpus, "all-reduce")
    assert shape.chunks("ring", 1e9) == 1, "a ring's chunks are the ranks'"
    assert shape.chunks("tree", 16 * 2.0**20) == 8, "small slices fill the slots"
    assert shape.chunks("tree", 16 * 2.0**25) == 64
