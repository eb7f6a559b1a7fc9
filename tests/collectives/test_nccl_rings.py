"""NCCL's rings and chains (simperf.collectives.nccl_rings) and what runs where (simperf.collectives.nccl_plans)."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.collectives import execute
from simperf.collectives.interpret import problems_of
from simperf.collectives.nccl import Tuner
from simperf.collectives.nccl_kernels import kernel_table
from simperf.collectives.nccl_plans import NcclPlans
from simperf.collectives.nccl_rings import chains, turned
from simperf.collectives.settings import NcclSettings
from simperf.hardware import Catalog, build_cluster
from tests.collectives.machines import pipelined

CATALOG = Catalog.load()
CLUSTER = build_cluster("dgx-a100", 2, link="infiniband-hdr")


def send_by_send(choice):
    """Time of a choice's plan with an event a send, sends not waiting for each other [s]."""
    machine = choice.placement.machine
    run = execute(
        pipelined(choice.plan),
        machine,
        nbytes=choice.nbytes,
        transport=choice.transport,
        placement=choice.placement,
        exact=True,
    )
    return run.time


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("machine", [CATALOG.machine("dgx-1v"), CLUSTER], ids=["cube-mesh", "two-servers"])
@pytest.mark.parametrize("nbytes", [1e4, 1e8])
def test_channels_take_what_their_sends_take(collective, machine, nbytes):
    """A ring's channels as flows take the time of the same rings in pipeline style, played send by send."""
    for choice in Tuner(machine, machine.gpus, collective=collective, settings=NcclSettings(only=("ring",))).choices(
        nbytes
    ):
        assert choice.run.time - choice.channels.last == pytest.approx(send_by_send(choice), rel=1e-9)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("chunks", [1, 3, 7])
def test_chains_take_what_their_sends_take(collective, chunks):
    tuner = Tuner(CLUSTER, CLUSTER.gpus, collective=collective)
    nbytes = chunks * len(tuner.shape.orders) * 128 * 1024.0
    assert tuner.shape.chunks("ring", nbytes) == chunks
    for choice in tuner.choices(nbytes):
        plan = chains(collective, tuner.shape.orders, tuner.shape.shares, chunks=chunks)
        assert choice.run.time == pytest.approx(send_by_send(replace(choice, plan=plan)), rel=1e-9)


@pytest.mark.parametrize("only", ["tree", "in-network"])
@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_trees_take_what_their_sends_take(only, chunks):
    machine = build_cluster("dgx-h100", 3, link="infiniband-ndr", catalog=CATALOG)
    tuner = Tuner(machine, machine.gpus, settings=NcclSettings(only=(only,), in_network=True))
    channels = len(tuner.best(1.0).plan.channels)
    nbytes = chunks * channels * 128 * 1024.0
    for choice in tuner.choices(nbytes):
        plan, _ = tuner.shape.make(only, chunks)
        assert len(plan.channels) == channels
        assert tuner.shape.chunks(only, nbytes) == chunks
        assert choice.run.time == pytest.approx(send_by_send(replace(choice, plan=plan)), rel=1e-9)


def test_bytes_are_those_of_the_plan():
    """Every link moves what the plan's sends move over it, whatever the channels make of it."""
    for machine in (CLUSTER, CATALOG.machine("dgx-1v")):
        for choice in Tuner(machine, machine.gpus).choices(1e8):
            if choice.algorithm != "ring":
                continue
            run = execute(choice.plan, machine, nbytes=1e8, transport=choice.transport, exact=True, ranks=machine.gpus)
            expected = {name: amount for name, amount in run.moved.items() if amount}
            assert dict(choice.run.moved) == pytest.approx(expected, rel=1e-9)


def test_the_last_step_moves_bytes_inside_memory():
    """As fast as the memory moves them, or as NCCL's blocks do where that is known."""
    machine = CATALOG.machine("dgx-1v")
    (choice,) = [one for one in Tuner(machine, machine.gpus).choices(8e9) if one.name == "ring/Simple"]
    copy = min(
        machine.nodes[gpu].part.memory_bandwidth * machine.nodes[gpu].part.efficiency["copy"] for gpu in machine.gpus
    )
    assert choice.channels.last == pytest.approx(1e9 / (copy / 2))
    assert choice.run.time == pytest.approx(max(flow.time for flow in choice.channels.flows) + choice.channels.last)
    machine = CATALOG.machine("dgx-a100")
    (choice,) = [one for one in Tuner(machine, machine.gpus).choices(8e9) if one.name == "ring/Simple"]
    assert choice.channels.last == pytest.approx(1e9 / kernel_table()["ampere", "Simple"].copy)


def test_what_is_staged_is_read_once_more_than_it_is_sent():
    """Two GPUs without peer access: the last of two chunks is still read out of host memory when all is sent."""
    machine = (
        CATALOG.machine("rtx2080ti-2gpu")
        if "rtx2080ti-2gpu" in CATALOG.names("server")
        else CATALOG.machine("desktop-2gpu")
    )
    tuner = Tuner(machine, machine.gpus)
    assert tuner.stages()
    choice = next(one for one in tuner.choices(1e9) if one.name == "ring/Simple")
    flow = choice.channels.flows[0]
    assert flow.drain == pytest.approx(flow.nbytes / 2), "two sends in a row, and three times read or written"
    assert choice.run.time == pytest.approx(choice.channels.time, rel=1e-9)


@pytest.mark.parametrize("name", ["broadcast", "reduce"])
def test_chains_deliver_everything(name):
    plan = chains(name, [[0, 2, 1, 3], [3, 1, 2, 0]], [0.5, 0.5], chunks=5)
    assert problems_of(plan) == []
    assert plan.sent == pytest.approx(1.0), "every rank but one passes on what it gets"


def test_pipelined_rings_deliver_everything():
    plan, _ = NcclPlans(CLUSTER, CLUSTER.gpus, "all-reduce").make("ring", 1)
    assert problems_of(pipelined(plan)) == []


def test_turned_rings_enter_servers_at_another_rank():
    orders = turned([[0, 1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], 1)
    assert orders == [[1, 2, 0, 4, 5, 3]]
    assert turned([[0, 1, 2]], [[0, 1, 2]], 3) == [[0, 1, 2]]


def test_rings_go_both_ways_over_nvlink_only():
    """A PCIe ring fills every GPU's link in both directions already; NCCL looks for no second one."""
    dgx, pcie = CATALOG.machine("dgx-a100"), CATALOG.machine("pcie-4gpu")
    assert len(NcclPlans(dgx, dgx.gpus, "all-reduce").orders) == 2
    assert len(NcclPlans(pcie, pcie.gpus, "all-reduce").orders) == 1


def test_as_many_heads_as_adapters_and_more_channels_where_they_take_turns():
    assert len(NcclPlans(CLUSTER, CLUSTER.gpus, "all-reduce").heads(inside=False)) == 8
    assert NcclPlans(CLUSTER, CLUSTER.gpus, "all-reduce").nics() == 8
    two = build_cluster("p3dn-24xlarge", 2, link="ethernet-100g-jumbo")
    one = NcclPlans(two, two.gpus, "all-reduce")
    spread = NcclPlans(two, two.gpus, "all-reduce", spread=True)
    assert (len(one.heads(inside=False)), len(spread.heads(inside=False))) == (1, 4)
    assert len(spread.orders) == 4 * len(one.orders)
    assert np.isclose(sum(spread.shares), 1.0)


def test_chunks_are_those_of_the_buffers():
    shape = NcclPlans(CLUSTER, CLUSTER.gpus, "all-reduce")
    assert shape.chunks("ring", 1e9) == 1, "a ring's chunks are the ranks'"
    assert shape.chunks("tree", 16 * 2.0**20) == 8, "small slices fill the slots"
    assert shape.chunks("tree", 16 * 2.0**25) == 64
