"""The bench: rows, bounds (simperf.collectives.floor), plans that suit a machine, sizes and winners."""

import pytest

from simperf.collectives import Transport, algorithms, bus_factor
from simperf.collectives.bench import Row, best_rows, measure, sizes_between, switch_points
from simperf.collectives.calls import Call
from simperf.collectives.floor import floor, needs
from simperf.collectives.machine_plans import plan_for, suitable_chunks, switch_sites
from simperf.collectives.plan import COLLECTIVES
from simperf.collectives.settings import find_algorithm
from simperf.errors import FloorError, InputError, UnknownNameError
from simperf.hardware import Catalog, build_cluster, build_topology
from tests.collectives.machines import star

CATALOG = Catalog.load()


def test_a_row_has_the_definitions_of_nccl_tests():
    row = measure(Call(star(), "all-reduce", "ring", nbytes=8e6, ranks=star().gpus))
    assert row.time == pytest.approx(14 * (1e6 / 50e9 + 500e-9), rel=1e-12)
    assert row.algbw == pytest.approx(8e6 / row.time)
    assert row.busbw == pytest.approx(row.algbw * 1.75)
    assert row.load == pytest.approx(14 * 1e6 / 50e9 / row.time)
    assert row.link in star().resources
    assert row.floor <= row.time


@pytest.mark.parametrize(
    ("collective", "factor"), [("all-reduce", 1.5), ("all-to-all", 0.75), ("reduce-scatter", 0.75), ("broadcast", 1.0)]
)
def test_bus_factors(collective, factor):
    assert bus_factor(collective, 4) == factor


def test_a_bus_factor_needs_a_collective_and_a_rank():
    assert bus_factor("all-reduce", 1) == 0.0
    with pytest.raises(UnknownNameError, match="all-reduce"):
        bus_factor("all-reduc", 4)
    with pytest.raises(InputError):
        bus_factor("broadcast", 0)


def test_floor_of_an_all_reduce_is_what_a_ring_reaches_without_latency():
    wiring = build_topology("star", 16, bandwidth=10e9)
    bound = floor(wiring, "all-reduce", ranks=wiring.gpus, nbytes=1e9)
    assert bound == pytest.approx(2 * 15 / 16 * 0.1, rel=1e-12)
    assert measure(Call(wiring, "all-reduce", "ring", nbytes=1e9, ranks=wiring.gpus)).time == pytest.approx(
        bound, rel=1e-9
    )


def test_floor_counts_the_ports_of_servers_and_slow_links():
    cluster = build_cluster("dgx-a100", 4, link="infiniband-hdr")
    wide = sum(port.bandwidth for port in cluster.servers[0].ports)
    bound = floor(cluster, "all-reduce", ranks=cluster.gpus, nbytes=1e9)
    assert bound == pytest.approx(2 * 3 / 4 * 1e9 / wide, rel=1e-9)
    slow = star(changed={"r1>": 1e9})
    assert floor(slow, "all-reduce", ranks=slow.gpus, nbytes=1e9) == pytest.approx(1.0)
    assert needs("all-gather", 4) == (0.25, 0.75, 3.0)


@pytest.mark.parametrize(("name", "payload"), [("broadcast", 1), ("reduce", 1), ("gather", 5 / 6), ("scatter", 5 / 6)])
def test_the_port_of_a_root_bounds_and_is_reached(name, payload):
    wiring = build_topology("star", 6, bandwidth=10e9)
    bound = floor(wiring, name, ranks=wiring.gpus, nbytes=1e9)
    assert bound == pytest.approx(payload * 0.1, rel=1e-12)
    algorithm = "direct" if payload < 1 else "pipelined-tree"
    options = {"degree": 1, "chunks": 1000} if payload == 1 else {}
    time = measure(Call(wiring, name, algorithm, nbytes=1e9, ranks=wiring.gpus), **options).time
    assert bound * (1 - 1e-9) <= time <= bound * 1.01
    slow = build_topology("star", 6, bandwidth=10e9, changed={"r1>": 1e9, ">r1": 1e9})
    # The slow rank may be the root, so it counts only where another would have to wait for it.
    assert floor(slow, name, ranks=slow.gpus, nbytes=1e9) == pytest.approx(payload * 0.1, rel=1e-12)


@pytest.mark.parametrize("machine", ["dgx-1v", "dgx-a100", "pcie-8gpu", "p2-8xlarge", "a100-4gpu"])
@pytest.mark.parametrize("nbytes", [8, 1 << 20])
def test_nothing_is_faster_than_its_floor(machine, nbytes):
    built = CATALOG.machine(machine)
    for name in COLLECTIVES:
        for algorithm in algorithms(name):
            if algorithm != "in-network":
                measure(Call(built, name, algorithm, nbytes=nbytes, ranks=built.gpus))


def test_a_time_below_its_floor_is_a_defect(monkeypatch):
    monkeypatch.setattr("simperf.collectives.bench.floor", lambda *args, **options: 1.0)
    with pytest.raises(FloorError, match="below the bound"):
        measure(Call(star(), "all-reduce", "ring", nbytes=8, ranks=star().gpus))


def test_sizes():
    assert sizes_between(8, 100, factor=2.0) == [8, 16, 32, 64]
    assert sizes_between(0, 4, factor=2.0) == [0, 1, 2, 4]
    assert sizes_between(10, 30, step=10) == [10, 20, 30]
    for wrong in ({"factor": 1.0}, {"step": 0}, {"factor": 1.0001}):
        with pytest.raises(InputError):
            sizes_between(1, 1 << 30, **wrong)
    with pytest.raises(InputError, match="larger than"):
        sizes_between(9, 8, factor=2.0)


def row(algorithm, nbytes, time):
    return Row(algorithm, nbytes, time, 0.0, 0.0, 0.0, "", 0.0, "")


def test_winners_and_where_they_change():
    tables = {
        "tree": [row("tree", 1, 1.0), row("tree", 2, 2.0), row("tree", 4, 9.0)],
        "ring": [row("ring", 1, 3.0), row("ring", 2, 3.0), row("ring", 4, 4.0)],
    }
    best = best_rows(tables)
    assert [each.algorithm for each in best] == ["tree", "tree", "ring"]
    assert switch_points(best) == [("tree", 1, 2), ("ring", 4, 4)]


def test_plans_suit_the_machine():
    dgx = CATALOG.machine("dgx-1v")
    assert len(plan_for(dgx, "all-reduce", "multi-ring", ranks=dgx.gpus).channels) == 2
    cluster = build_cluster("dgx-a100", 2, link="infiniband-hdr")
    hierarchical = plan_for(cluster, "all-reduce", "hierarchical", ranks=cluster.gpus)
    assert hierarchical.steps == 7 + 2 + 7
    with pytest.raises(InputError, match="equally many"):
        plan_for(cluster, "all-reduce", "hierarchical", ranks=cluster.gpus[:12])
    with pytest.raises(InputError, match="no servers"):
        plan_for(star(), "all-reduce", "hierarchical", ranks=star().gpus)
    with pytest.raises(InputError, match="no switch"):
        plan_for(star(), "all-reduce", "in-network", ranks=star().gpus)


def test_more_bytes_want_more_chunks_and_more_latency_fewer():
    machine = star(64)
    few = suitable_chunks(machine, machine.gpus, 1 << 16)
    many = suitable_chunks(machine, machine.gpus, 1 << 24)
    slow = suitable_chunks(machine, machine.gpus, 1 << 24, transport=Transport(step_latency=50e-6))
    assert 1 <= few < slow < many
    assert suitable_chunks(machine, machine.gpus, 0) == 1


def test_switches_of_servers():
    cluster = build_cluster("dgx-h100", 2, link="infiniband-ndr")
    sites = switch_sites(cluster, cluster.gpus, (0, 3))
    assert sites == ("n0/nvswitch0", "n1/nvswitch0", "n0/gpu0", "n0/gpu3", "n1/gpu0", "n1/gpu3")
    with pytest.raises(InputError, match="NVSwitch"):
        switch_sites(CATALOG.machine("dgx-1v"), CATALOG.machine("dgx-1v").gpus)


@pytest.mark.parametrize(
    "machine", [build_topology("star", 12, bandwidth=10e9, latency=1e-6), CATALOG.machine("pcie-4gpu-x4")]
)
@pytest.mark.parametrize("nbytes", [64, 1 << 16, 1 << 24])
def test_a_tree_of_open_degree_is_the_faster_of_two(machine, nbytes):
    def time(exact=False, **options):
        call = Call(machine, "all-reduce", "pipelined-tree", nbytes=nbytes, ranks=machine.gpus, exact=exact)
        return measure(call, **options).time

    both = time(degree=2), time(degree=1, overlap=False)
    assert time() == min(both)
    assert time(exact=True) == pytest.approx(min(both), rel=1e-12)


def test_aliases_and_nccl_are_known_names():
    assert find_algorithm("all-reduce", "tree") == "double-binary-tree"
    assert find_algorithm("all-reduce", "rabenseifner") == "halving-doubling"
    assert find_algorithm("all-to-all", "direct") == "direct"
    assert find_algorithm("all-reduce", "nccl-ring") == "nccl-ring"
    for name in ("ncl", "NCCL"):
        with pytest.raises(UnknownNameError, match="did you mean 'nccl'"):
            find_algorithm("all-reduce", name)
    with pytest.raises(UnknownNameError, match="nccl, nccl-ring"):
        find_algorithm("all-reduce", "zzz")
    with pytest.raises(UnknownNameError):
        find_algorithm("gather", "nccl")


def test_a_hierarchy_takes_aliases():
    machine = CATALOG.machine("pcie-4gpu-x4")
    named, short = (
        measure(Call(machine, "all-reduce", "hierarchical", nbytes=1 << 20, ranks=machine.gpus), outer=outer).time
        for outer in ("double-binary-tree", "tree")
    )
    assert named == short
