"""Times that come out of events, against what can be worked out by hand (simperf.collectives.stepwise)."""

import pytest
import simpy

from simperf.collectives import Transport, Wiring, collective_event, execute, make_plan
from simperf.engine.network import FlowNetwork
from simperf.errors import InputError, MachineError

S = 104_857_600


def star(n, **options):
    return Wiring("star", n, bandwidth=50e9, latency=250e-9, **options)


def ring(n):
    return Wiring("ring", n, bandwidth=50e9, latency=500e-9)


def time_of(algorithm, machine, nbytes=S, n=None, **options):
    plan = make_plan("all-reduce", algorithm, nranks=n or machine.nranks)
    return execute(plan, machine, nbytes=nbytes, exact=True, **options).time


@pytest.mark.parametrize(
    ("algorithm", "servers", "expected"), [("naive", 0, 60e-3), ("central", 1, 80e-3), ("sharded", 0, 15e-3)]
)
def test_four_gpus_on_one_pcie_switch(algorithm, servers, expected):
    machine = Wiring("star", 4, bandwidth=16e9, nservers=servers)
    assert time_of(algorithm, machine, 160e6) == pytest.approx(expected, rel=1e-12)


def test_ring_of_eight_v100():
    machine = Wiring("ring", 8, bandwidth=54e9)
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
    with pytest.raises(MachineError, match="r9"):
        execute(make_plan("all-reduce", "ring", nranks=2), ring(4), nbytes=1, ranks=["r0", "r9"])
