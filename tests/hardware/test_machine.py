"""Routes: on small machines drawn by hand, on the catalog's, and as properties of random ones.

Covers simperf.hardware.machine, blueprint (search inside a server) and graph (networkx).
"""

from math import inf

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.simulation import Simulation
from simperf.errors import MachineError, UnknownNameError
from simperf.hardware import Catalog, build_machine

CATALOG = Catalog.load()
NODES = {"gpu0": "gpu", "gpu1": "gpu", "cpu0": "cpu", "hub": "switch", "hub2": "switch"}


def test_lowest_latency_goes_before_width(wired):
    machine = wired(
        NODES,
        [
            ("gpu0", "hub", 1, 1),
            ("hub", "cpu0", 1, 1),
            ("gpu0", "hub2", 100, 2),
            ("hub2", "cpu0", 100, 1),
            ("gpu1", "hub", 1, 1),
        ],
    )
    route = machine.route("gpu0", "cpu0")
    assert route.nodes == ("gpu0", "hub", "cpu0")
    assert route.latency == pytest.approx(2e-6)
    assert route.bandwidth == 1e9


def test_width_decides_between_equal_latencies(wired):
    machine = wired(
        NODES,
        [
            ("gpu0", "hub", 5, 1),
            ("hub", "cpu0", 5, 2),
            ("gpu0", "hub2", 100, 2),
            ("hub2", "cpu0", 10, 1),
            ("gpu1", "hub", 1, 1),
        ],
    )
    assert machine.route("gpu0", "cpu0").nodes == ("gpu0", "hub2", "cpu0")
    assert machine.route("gpu0", "cpu0").bandwidth == 10e9


def test_the_order_of_wiring_decides_the_rest(wired):
    links = [
        ("gpu0", "hub", 5, 1),
        ("hub", "cpu0", 5, 1),
        ("gpu0", "hub2", 5, 1),
        ("hub2", "cpu0", 5, 1),
        ("gpu1", "hub", 1, 1),
    ]
    assert wired(NODES, links).route("gpu0", "cpu0").nodes[1] == "hub"
    assert wired(NODES, links[2:4] + links[:2] + links[4:]).route("gpu0", "cpu0").nodes[1] == "hub2"


def test_a_gpu_does_not_forward_unless_told_to():
    machine = CATALOG.machine("dgx-1v")
    assert [machine.nodes[n].kind for n in machine.route("gpu0", "gpu5").nodes[1:-1]] == [
        "pcie-switch", "cpu", "cpu", "pcie-switch",
    ]  # fmt: skip
    told = machine.route("gpu0", "gpu5", via=("gpu1",))
    assert told.nodes == ("gpu0", "gpu1", "gpu5")
    assert told.bandwidth == pytest.approx(20e9)


def test_a_direct_nvlink_is_taken_even_if_pcie_has_less_latency(wired):
    machine = wired(
        {"gpu0": "gpu", "gpu1": "gpu", "hub": "pcie-switch"},
        [("gpu0", "gpu1", 20, 5), ("gpu0", "hub", 10, 0.1), ("gpu1", "hub", 10, 0.1)],
    )
    assert machine.route("gpu0", "gpu1").nodes == ("gpu0", "gpu1")


def test_without_peer_access_gpus_meet_in_host_memory(wired):
    links = [("gpu0", "hub", 10, 1), ("gpu1", "hub", 10, 1), ("hub", "cpu0", 10, 1)]
    nodes = {"gpu0": "gpu", "gpu1": "gpu", "hub": "pcie-switch", "cpu0": "cpu"}
    assert wired(nodes, links).route("gpu0", "gpu1").nodes == ("gpu0", "hub", "gpu1")
    apart = wired(nodes, links, peer_access=False)
    assert apart.route("gpu0", "gpu1").nodes == ("gpu0", "hub", "cpu0", "hub", "gpu1")
    assert apart.route("gpu0", "gpu1").latency == pytest.approx(4e-6)
    assert "cpu0" in CATALOG.machine("desktop-2gpu").route("gpu0", "gpu1").nodes


def test_without_gpu_direct_the_nic_reads_host_memory(wired):
    nodes = {"gpu0": "gpu", "nic0": "nic", "hub": "pcie-switch", "cpu0": "cpu"}
    links = [("gpu0", "hub", 10, 1), ("nic0", "hub", 10, 1), ("hub", "cpu0", 10, 1)]
    assert wired(nodes, links).route("gpu0", "nic0").nodes == ("gpu0", "hub", "nic0")
    apart = wired(nodes, links, gpu_direct=False)
    assert apart.route("gpu0", "nic0").nodes == ("gpu0", "hub", "cpu0", "hub", "nic0")
    assert apart.route("nic0", "gpu0").nodes == ("nic0", "hub", "cpu0", "hub", "gpu0")


def test_a_shared_bus_is_one_capacity(wired):
    machine = wired({"gpu0": "gpu", "cpu0": "cpu"}, [("gpu0", "cpu0", 4, 0, {"shared": True})])
    there, back = machine.route("gpu0", "cpu0"), machine.route("cpu0", "gpu0")
    assert there.resources == back.resources == ("gpu0=cpu0",)
    assert dict(machine.resources) == {"gpu0=cpu0": 4e9}


def test_the_book_switch_is_full_duplex_with_sixteen_a_port():
    machine = CATALOG.machine("book-4gpu")
    assert set(machine.resources.values()) == {16e9}
    assert len(machine.resources) == 10
    route = machine.route("gpu0", "gpu3")
    assert (route.latency, route.bandwidth) == (0, 16e9)
    assert not set(route.resources) & set(machine.route("gpu3", "gpu0").resources)
    assert set(route.resources) & set(machine.route("gpu0", "cpu0").resources) == {"gpu0>hub0"}


def test_a_backplane_and_a_drive_limit_what_passes(tmp_path):
    (tmp_path / "old.toml").write_text(
        'kind = "switch"\ntitle = "old"\ntechnology = "pcie"\nlatency = "1 us"\nports = 8\nbackplane = "6 GB/s"\n'
        '[source]\ndefault = "x"\n'
    )
    spec = {
        "node": [
            {"id": "gpu{0..1}", "kind": "gpu"},
            {"id": "hub", "switch": "old"},
            {"id": "ssd0", "storage": "nvme-ssd"},
        ],
        "link": [
            {"a": "gpu{0..1}", "b": "hub", "bandwidth": "10 GB/s"},
            {"a": "ssd0", "b": "hub", "bandwidth": "9 GB/s"},
        ],
    }
    machine = build_machine(spec, Catalog.load(tmp_path))
    route = machine.route("gpu0", "gpu1")
    assert route.resources == ("gpu0>hub", "hub>gpu1", "hub")
    assert (route.bandwidth, route.latency) == (6e9, 1e-6)
    assert machine.resources["hub"] == 6e9
    read, write = machine.route("ssd0", "gpu0"), machine.route("gpu0", "ssd0")
    assert read.bandwidth == 3.5e9
    assert "ssd0:read" in read.resources
    assert "ssd0:write" in write.resources
    assert set(read.resources) <= set(machine.resources)


def test_a_route_to_itself_is_empty():
    route = CATALOG.machine("dgx-1v").route("gpu0", "gpu0")
    assert (route.edges, route.resources, route.latency, route.bandwidth) == ((), (), 0, inf)


def test_no_route_and_no_such_node(wired):
    machine = CATALOG.machine("dgx-1v")
    with pytest.raises(UnknownNameError, match="did you mean 'gpu7'"):
        machine.route("gpu0", "gpu77")
    with pytest.raises(UnknownNameError):
        machine.edges["gpu0>gpu5"]
    chain = wired({"gpu0": "gpu", "gpu1": "gpu", "gpu2": "gpu"}, [("gpu0", "gpu1", 1, 1), ("gpu1", "gpu2", 1, 1)])
    with pytest.raises(MachineError, match="no route from gpu0 to gpu2"):
        chain.route("gpu0", "gpu2")
    assert chain.route("gpu0", "gpu2", via=["gpu1"]).latency == pytest.approx(2e-6)


def test_hosts_cores_and_neighbours():
    machine = CATALOG.machine("dgx-1v")
    assert machine.hosts == ("cpu0",)
    assert machine.host_of("gpu7") == "cpu0"
    assert machine.nearest("gpu7", "cpu") == "cpu1"
    assert machine.nearest("gpu7", "nic") == "nic3"
    assert machine.cores("cpu0") == 40
    assert machine.price is None
    assert CATALOG.machine("p3-16xlarge").price == 24.48


def test_a_cpu_of_no_part_has_no_limit(wired):
    """Two hosts and a cable are a machine; nothing is divided by the cores that they do not name."""
    machine = wired({"a": "cpu", "b": "cpu"}, [("a", "b", 1, 1)])
    assert machine.cores("a") == inf
    simulation = Simulation(machine)
    assert simulation.host("a").cores == inf
    assert simulation.floors()["host"] == 0


def test_several_servers_in_one_table(wired):
    machine = wired(
        {"a": {"kind": "cpu", "server": "s0"}, "gpu0": {"kind": "gpu", "server": "s0"},
         "b": {"kind": "cpu", "server": "s1"}, "gpu1": {"kind": "gpu", "server": "s1"}, "hub": "switch"},
        [("a", "gpu0", 1, 1), ("b", "gpu1", 1, 1), ("a", "hub", 1, 1), ("b", "hub", 1, 1)],
    )  # fmt: skip
    assert machine.hosts == ("a", "b")
    assert machine.host_of("gpu1") == "b"


def test_distance_adds_length_over_velocity():
    spec = {
        "node": [{"id": "cpu{0..1}", "kind": "cpu"}],
        "link": [{"a": "cpu0", "b": "cpu1", "part": "wan-fibre", "length": "10000 km"}],
    }
    machine = build_machine(spec, CATALOG)
    there_and_back = machine.route("cpu0", "cpu1").latency + machine.route("cpu1", "cpu0").latency
    assert there_and_back == pytest.approx(0.1)


def test_the_networkx_graph_has_it_all():
    machine = CATALOG.machine("dgx-1v")
    graph = machine.graph
    assert machine.graph is graph
    assert isinstance(graph, networkx.MultiDiGraph)
    assert set(graph.nodes) == set(machine.nodes)
    assert {key for *_, key in graph.edges(keys=True)} == set(machine.edges)
    assert graph.nodes["gpu0"]["part"] is machine.nodes["gpu0"].part
    assert networkx.is_strongly_connected(graph)


@pytest.mark.parametrize("name", CATALOG.names("server"))
def test_every_route_of_every_server_hangs_together(name):
    machine = CATALOG.machine(name)
    ends = [node.id for node in machine.nodes.values() if node.kind in ("gpu", "cpu", "nic", "storage")]
    for src in ends[:9]:
        for dst in ends:
            hangs_together(machine, machine.route(src, dst))


def hangs_together(machine, route):
    at = route.src
    for edge in route.edges:
        assert edge.src == at
        assert machine.edges[edge.id] == edge
        at = edge.dst
    assert at == route.dst
    assert route.latency == pytest.approx(sum(edge.latency for edge in route.edges))
    assert route.bandwidth == min((machine.resources[key] for key in route.resources), default=inf)
    assert len(set(route.resources)) == len(route.resources)


@st.composite
def machines(draw):
    size = draw(st.integers(2, 6))
    names = [f"hub{i}" for i in range(size)] + [f"gpu{i}" for i in range(draw(st.integers(1, 4)))]
    tree = [(name, draw(st.sampled_from(names[:i][:size]))) for i, name in enumerate(names) if i]
    extra = draw(st.lists(st.sampled_from([(a, b) for a in names[:size] for b in names[:size] if a < b]), max_size=5))
    pairs = list({frozenset(pair): pair for pair in tree + extra}.values())
    speeds = st.tuples(st.integers(1, 9), st.integers(0, 9))
    spec = {
        "node": [{"id": name, "kind": "gpu" if name.startswith("gpu") else "switch"} for name in names],
        "link": [
            {"a": a, "b": b, "bandwidth": f"{rate} GB/s", "latency": f"{delay} us"}
            for (a, b), (rate, delay) in zip(
                pairs, draw(st.lists(speeds, min_size=len(pairs), max_size=len(pairs))), strict=True
            )
        ],
    }
    return build_machine(spec, CATALOG)


@settings(max_examples=60, deadline=None)
@given(machines())
def test_random_machines_against_networkx(machine):
    """Latency against networkx's Dijkstra over the same graph without the GPUs that do not forward."""
    for src in machine.nodes:
        for dst in machine.nodes:
            route = machine.route(src, dst)
            hangs_together(machine, route)
            keep = [node.id for node in machine.nodes.values() if node.kind == "switch" or node.id in (src, dst)]
            best = networkx.dijkstra_path_length(machine.graph.subgraph(keep), src, dst, weight="latency")
            assert route.latency == pytest.approx(best, abs=1e-12)
