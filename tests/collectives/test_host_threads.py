"""The executor for hosts with network stacks: what it accepts, what it refuses, and in which order threads work."""

import pytest

from simperf.collectives import Transport, execute, make_plan
from simperf.collectives.executors.base import Context, PlacedPlan
from simperf.collectives.executors.host_threads import HostThreads, has_network_stacks, refuse_transport
from simperf.collectives.placement import PLAIN, place
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.hardware import Catalog, build_machine, build_topology

CATALOG = Catalog.load()
FREE = {
    "use": "linux-gloo",
    **dict.fromkeys(("wake", "message", "call", "cold", "operation"), "0 s"),
    **dict.fromkeys(("byte_rate", "bulk_rate", "add_rate", "rate"), "1e18 B/s"),
    **dict.fromkeys(("header", "word", "window"), "0 B"),
    "threads": 1,
}


def hosts(count=4, **stack):
    """Hosts with cores enough behind a switch of 10 MB/s."""
    ids = [f"h{i}" for i in range(count)]
    nodes = [{"id": one, "kind": "cpu", "server": one} for one in ids] + [{"id": "switch", "kind": "switch"}]
    links = [{"a": one, "b": "switch", "bandwidth": "10 MB/s"} for one in ids]
    return build_machine(
        {"node": nodes, "link": links, "network_stack": {**FREE, **stack}, "shared_cores": 64}, CATALOG
    )


def test_machines_with_network_stacks():
    assert has_network_stacks(hosts())
    assert not has_network_stacks(CATALOG.machine("dgx-1v"))
    assert not has_network_stacks(build_topology("star", 4, bandwidth=1e9))


def test_every_cost_of_a_transport_is_refused_by_name():
    refuse_transport(PLAIN)
    with pytest.raises(InputError, match="network stack") as caught:
        refuse_transport(Transport(step_latency=1e-6, efficiency=0.5))
    assert caught.value.problems[0].value == "step_latency = 1e-06, efficiency = 0.5"


def test_it_is_the_executor_where_hosts_have_stacks_and_nowhere_else():
    plan = make_plan("all-reduce", "ring", nranks=4)
    for machine, accepted in ((hosts(), True), (build_topology("star", 4, bandwidth=1e9, nservers=1), False)):
        nodes = machine.cpus[:4] if accepted else machine.gpus
        placed = PlacedPlan(plan, place(plan, machine, ranks=nodes))
        assert HostThreads.accepts(placed, Context.of(Simulation(machine))) is accepted


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_ring_takes_two_passes_over_the_links(n):
    """2 (n - 1) rounds of S / n bytes, as nothing else costs time."""
    run = execute(
        make_plan("all-reduce", "ring", nranks=n), hosts(n), nbytes=n * 1e6, ranks=[f"h{i}" for i in range(n)]
    )
    assert run.method == "hosts"
    assert run.time == pytest.approx(2 * (n - 1) * 0.1, rel=1e-9)


def test_asking_adding_and_operating_are_work_of_the_threads():
    """A rank asks for a send and a receive a round, adds up after the first, and is done after an operation."""
    plan, ranks = make_plan("all-reduce", "ring", nranks=2), ["h0", "h1"]
    base = execute(plan, hosts(2), nbytes=2e6, ranks=ranks).time
    more = execute(plan, hosts(2, call="1 ms", add_rate="100 MB/s", operation="5 ms"), nbytes=2e6, ranks=ranks).time
    assert more - base == pytest.approx(2 * 2 * 1e-3 + 1e6 / 100e6 + 5e-3, rel=1e-9)


def test_a_rank_that_is_late_is_waited_for():
    plan, ranks = make_plan("all-reduce", "ring", nranks=2), ["h0", "h1"]
    on_time = execute(plan, hosts(2), nbytes=2e6, ranks=ranks).time
    late = execute(plan, hosts(2), nbytes=2e6, ranks=ranks, entry_times=[0.0, 0.7])
    assert late.time == pytest.approx(on_time + 0.7, rel=1e-9)
