"""Named cases: the table of reference times, overlap with backward, trees against rings, machines of the catalogue."""

import pytest
import simpy

from simperf.collectives import Transport, collective_event, execute, make_plan
from simperf.collectives.bench import measure
from simperf.collectives.calls import Call
from simperf.collectives.machine_plans import plan_for
from simperf.engine.network import FlowNetwork
from simperf.engine.simulation import Simulation
from simperf.hardware import Catalog, build_cluster, build_topology
from tests.collectives.machines import ring, star

S = 104_857_600
CATALOG = Catalog.load()


@pytest.mark.parametrize(
    ("algorithm", "machine", "expected"),
    [
        ("ring", ring(8), 3677.016),
        ("ring", ring(64), 4191.768),
        ("ring", ring(256), 4432.920),
        ("ring", ring(1024), 5213.208),
        ("central", star(8, nservers=1), 33555.432),
        ("central", star(64, nservers=1), 268436.456),
        ("sharded", star(8), 3671.016),
        ("sharded", star(64), 4129.768),
        ("binomial-tree", star(8), 12585.912),
        ("binomial-tree", star(64), 25171.824),
        ("ring", star(8, changed={"r3>": 12.5e9, ">r3": 12.5e9}), 14687.064),
        ("ring", star(64, changed={"r3>": 12.5e9, ">r3": 12.5e9}), 16578.072),
    ],
)
def test_reference_times_without_events(algorithm, machine, expected):
    run = execute(make_plan("all-reduce", algorithm, nranks=len(machine.gpus)), machine, nbytes=S)
    assert run.method == "collapsed"
    assert run.time * 1e6 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "expected"), [(8, 5741e-6), (64, 5890e-6)])
def test_buckets_under_backward(n, expected):
    """Five segments of 1 ms, each releasing 20 MiB; one ring at a time."""
    machine, env = ring(n), simpy.Environment()
    sim = type("Sim", (), {"env": env, "network": FlowNetwork(env, dict(machine.resources)), "machine": machine})
    plan = make_plan("all-reduce", "ring", nranks=n)
    buckets = simpy.Store(env)

    def backward():
        for _ in range(5):
            yield env.timeout(1e-3)
            yield buckets.put(20 << 20)

    def reducer():
        for _ in range(5):
            yield collective_event(sim, plan, machine.gpus, (yield buckets.get()))

    env.process(backward())
    env.run(env.process(reducer()))
    assert env.now == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("algorithm", ["pipelined-tree", "double-binary-tree"])
def test_trees_against_a_ring_over_64_ranks(algorithm):
    """A tree has 90 % of a ring's bandwidth at 1 GiB and beats it where latency counts, up to some size."""
    machine = star(64)
    times = {
        name: {size: measure(Call(machine, "all-reduce", name, nbytes=size, ranks=machine.gpus)).time for size in sizes}
        for name, sizes in (("ring", (1 << 10, 1 << 20, 1 << 30)), (algorithm, (1 << 10, 1 << 20, 1 << 30)))
    }
    assert times[algorithm][1 << 30] < times["ring"][1 << 30] / 0.9
    assert times[algorithm][1 << 10] < times["ring"][1 << 10] / 5
    assert times[algorithm][1 << 20] < times["ring"][1 << 20]


def test_pipelined_tree_has_the_bandwidth_of_a_ring_where_every_pair_has_a_link():
    machine = build_topology("fully-connected", 64, bandwidth=50e9, latency=500e-9)
    time = {
        a: measure(Call(machine, "all-reduce", a, nbytes=1 << 30, ranks=machine.gpus)).time
        for a in ("ring", "pipelined-tree")
    }
    assert time["pipelined-tree"] < time["ring"] / 0.9


def test_two_nvlink_rings_of_eight_v100():
    machine = CATALOG.machine("book-8v100")
    plan = plan_for(machine, "all-reduce", "multi-ring", ranks=machine.gpus)
    assert sorted(round(channel.share, 9) for channel in plan.channels) == [round(1 / 3, 9), round(2 / 3, 9)]
    assert execute(plan, machine, nbytes=160e6, exact=True).time == pytest.approx(2 * 7 / 8 * 160e6 / 54e9, rel=1e-9)


@pytest.mark.parametrize(("algorithm", "expected"), [("naive", 60e-3), ("central", 80e-3), ("sharded", 15e-3)])
def test_four_gpus_of_the_book(algorithm, expected):
    machine = CATALOG.machine("book-4gpu")
    plan = make_plan("all-reduce", algorithm, nranks=4)
    for exact in (True, False):
        assert execute(plan, machine, nbytes=160e6, exact=exact).time == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("inner", ["ring", "sharded", "binomial-tree"])
@pytest.mark.parametrize("oversubscription", [1.0, 4.0])
def test_hierarchies_over_a_fat_tree_by_both_executors(inner, oversubscription):
    machine = build_cluster(
        "dgx-a100", 4, link="infiniband-hdr", fabric="fat-tree", servers_per_leaf=2, oversubscription=oversubscription
    )
    plan = plan_for(machine, "all-reduce", "hierarchical", ranks=machine.gpus, inner=inner)
    fast, exact = (execute(plan, machine, nbytes=64e6, exact=exact) for exact in (False, True))
    assert fast.time == pytest.approx(exact.time, rel=1e-9)


def test_oversubscription_is_felt():
    times = {}
    for ratio in (1.0, 8.0):
        machine = build_cluster(
            "dgx-a100", 4, link="infiniband-hdr", fabric="fat-tree", servers_per_leaf=1, oversubscription=ratio
        )
        plan = plan_for(machine, "all-reduce", "hierarchical", ranks=machine.gpus)
        times[ratio] = execute(plan, machine, nbytes=1e9).time
    assert times[8.0] > 3 * times[1.0]


def test_a_collective_beside_other_traffic_in_a_simulation():
    machine = CATALOG.machine("book-4gpu")
    plan = make_plan("all-reduce", "sharded", nranks=4)

    def time_beside(rate):
        sim = Simulation(machine)
        if rate:
            sim.network.background(machine.route("gpu0", "gpu1").resources, rate)
        done = collective_event(sim, plan, machine.gpus, 160e6)
        return sim.run(done)

    assert time_beside(0.0) == pytest.approx(15e-3, rel=1e-9)
    # At GPU 0's port three sends and the other flow have 4 GB/s each: 40 MB at 4 GB/s, twice.
    assert time_beside(16e9) == pytest.approx(20e-3, rel=1e-9)


def test_adding_up_costs_what_the_memory_gives():
    plain = execute(make_plan("all-reduce", "ring", nranks=4), ring(4), nbytes=4e6).time
    slow = execute(
        make_plan("all-reduce", "ring", nranks=4), ring(4), nbytes=4e6, transport=Transport(reduce_rate=1e9)
    ).time
    assert slow == pytest.approx(plain + 3 * 1e6 / 1e9, rel=1e-9)
