"""Rings are found on the wiring: nothing about a DGX is written in the search."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.errors import MachineError
from simperf.hardware import Catalog, build_cluster, build_machine, find_rings

CATALOG = Catalog.load()


def uses(rings):
    count = Counter()
    for ring in rings:
        for a, b in pairwise((*ring.order, ring.order[0])):
            count[frozenset((a, b))] += ring.links
    return count


@pytest.mark.parametrize(
    ("name", "links", "total"),
    [
        ("book-8v100", [2, 1], 54e9),
        ("dgx-1v", [2, 1], 60e9),
        ("dgx-1p", [1, 1], 36e9),
        ("mi300x-8gpu", [1, 1, 1], 144e9),
        ("a100-4gpu", [2, 2, 2], 120e9),
        ("p3-16xlarge", [2, 1], 60e9),
        ("p3-8xlarge", [1, 1], 40e9),
    ],
)
def test_nvlink_graphs_are_taken_apart(name, links, total):
    machine = CATALOG.machine(name)
    rings = find_rings(machine)
    assert [ring.links for ring in rings] == links
    assert sum(ring.bandwidth for ring in rings) == pytest.approx(total)
    for ring in rings:
        assert sorted(ring.order) == sorted(machine.gpus)
    for pair, count in uses(rings).items():
        a, b = sorted(pair)
        assert count <= machine.edges[f"{a}>{b}"].count


def test_dgx_1v_rings_are_the_double_and_the_single_links():
    machine = CATALOG.machine("dgx-1v")
    double, single = find_rings(machine)
    for ring, count in ((double, 2), (single, 1)):
        for a, b in pairwise((*ring.order, ring.order[0])):
            assert machine.edges[f"{a}>{b}"].count == count


def test_book_all_reduce_on_eight_v100():
    """160 MB over 3 x 18 GB/s: 5.185 ms; the book drops (n-1)/n and rounds to 6 (section 12.7.2)."""
    bandwidth = sum(ring.bandwidth for ring in find_rings(CATALOG.machine("book-8v100")))
    assert 2 * 7 / 8 * 160e6 / bandwidth == pytest.approx(5.185e-3, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "bandwidth"), [("dgx-2", 6 * 20e9), ("dgx-a100", 12 * 20e9), ("dgx-h100", 18 * 20.6e9)]
)
def test_behind_nvswitch_any_order_is_a_ring(name, bandwidth):
    machine = CATALOG.machine(name)
    for order in (machine.gpus, machine.gpus[::-1], machine.gpus[::2] + machine.gpus[1::2]):
        (ring,) = find_rings(machine, order)
        assert (ring.order, ring.bandwidth) == (order, pytest.approx(bandwidth))


def test_without_nvlink_the_ring_shares_what_its_hops_share():
    machine = CATALOG.machine("rtx4090-8gpu")
    (ring,) = find_rings(machine)
    assert ring.links == 0
    assert ring.bandwidth == pytest.approx(CATALOG.link("pcie4-x16").bandwidth)


@pytest.mark.parametrize(
    ("name", "count", "link"),
    [("dgx-a100-x4", 8, "infiniband-hdr"), ("dgx-1v-x4", 4, "infiniband-edr"), ("p4d-x2", 4, "efa-100g")],
)
def test_between_servers_each_nic_has_a_ring(name, count, link):
    machine = CATALOG.machine(name)
    rings = find_rings(machine)
    assert len(rings) == count
    for ring in rings:
        assert sorted(ring.order) == sorted(machine.gpus)
        assert ring.bandwidth == pytest.approx(CATALOG.link(link).bandwidth)


@pytest.mark.parametrize("ranks", [[], ["gpu0"], ["gpu0", "gpu0"]])
def test_too_few_ranks(ranks):
    with pytest.raises(MachineError, match="two different ranks"):
        find_rings(CATALOG.machine("dgx-1v"), ranks)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 6), st.lists(st.permutations(range(6)), min_size=1, max_size=3))
def test_rings_that_were_wired_are_found_again(size, permutations):
    """A union of k Hamiltonian cycles has a decomposition into k units of links; no fewer may be found."""
    links = Counter()
    for order in permutations:
        cycle = [rank for rank in order if rank < size]
        for pair in pairwise([*cycle, cycle[0]]):
            links[tuple(sorted(pair))] += 1
    spec = {
        "node": [{"id": f"gpu{{0..{size - 1}}}", "kind": "gpu"}],
        "link": [
            {"a": f"gpu{a}", "b": f"gpu{b}", "part": "nvlink2", "count": n} for (a, b), n in sorted(links.items())
        ],
    }
    rings = find_rings(build_machine(spec, CATALOG))
    assert sum(ring.links for ring in rings) == len(permutations)
    for pair, count in uses(rings).items():
        a, b = sorted(int(name[3:]) for name in pair)
        assert count <= links[a, b]


@pytest.mark.parametrize("fabric", [{"fabric": "fat-tree", "servers_per_leaf": 2}, {"fabric": "rail"}, {}])
@pytest.mark.parametrize("server", ["dgx-a100", "p3-16xlarge", [("dgx-a100", 2), ("p3-16xlarge", 1)]])
def test_rings_of_a_cluster_carry_what_its_links_allow_route_by_route(server, fabric):
    """Routes of one class are found once; every ring's bandwidth is that of its scarcest link all the same."""
    machine = build_cluster(server, 3 if isinstance(server, str) else 1, link="infiniband-hdr", **fabric)
    rings = find_rings(machine)
    routes = [[machine.route(a, b) for a, b in pairwise((*ring.order, ring.order[0]))] for ring in rings]
    uses = Counter(name for row in routes for route in row for name in route.resources)
    for ring, row in zip(rings, routes, strict=True):
        assert ring.bandwidth == min(machine.resources[name] / uses[name] for route in row for name in route.resources)
        assert ring.links == 0
