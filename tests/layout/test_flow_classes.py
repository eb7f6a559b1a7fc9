"""Flows that are alike (classes), routes of a cluster as arrays (plan_routes), bytes by link (moved)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.collectives import execute, make_plan, rounds
from simperf.collectives.links import Hops, Links
from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan_routes import PlanRoutes
from simperf.collectives.rounds import solve
from simperf.collectives.traffic import add_up
from simperf.hardware import Catalog, build_cluster
from simperf.layout.flow_classes import flow_classes


def exchange(n):
    """Everybody to everybody on a star: link 1 + i out of rank i, 1 + n + i into it."""
    src, dst = (part.ravel() for part in np.mgrid[:n, :n])
    apart = src != dst
    return np.stack((1 + src[apart], 1 + n + dst[apart]))


def test_an_exchange_is_one_class_of_flows():
    links, capacity = exchange(30), np.full(61, 10.0)
    capacity[0] = np.inf
    found = flow_classes(links, capacity, [np.zeros(links.shape[1])])
    assert found.count.tolist() == [30 * 29]
    assert found.capacity.tolist() == [np.inf, 600.0]  # a port in is like a port out: a flow crosses two of 60
    assert found.links.ravel().tolist() == [1, 1]
    capacity[5] = 1.0  # one narrow port: its flows, those into its rank, and the rest
    found = flow_classes(links, capacity, [np.zeros(links.shape[1])])
    assert sorted(found.count.tolist()) == [29, 29, 29 * 28]


def test_flows_that_are_all_different_are_left_as_they_are():
    links, capacity = exchange(5), np.array([np.inf, *range(1, 11)])
    assert flow_classes(links, capacity, [np.arange(20.0)]) is None


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_classes_change_no_time(data):
    """Random flows with few different looks, in every way through."""
    count = data.draw(st.integers(2, 40))
    links = data.draw(st.integers(1, 8))
    pick = st.lists(st.lists(st.integers(0, links), min_size=2, max_size=2), min_size=count, max_size=count)
    table = np.array(data.draw(pick)).T
    table[1] = np.where(table[1] == table[0], 0, table[1])

    def some(*values):
        return np.array(data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)))

    start, size = some(0.0, 0.0, 0.5, 3.0), some(1.0, 1.0, 7.0, 0.0)
    hops = Hops(table, np.zeros(count), some(2.0, 2.0, 0.3))
    capacity = np.array([np.inf, *data.draw(st.lists(st.sampled_from([1.0, 5.0]), min_size=links, max_size=links))])
    ends = []
    before = rounds.ALIKE, rounds.MANY
    try:
        for rounds.ALIKE, rounds.MANY in ((2, 64), (1000, 64), (1000, 1), (2, 1)):
            ends.append(solve(start, size, hops, capacity))
    finally:
        rounds.ALIKE, rounds.MANY = before
    for other in ends[1:]:
        assert other == pytest.approx(ends[0], rel=1e-11)


@pytest.mark.parametrize(
    "options",
    [
        {"fabric": "star", "link": "infiniband-hdr"},
        {"fabric": "fat-tree", "link": "infiniband-hdr", "servers_per_leaf": 2, "oversubscription": 2.0},
        {"fabric": "rail", "link": "infiniband-hdr"},
    ],
    ids=["star", "fat-tree", "rail"],
)
def test_routes_of_a_cluster_are_those_that_it_gives_one_by_one(options):
    machine = build_cluster([("dgx-a100", 3), ("dgx-1v", 2)], **options)
    nodes = (*machine.gpus, *machine.cpus[:3], machine.cpus[0])  # two participants on one node
    src, dst = (part.ravel() for part in np.mgrid[: len(nodes), : len(nodes)])
    transport = Transport(step_latency=1e-6, media={"network": 1e-4}, cap=1e12)
    links = Links(Placement(machine, nodes), transport)
    hops, other = links.hops(src, dst), Placement(machine, nodes)
    for column in range(0, len(src), 7):
        hop = other.hop(int(src[column]), int(dst[column]))
        crossed = [int(link) for link in hops.links[:, column] if link]
        assert tuple(links.name(link) for link in crossed) == hop.resources
        assert links.capacity[crossed].tolist() == [machine.resources[name] for name in hop.resources]
        assert hops.latency[column] == transport.latency(hop)
        assert hops.cap[column] == transport.most(hop, 0)


def test_lanes_and_single_servers_are_asked_pair_by_pair():
    lanes = build_cluster("dgx-a100", 4, fabric="fat-tree", link="infiniband-hdr", servers_per_leaf=2, spines=2)
    assert PlanRoutes.of(Placement(lanes, lanes.gpus)) is None
    assert PlanRoutes.of(Placement(Catalog.load().machine("dgx-1v"), ("gpu0",))) is None


def test_a_cluster_asks_for_as_many_routes_as_there_are_kinds():
    machine = build_cluster("dgx-a100", 64, fabric="fat-tree", link="infiniband-hdr", servers_per_leaf=16)
    ways = PlanRoutes.of(Placement(machine, machine.gpus))
    rank = np.arange(len(machine.gpus))
    ways.find(rank, np.roll(rank, -8))
    # eight GPUs of four leaves, to the next server below the leaf or below the next one
    assert len(ways.hops) == 8 * 4 * 2


def test_bytes_of_several_runs_add_up():
    machine, plan = build_cluster("dgx-a100", 2, link="infiniband-hdr"), make_plan("all-reduce", "ring", nranks=16)
    run = execute(plan, machine, nbytes=16e6)
    exact = execute(plan, machine, nbytes=16e6, exact=True)
    used = {name: nbytes for name, nbytes in exact.moved.items() if nbytes}
    assert {name: nbytes for name, nbytes in run.moved.items() if nbytes} == pytest.approx(used)
    assert len(run.moved) == len(dict(run.moved))
    both = add_up([(run.moved, 2), (exact.moved, 1), ({"mine": 1.0}, 3)])
    assert both == pytest.approx({**{name: 3 * nbytes for name, nbytes in used.items()}, "mine": 3.0})
