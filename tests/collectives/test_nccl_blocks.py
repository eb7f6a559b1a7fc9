"""Multiprocessors and memory traffic of NCCL's kernels, against logs of NCCL and by their definition."""

import pytest

from simperf.collectives.nccl_blocks import MOST, channels_of, kernel_blocks, memory_traffic
from simperf.hardware import Catalog, build_machine
from simperf.training.pipelined.communicators import Payload
from simperf.training.pipelined.groups import MOST_OF_MEMORY, ClassGroup, ClassMember
from tests.training.pipelined.small import session


@pytest.mark.parametrize(
    ("machine", "ranks", "nics", "expected"),
    [
        ("dgx-a100", 8, 0, 24),  # nccl-tests, issue 100
        ("dgx-h100", 8, 0, 24),
        ("dgx-1v", 8, 0, 12),
        ("dgx-a100-x4", 32, 8, 16),  # NVIDIA/nccl, issue 689
        ("dgx-a100-x4", 32, 1, 2),
        ("dgx-h100-x128", 16, 8, 16),
        ("dgx-h100-x128", 16, 2, 8),  # of 400 Gbit/s: issue 1189
    ],
)
def test_channels_are_those_of_logs(machine, ranks, nics, expected):
    there = build_machine({"name": machine}, Catalog.load())
    assert channels_of(there, there.gpus[:ranks], nics=nics) == expected


def test_kernels_have_no_more_blocks_than_a_device_gives_them_and_none_for_one_rank():
    for size in (1.0, 1e3, 1e6, 1e9):
        for algorithm, protocol in (("ring", "LL"), ("tree", "LL128"), ("ring", "Simple"), ("direct", "Simple")):
            blocks = kernel_blocks(algorithm, protocol, size, 24, ranks=8, servers=1, generation="hopper")
            assert 1 <= blocks <= MOST
    assert kernel_blocks("ring", "Simple", 1e9, 24, ranks=1, servers=1, generation="hopper") == 0
    assert kernel_blocks("in-network", "Simple", 1e9, 24, ranks=8, servers=1, generation="hopper") == 16


def test_traffic_is_no_less_than_what_is_sent_and_received():
    for name, passes in (("all-gather", 1), ("reduce-scatter", 1), ("all-reduce", 2), ("all-to-all", 1)):
        sent = 1e9 * 7 / 8 * passes
        assert 2 * sent <= memory_traffic(name, 1e9, 8) <= 3 * sent


@pytest.mark.parametrize("name", ["dgx-1v", "dgx-a100", "dgx-h100", "dgx-b200"])
def test_a_collective_takes_half_of_the_memory_at_most_so_that_kernels_do_not_slow_it(name):
    m = session(name)
    nodes = m.machine.gpus[:8]
    member = ClassMember(tuple(range(8)), m.simulation.device(nodes[0]))
    group = ClassGroup(m, nodes, [member], plans={})
    for collective in ("all-reduce", "all-gather", "reduce-scatter"):
        held = group.footprint(Payload(collective, 1e9), member.device)
        assert 0.0 < held["compute"] < 0.25
        assert 0.0 < held["memory"] < MOST_OF_MEMORY
