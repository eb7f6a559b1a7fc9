"""Times that come out of events, against what can be worked out by hand (simperf.collectives.executors.stepwise)."""

import numpy as np
import pytest
import simpy

from simperf.collectives import Transport, collective_event, execute, make_plan
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.engine.network import FlowNetwork
from simperf.errors import InputError
from simperf.hardware import build_topology
from tests.collectives.machines import ring, star

S = 104_857_600


def time_of(algorithm, machine, nbytes=S, n=None, **options):
    plan = make_plan("all-reduce", algorithm, nranks=n or len(machine.gpus))
    return execute(plan, machine, nbytes=nbytes, exact=True, **options).time


@pytest.mark.parametrize(
    ("algorithm", "servers", "expected"), [("naive", 0, 60e-3), ("central", 1, 80e-3), ("sharded", 0, 15e-3)]
)
def test_four_gpus_on_one_pcie_switch(algorithm, servers, expected):
    machine = build_topology("star", 4, bandwidth=16e9, nservers=servers)
    assert time_of(algorithm, machine, 160e6) == pytest.approx(expected, rel=1e-12)


def test_ring_of_eight_v100():
    machine = build_topology("ring", 8, bandwidth=54e9)
    assert time_of("ring", machine, 160e6) == pytest.approx(2 * 7 / 8 * 160e6 / 54e9, rel=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "machine", "expected"),
    [
        ("ring", ring(8), 3677.016e-6),
        ("ring", ring(64), 4191.768e-6),
        ("central", star(8, nservers=1), 33555.432e-6),
        ("central", star(64, nservers=1), 268436.456e-6),
        ("sharded", star(8), 3671.016e-6),
        ("sharded", star(64), 4129.768e-6),
        ("ring", star(8, changed={"r3>": 12.5e9, ">r3": 12.5e9}), 14687.064e-6),
        ("ring", star(64, changed={"r3>": 12.5e9, ">r3": 12.5e9}), 16578.072e-6),
    ],
)
def test_reference_cases(algorithm, machine, expected):
    assert time_of(algorithm, machine) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "expected"), [(8, 7347.032e-6), (64, 8320.536e-6)])
def test_two_rings_at_once_share_the_ports(n, expected):
    machine, env = star(n), simpy.Environment()
    network = FlowNetwork(env, dict(machine.resources))
    sim = type("Sim", (), {"env": env, "network": network, "machine": machine})
    plan = make_plan("all-reduce", "ring", nranks=n)
    both = [collective_event(sim, plan, machine.gpus, S) for _ in range(2)]
    env.run(env.all_of(both))
    assert env.now == pytest.approx(expected, rel=1e-9)


def test_a_late_rank_delays_everybody():
    plan = make_plan("all-reduce", "ring", nranks=4)
    late = execute(plan, ring(4), nbytes=4e6, entry_times=[0.0, 0.0, 1e-3, 0.0], exact=True)
    assert late.time == pytest.approx(1e-3 + execute(plan, ring(4), nbytes=4e6, exact=True).time, rel=1e-9)


def test_step_latency_efficiency_and_addition_are_paid():
    transport = Transport(step_latency=1e-6, efficiency=0.5, reduce_rate=100e9)
    time = time_of("ring", ring(4), 4e6, transport=transport)
    assert time == pytest.approx(6 * (0.5e-6 + 1e-6 + 1e6 / 0.5 / 50e9) + 3 * 1e6 / 100e9, rel=1e-12)


def test_one_rank_has_nothing_to_send_and_nothing_takes_no_time():
    assert time_of("ring", ring(1)) == 0.0
    assert time_of("ring", ring(8), 0) == pytest.approx(14 * 500e-9, rel=1e-12)
    assert time_of("ring", ring(8), 3) == pytest.approx(14 * (500e-9 + 3 / 8 / 50e9), rel=1e-12)


def test_bytes_are_conserved():
    run = execute(make_plan("all-reduce", "sharded", nranks=8), star(8), nbytes=S, exact=True)
    assert sum(run.moved.values()) == pytest.approx(2 * 8 * 2 * 7 / 8 * S, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nbytes": -1}, "payload"),
        ({"nbytes": float("nan")}, "payload"),
        ({"nbytes": 1, "entry_times": [0.0]}, "entry times"),
        ({"nbytes": 1, "entry_times": [0.0, 0.0, 0.0, -1.0]}, "entry times"),
        ({"nbytes": 1, "ranks": ["r0", "r1"]}, "4 ranks"),
    ],
)
def test_bad_input_is_refused(options, text):
    with pytest.raises(InputError, match=text):
        execute(make_plan("all-reduce", "ring", nranks=4), ring(4), **options)


def test_unreachable_ranks_are_refused():
    with pytest.raises(InputError, match="r9"):
        execute(make_plan("all-reduce", "ring", nranks=2), ring(4), nbytes=1, ranks=["r0", "r9"])


@pytest.mark.parametrize("collective", ["scatter", "gather"])
@pytest.mark.parametrize("n", [2, 5, 6, 8, 13])
def test_a_subtree_is_one_message_whichever_rank_is_the_root(collective, n):
    """What passes the highest rank goes on with rank 0, at the pace of one send."""
    plans = [make_plan(collective, "binomial-tree", nranks=n, root=root) for root in range(n)]
    assert {plan.nsends for plan in plans} == {n - 1}
    slow = Transport(caps=(1e9,))
    times = [execute(p, star(n), nbytes=S, transport=slow, exact=exact).time for p in plans for exact in (True, False)]
    assert times == pytest.approx([times[0]] * len(times), rel=1e-12)


@pytest.mark.parametrize("algorithm", ["bruck", "recursive-doubling"])
def test_a_rank_sends_all_that_it_has_at_the_pace_of_one_send(algorithm):
    plan = make_plan("all-gather", algorithm, nranks=8)
    transport = Transport(caps=(1e9,))
    for exact in (True, False):
        time = execute(plan, star(8), nbytes=8e6, transport=transport, exact=exact).time
        assert time == pytest.approx(7e6 / 1e9 + 3 * 500e-9, rel=1e-12)


@pytest.mark.parametrize("slow", [False, True])
def test_several_sends_of_a_round_to_one_rank_fill_a_link(slow):
    """Two sends of 1 GB/s each between the same two ranks want a port of 1 GB/s twice."""
    zero, one = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)
    both = Phase(1, lambda index: Round(zero, one, np.arange(2, dtype=np.int64)))
    plan = Plan("broadcast", "two-sends", 2, (Channel((both,), 2),), 1, 1.0)
    machine = star(2, changed={">r1": 1e9} if slow else {})
    for exact in (True, False):
        run = execute(plan, machine, nbytes=1e6, transport=Transport(caps=(1e9,)), exact=exact)
        assert run.time == pytest.approx((1e-3 if slow else 0.5e-3) + 500e-9, rel=1e-9)


@pytest.mark.parametrize("exact", [False, True])
def test_a_run_of_chunks_that_passes_the_last_one_feeds_what_waits_for_the_first(exact):
    """Rank 0 sends chunks 2 and 0 of three in one piece; rank 1 passes on chunk 0 when it has come."""
    first, then = (np.array([n], dtype=np.int64) for n in (0, 1))
    rounds = [Round(first, then, np.array([2]), 2), Round(then, then + 1, np.array([0]), 2)]
    plan = Plan("broadcast", "wrapped", 3, (Channel((Phase(2, rounds.__getitem__, "pipeline"),), 3),), 2, 2 / 3)
    time = execute(plan, star(3), nbytes=3e6, exact=exact).time
    assert time == pytest.approx(2 * (2e6 / 50e9 + 500e-9), rel=1e-9)
