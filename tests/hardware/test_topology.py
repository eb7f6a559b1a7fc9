"""Regular topologies as machines, numbers of links, rounds solved with arrays (collapsed, pipelines)."""

import numpy as np
import pytest

from simperf.collectives import collective_event, execute, make_plan
from simperf.collectives.links import Hops, Links
from simperf.collectives.placement import place
from simperf.collectives.plan_bounds import PlanBounds
from simperf.collectives.rounds import solve
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, MachineError, UnknownNameError
from simperf.hardware import Catalog, Fabric, Machine, build_topology
from simperf.hardware.topology import TOPOLOGIES
from tests.engine.rates import max_min_rates


@pytest.mark.parametrize(
    ("kind", "pair", "links", "hops"),
    [
        ("ring", ("r0", "r1"), ("r0>r1",), 1),
        ("ring", ("r1", "r7"), ("r1>r0", "r0>r7"), 2),
        ("star", ("r2", "s0"), ("r2>", ">s0"), 2),
        ("fully-connected", ("r2", "r5"), ("r2>r5",), 1),
        ("star", ("r2", "r2"), (), 0),
    ],
)
def test_routes(kind, pair, links, hops):
    wiring = build_topology(kind, 8, bandwidth=1e9, latency=1e-6, nservers=0 if kind == "ring" else 1)
    route = wiring.route(*pair)
    assert route.resources == links
    assert route.latency == pytest.approx(hops * 1e-6)


@pytest.mark.parametrize("kind", ["ring", "star", "fully-connected"])
def test_routes_of_many_pairs_are_those_of_each(kind):
    wiring = build_topology(kind, 6, bandwidth=1e9, latency=1e-6)
    src, dst = np.array([0, 3, 5, 2]), np.array([1, 2, 0, 3])
    links, latency = wiring.topology.paths(src, dst)
    for column, (a, b) in enumerate(zip(src, dst, strict=True)):
        route = wiring.route(f"r{a}", f"r{b}")
        assert tuple(wiring.topology.link_name(int(link)) for link in links[:, column]) == route.resources
        assert latency == pytest.approx(route.latency)


@pytest.mark.parametrize("kind", ["ring", "star", "fully-connected"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_links_are_counted(kind, n):
    wiring = build_topology(kind, n, bandwidth=1e9)
    assert len(list(wiring.resources)) == len(wiring.resources) == len(dict(wiring.resources))


def test_a_mesh_of_thousands_costs_nothing_until_it_is_used():
    plan = make_plan("all-reduce", "ring", nranks=20_000)
    run = execute(plan, build_topology("fully-connected", 20_000, bandwidth=1e9, latency=1e-6), nbytes=2e9)
    assert run.time == pytest.approx(2 * 19_999 * (1e-6 + 1e5 / 1e9), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "tree"}, "no such topology"),
        ({"nranks": 0}, "at least one rank"),
        ({"bandwidth": 0.0}, "above 0"),
        ({"bandwidth": float("nan")}, "above 0"),
        ({"latency": -1.0}, "0 or more"),
        ({"kind": "ring", "nservers": 1}, "no place for servers"),
    ],
)
def test_bad_wirings_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        build_topology(**{"kind": "star", "nranks": 4, "bandwidth": 1e9, **options})


def test_unknown_nodes_are_refused():
    for name in ("r4", "s0", "x", "r-1", ""):
        with pytest.raises(UnknownNameError, match="unknown node of the star of 4"):
            build_topology("star", 4, bandwidth=1e9).route("r0", name)


def test_links_are_numbered_as_they_are_met():
    wiring = build_topology("star", 4, bandwidth=1e9, changed={"r1>": 5e8})
    links = Links(place(make_plan("send-recv", "direct", nranks=4), wiring))
    hops = links.hops(np.array([0, 1]), np.array([1, 2]))
    assert [[links.name(int(n)) for n in hops.links[:, i]] for i in range(2)] == [["r0>", ">r1"], ["r1>", ">r2"]]
    assert links.capacity[hops.links].min(axis=0).tolist() == [1e9, 5e8]


def test_rounds_share_links_max_min_fairly():
    """Three flows: two on link 1, one of them also on the narrow link 2, one alone from t = 3 on."""
    hops = Hops(np.array([[1, 1, 3], [0, 2, 0]]), np.zeros(3), np.full(3, np.inf))
    capacity = np.array([np.inf, 10.0, 2.0, 5.0])
    end = solve(np.array([0.0, 0.0, 3.0]), np.array([16.0, 8.0, 10.0]), hops, capacity)
    rates = max_min_rates([(0,), (0, 1)], [10.0, 2.0])
    assert end.tolist() == pytest.approx([16.0 / rates[0], 8.0 / rates[1], 5.0])


def test_a_plan_that_overlaps_rounds_goes_event_by_event():
    run = execute(
        make_plan("all-reduce", "recursive-doubling", nranks=6), build_topology("star", 6, bandwidth=1e9), nbytes=1e6
    )
    assert run.method == "step-exact"


def test_what_would_take_hours_is_refused_with_a_reason():
    wide = build_topology("ring", 9_000, bandwidth=1e9)
    with pytest.raises(InputError, match="cross more than"):
        execute(make_plan("all-reduce", "naive", nranks=9_000), wide, nbytes=1e6)
    star, plan = build_topology("star", 16, bandwidth=1e9), make_plan("all-reduce", "double-binary-tree", nranks=16)
    with pytest.raises(InputError, match="has to be simulated"):
        execute(plan, star, nbytes=1e6, bounds=PlanBounds(events=1_000))
    assert execute(plan, star, nbytes=1e6, exact=True).method == "step-exact"


@pytest.mark.parametrize("kind", TOPOLOGIES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_topology_is_a_machine_like_others(kind, n):
    """Its nodes, edges and routes are those of the networkx graph, and every edge draws on a capacity that it has."""
    import networkx

    machine = build_topology(kind, n, bandwidth=1e9, latency=1e-6, nservers=0 if kind == "ring" else 1)
    assert list(machine.edges) == [edge.id for edge in machine.edges.values()]
    assert len(machine.edges) == len(list(machine.edges))
    assert len(machine.nodes) == len(list(machine.nodes))
    assert {edge.resource for edge in machine.edges.values()} == set(machine.resources)
    assert machine.gpus == tuple(f"r{rank}" for rank in range(n))
    assert machine.cpus == (() if kind == "ring" else ("s0",))
    assert machine.servers == ()
    assert machine.fabric is None
    assert machine.price is None
    assert machine.equal_servers is None
    degrees = {src: degree for src, degree in machine.graph.out_degree() if src != "switch"}
    assert set(degrees.values()) == {machine.topology.degree}
    hops = dict(networkx.all_pairs_shortest_path_length(machine.graph))
    for src in machine.nodes:
        for dst in machine.nodes:
            assert len(machine.route(src, dst).edges) == hops[src][dst]


def test_edges_that_a_topology_does_not_have():
    for kind, wrong in (("star", "r0>r1"), ("ring", "r0>r2"), ("fully-connected", "r1>r1"), ("star", "switch>switch")):
        machine = build_topology(kind, 4, bandwidth=1e9)
        assert wrong not in machine.edges
        assert "r9" not in machine.nodes
        with pytest.raises(UnknownNameError, match="edge"):
            machine.edges[wrong]


def test_a_simulation_runs_on_a_topology():
    simulation = Simulation(build_topology("star", 4, bandwidth=1e9, latency=1e-6, nservers=1))
    plan = make_plan("all-reduce", "central", nranks=4)
    done = collective_event(simulation, plan, simulation.machine.gpus, 1e6)
    simulation.env.run(done)
    assert simulation.now == pytest.approx(2 * (4 * 1e6 / 1e9 + 2e-6), rel=1e-9)


def test_a_machine_has_servers_or_a_topology():
    topology = build_topology("star", 4, bandwidth=1e9).topology
    servers = Catalog.load().machine("dgx-1v").servers
    for parts in ({}, {"servers": servers, "topology": topology}, {"topology": topology, "fabric": Fabric()}):
        with pytest.raises(MachineError, match="servers"):
            Machine("nothing", **parts)
