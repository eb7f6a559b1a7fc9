"""Clusters: capacities of their fabrics, routes between servers, and what thousands of servers cost.

Covers simperf.hardware.cluster, fabric, doors (which NICs a flow takes) and lazy (nodes made on demand).
"""

import tracemalloc

import pytest

from simperf.errors import InputError, MachineError
from simperf.hardware import Catalog, Fabric, Machine, Port, ServerSlot, build_cluster, check_machine
from simperf.hardware.build import server_blueprint

CATALOG = Catalog.load()
HDR = CATALOG.link("infiniband-hdr").bandwidth


def test_ids_hosts_and_price():
    machine = CATALOG.machine("p3-16xlarge-x8")
    assert machine.gpus[:2] == ("n0/gpu0", "n0/gpu1")
    assert machine.hosts == tuple(f"n{i}/cpu0" for i in range(8))
    assert machine.host_of("n3/gpu5") == "n3/cpu0"
    assert machine.nodes["n3/gpu5"].server == "n3"
    assert machine.nodes["switch0"].server == ""
    assert machine.price == pytest.approx(8 * 24.48)
    with pytest.raises(MachineError, match="no host"):
        machine.host_of("switch0")


@pytest.mark.parametrize("name", ["dgx-1v", "p3-16xlarge-x8"])
def test_edges_that_leave_a_node_are_found_in_its_server(name):
    machine = CATALOG.machine(name)
    for node in machine.nodes:
        assert machine.leaving(node) == [edge for edge in machine.edges.values() if edge.src == node]


def test_a_route_leaves_and_arrives_by_the_nearest_nics():
    machine = CATALOG.machine("dgx-1v-x4")
    route = machine.route("n0/gpu0", "n3/gpu6")
    assert route.nodes == ("n0/gpu0", "n0/plx0", "n0/nic0", "switch0", "n3/nic3", "n3/plx3", "n3/gpu6")
    assert route.latency == pytest.approx(sum(edge.latency for edge in route.edges))
    assert route.bandwidth == pytest.approx(CATALOG.link("infiniband-edr").bandwidth)


def test_gpus_beside_several_nics_spread_over_them():
    machine = CATALOG.machine("dgx-a100-x4")
    doors = [machine.route(f"n0/gpu{i}", f"n1/gpu{i}").nodes[2] for i in range(8)]
    assert doors == [f"n0/nic{i}" for i in range(8)]


def test_star_has_no_limit_but_its_ports():
    machine = CATALOG.machine("dgx-a100-x4")
    ports = {key for key in machine.resources if key.endswith(">switch0") or key.startswith("switch0>")}
    assert len(ports) == 2 * 4 * 8
    assert all(machine.resources[key] == pytest.approx(HDR) for key in ports)


@pytest.mark.parametrize("oversubscription", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("spines", [None, 1, 4])
def test_fat_tree_carries_what_its_oversubscription_says(oversubscription, spines):
    machine = build_cluster(
        "dgx-a100", 8, fabric="fat-tree", link="infiniband-hdr", servers_per_leaf=4,
        oversubscription=oversubscription, **({"spines": spines} if spines else {}),
    )  # fmt: skip
    check_machine(machine)
    ups = [cap for key, cap in machine.resources.items() if key.startswith("leaf0>spine")]
    assert sum(ups) == pytest.approx(4 * 8 * HDR / oversubscription)
    inside, across = machine.route("n0/gpu0", "n1/gpu0"), machine.route("n0/gpu0", "n7/gpu0")
    assert [n for n in inside.nodes if "/" not in n] == ["leaf0"]
    assert [n[:5] for n in across.nodes if "/" not in n] == ["leaf0", "spine", "leaf1"]


def test_flows_spread_over_several_spines_the_same_way_every_time():
    build = lambda: build_cluster("dgx-a100", 8, fabric="fat-tree", link="infiniband-hdr", servers_per_leaf=4, spines=4)  # noqa: E731
    spines = lambda machine: [machine.route(f"n0/gpu{i}", f"n7/gpu{j}").nodes[4] for i in range(8) for j in range(8)]  # noqa: E731
    first = spines(build())
    assert set(first) == {"spine0", "spine1", "spine2", "spine3"}
    assert spines(build()) == first


def test_rails_join_equal_nics_and_a_spine_joins_rails():
    machine = build_cluster("dgx-h100", 4, fabric="rail", link="infiniband-ndr")
    assert [n for n in machine.route("n0/gpu3", "n2/gpu3").nodes if "/" not in n] == ["rail3"]
    assert [n for n in machine.route("n0/gpu3", "n2/gpu5").nodes if "/" not in n] == ["rail3", "spine0", "rail5"]
    apart = build_cluster("dgx-h100", 4, fabric="rail", link="infiniband-ndr", spine=False)
    nodes = apart.route("n0/gpu3", "n2/gpu5").nodes
    assert len([n for n in nodes if n.startswith("rail")]) == 1


def test_several_kinds_of_server():
    machine = build_cluster([("dgx-1v", 2), ("pcie-4gpu", 1)], link="infiniband-edr", switch="infiniband-edr-switch")
    assert len(machine.gpus) == 20
    assert machine.route("n0/gpu0", "n2/gpu3").nodes[-1] == "n2/gpu3"
    check_machine(machine)


def test_cables_and_flow_limits():
    machine = CATALOG.machine("p5-x2")
    route = machine.route("n0/gpu0", "n1/gpu0")
    assert route.edges[2].count == 4
    assert route.bandwidth == pytest.approx(4 * CATALOG.link("efa-100g").bandwidth)
    assert CATALOG.machine("p3-16xlarge-x8").route("n0/gpu0", "n1/gpu0").flow_limit == pytest.approx(1.25e9)


def test_lengths_and_numbers_of_ones_own():
    near = build_cluster("dgx-1v", 2, bandwidth="10 GB/s", latency="1 us")
    far = build_cluster("dgx-1v", 2, link="wan-fibre", length="10000 km")
    assert near.route("n0/nic0", "n1/nic0").latency == pytest.approx(2e-6 + 0.6e-6)  # a NIC adds 0.6 us as it sends
    assert 2 * far.route("n0/nic0", "n1/nic0").latency == pytest.approx(0.2, rel=1e-3)  # 2 x 10,000 km each way


def test_wrong_options():
    with pytest.raises(InputError, match="did you mean 'oversubscription'"):
        build_cluster("dgx-1v", 2, link="infiniband-edr", oversubscripton=2)
    with pytest.raises(InputError, match="did you mean"):
        build_cluster("dgx-1w", 2, link="infiniband-edr")


def test_thousands_of_servers_are_cheap():
    server_blueprint("dgx-h100", CATALOG)
    tracemalloc.start()
    machine = build_cluster(
        "dgx-h100", 2048, catalog=CATALOG, fabric="fat-tree", link="infiniband-ndr", servers_per_leaf=32
    )
    gpus = machine.gpus
    assert len(gpus) == 16384
    for a, b in zip(gpus[::8], gpus[8::8], strict=False):
        machine.route(a, b)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_lazy_mappings_agree_with_what_they_list():
    machine = build_cluster("dgx-1v", 3, fabric="fat-tree", link="infiniband-edr", servers_per_leaf=2)
    for table in (machine.nodes, machine.edges, machine.resources):
        keys = list(table)
        assert len(keys) == len(table) == len(set(keys))
        assert all(key in table for key in keys)
        assert "nowhere" not in table
        assert 3 not in table
        assert table.get("n9/gpu0>x") is None
    assert {edge.resource for edge in machine.edges.values()} <= set(machine.resources)
    for edge in machine.edges.values():
        assert edge.src in machine.nodes
        assert edge.dst in machine.nodes
        assert f"{edge.dst}>{edge.src}" in machine.edges


def test_check_machine_names_what_is_not_joined():
    plan = server_blueprint("dgx-1v", CATALOG)
    machine = CATALOG.machine("dgx-1v-x4")
    fabric = Fabric({"a": machine.nodes["switch0"], "b": machine.nodes["switch0"]})
    port = lambda switch: (Port("nic0", switch, 1e9, 0, 0, ""),)  # noqa: E731
    apart = Machine("apart", [ServerSlot("n0", plan, port("a")), ServerSlot("n1", plan, port("b"))], fabric=fabric)
    with pytest.raises(MachineError, match="no route from n0/nic0 to n1/nic0"):
        check_machine(apart)
    loose = Machine("loose", [ServerSlot("n0", plan, port("a")), ServerSlot("n1", plan)], fabric=fabric)
    with pytest.raises(MachineError, match="n1 has no port"):
        check_machine(loose)
