"""Which ranks share a server, and which servers are built and used alike."""

import pytest

from simperf.hardware import Catalog, build_cluster, build_topology
from simperf.layout.locality import by_server, local_name, server_classes, server_count


@pytest.fixture(scope="module")
def mixed():
    """Two servers of four GPUs and two of eight."""
    return build_cluster([("p3-8xlarge", 2), ("p3-16xlarge", 2)], link="ethernet-10g")


def test_servers_come_in_the_order_of_ranks(mixed):
    gpus = mixed.gpus
    nodes = [gpus[8], gpus[0], gpus[9], gpus[1]]
    assert by_server(mixed, nodes) == {"n2": (0, 2), "n0": (1, 3)}
    assert server_count(mixed, nodes) == 2
    assert list(by_server(mixed, gpus)) == ["n0", "n1", "n2", "n3"]
    assert by_server(mixed, []) == {}


def test_a_node_has_a_name_within_its_server(mixed):
    assert [local_name(node) for node in (mixed.gpus[0], mixed.gpus[-1], "gpu3")] == ["gpu0", "gpu7", "gpu3"]


def test_equal_servers_are_one_class(mixed):
    found = [list(one) for one in server_classes(mixed, mixed.gpus)]
    assert found == [["n0", "n1"], ["n2", "n3"]]


def test_a_server_that_is_used_otherwise_is_a_class_of_its_own(mixed):
    part = (*mixed.gpus[:4], mixed.gpus[4], mixed.gpus[5])
    assert [list(one) for one in server_classes(mixed, part)] == [["n0"], ["n1"]]
    apart = ["slow" if node == "n1/gpu2" else "" for node in mixed.gpus]
    assert [list(one) for one in server_classes(mixed, mixed.gpus, apart)] == [["n0"], ["n1"], ["n2", "n3"]]


def test_one_server_is_one_class():
    dgx = Catalog.load().machine("dgx-1v")
    (found,) = server_classes(dgx, dgx.gpus)
    assert list(found.values()) == [tuple(range(8))]


def test_ranks_of_a_topology_are_in_no_server():
    ring = build_topology("ring", 3, bandwidth=1e9)
    assert by_server(ring, ring.gpus) == {"": (0, 1, 2)}
