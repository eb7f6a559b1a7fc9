"""What links and messages of a boxed cluster lose where threads wait, against simulation, limits and closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.machine import BoxedMachine
from simperf.calibrate.cluster.play import finish, play_plan, round_trip, send
from simperf.calibrate.cluster.shape import SEGMENT, Shape
from simperf.calibrate.cluster.waiting import KEEP, POLL, Pace, cooled, found, kept
from simperf.collectives import make_plan
from simperf.engine.bucket import TokenBucket
from simperf.engine.network import FlowNetwork
from tests.calibrate.test_cluster_machine import BARE

MIB = float(1 << 20)
loads = st.floats(0.01, 20.0)
windows = st.floats(1.0, 50.0)


@pytest.mark.parametrize(("offered", "window"), [(0.5, 2), (0.85, 6), (1.0, 6), (1.6, 3)])
def test_the_share_is_that_of_two_stations_with_so_many_customers(offered, window):
    """Segments go round two stations whose service times are exponential; counted how much of the time one works."""
    rng, env = np.random.default_rng(3), simpy.Environment()
    link, cores, worked = simpy.Resource(env), simpy.Resource(env), [0.0]

    def segment():
        while True:
            with link.request() as turn:
                yield turn
                time = rng.exponential(1.0)
                yield env.timeout(time)
                worked[0] += time
            with cores.request() as turn:
                yield turn
                yield env.timeout(rng.exponential(offered))

    for _ in range(window):
        env.process(segment())
    env.run(20_000)
    assert worked[0] / 20_000 == pytest.approx(kept(offered, window), rel=0.03)


@given(loads, windows)
def test_the_share_is_below_what_a_fluid_has_and_meets_it_at_both_ends(offered, window):
    share = kept(offered, window)
    assert 0.0 < share <= min(1.0, 1.0 / offered) * (1 + 1e-9)
    assert share >= kept(offered * 1.1, window) - 1e-9
    assert share <= kept(offered, window + 1.0) + 1e-9
    assert kept(offered, math.inf) == pytest.approx(min(1.0, 1.0 / offered))
    assert kept(1e-6, window) == pytest.approx(1.0, abs=1e-5)
    assert kept(1e6, window) * 1e6 == pytest.approx(1.0, abs=1e-5)


@given(loads, st.floats(0.05, 1.0), windows)
def test_segments_that_are_found_together_are_those_that_came_while_a_thread_waited(offered, together, window):
    count = found(offered, together, window)
    assert 1.0 <= count <= window
    assert count <= found(offered * 1.1, together, window) + 1e-9
    used = offered * (together + (1.0 - together) / count)
    if count < window:  # it has waited for those that the cores were at work for
        assert count == pytest.approx(1.0 / (1.0 - used), rel=1e-6)
    assert found(1e-9, together, window) == pytest.approx(1.0)
    assert found(1e6, together, window) == window


def test_links_are_held_while_bytes_move_and_let_go_afterwards():
    network = FlowNetwork(simpy.Environment(), {"a>": 0.0, ">b": 0.0, "c>": 0.0})
    ports = {name: TokenBucket(network, name, rate=100.0, burst=0.0) for name in ("a>", ">b", "c>")}
    pace = Pace(ports, 100.0, 4.0)
    pace.enter("one", ("a>", ">b"))
    assert pace.offered == pytest.approx(1.0)
    held = ports["a>"].rate
    assert held == pytest.approx(80.0, rel=0.01)  # 4 of 5
    pace.enter("two", ("c>", ">b"))  # shares an end: both could move half as much
    assert pace.offered == pytest.approx(1.0)
    assert ports["c>"].rate == held
    pace.leave("one")
    pace.leave("two")
    assert pace.offered == 0.0
    assert {port.rate for port in ports.values()} == {100.0}


def ring(ranks, **changes):
    machine = BoxedMachine(ranks, Shape(125e6), replace(BARE, **changes))
    plan = make_plan("all-reduce", "ring", nranks=ranks)
    return finish(machine, [play_plan(machine, plan, rank, 8 * MIB) for rank in range(ranks)])


def test_a_ring_loses_what_its_links_lose():
    """Eight links of 125 MB/s, and cores for 1.25 GB/s: 80 % load, with six segments a socket."""
    links = ring(8)
    assert ring(8, byte=1.6e-9, batched=1.6e-9) == pytest.approx(links, rel=1e-3)  # nothing is known of sockets
    busy = ring(8, byte=1.6e-9, batched=1.6e-9, buffer=6.0 * SEGMENT)
    assert busy == pytest.approx(links / kept(0.8, 6.0), rel=0.01)
    assert busy > 1.05 * links
    few = ring(2, byte=1.6e-9, batched=1.6e-9, buffer=6.0 * SEGMENT)
    assert few == pytest.approx(ring(2), rel=2e-3)


def test_full_cores_are_the_bound_however_little_waits():
    byte = 8e-9
    time = ring(8, byte=byte, batched=byte, buffer=6.0 * SEGMENT)
    assert time == pytest.approx(2 * 7 * 8 * MIB * byte / 2, rel=0.01)


def test_segments_in_store_are_those_of_the_socket():
    assert Constants(buffer=6.0 * SEGMENT).segments == pytest.approx(6.0)
    assert Constants(buffer=1.0).segments == 1.0
    assert math.isinf(Constants(buffer=0.0).segments)


def sent(nbytes, **changes):
    machine = BoxedMachine(2, Shape(25e6), replace(BARE, **changes))
    return finish(machine, [send(machine, rank, nbytes) for rank in range(2)])


def test_a_thread_that_has_slept_is_slower_and_one_that_has_not_is_not():
    cold = 1e-4
    assert cooled(0.0) == 0.0
    assert cooled(10 * POLL) > 0.999
    assert sent(MIB, cold=cold) - sent(MIB) == pytest.approx(cold, rel=1e-3)
    assert sent(4.0, cold=cold) - sent(4.0) < 0.01 * cold


def test_a_message_wakes_a_core_that_sleeps_although_the_other_one_works():
    def handed(busy):
        machine = BoxedMachine(2, Shape(25e6), replace(BARE, latency=1e-3))
        for _ in range(busy):
            machine.work(1.0)
        return finish(machine, [machine.hand_over()])

    assert handed(0) == handed(1) == pytest.approx(1e-3)
    assert handed(2) < 1e-6


def taken(busy, messages, **changes):
    """CPU time of messages of four bytes that come at once, while other threads work [s]."""
    machine = BoxedMachine(3, Shape(25e6), replace(BARE, byte=1e-9, **changes))
    others = [machine.work(1.0) for _ in range(busy)]

    def both():
        events = []
        for src in range(messages):
            events.append(machine.receive(src + 1, 0))
            machine.send(src + 1, 0, 4.0)
        yield machine.env.all_of(events)

    finish(machine, [both()])
    machine.env.run(machine.env.all_of(others))
    return machine.network.moved["cores"] * machine.byte - busy


def test_a_thread_that_sleeps_is_woken_on_busy_cores_and_one_that_works_is_not():
    traversal = 1e-5
    once = taken(2, 1, traversal=traversal)
    # three traversals, the input threads of both hosts woken, and once more the receiver's; and who waits for it
    assert taken(0, 1, traversal=traversal) == pytest.approx(3 * traversal, rel=0.01)
    assert 5 * traversal < once < 7.01 * traversal
    # it finds the second message when it is done with the first
    assert taken(2, 2, traversal=traversal) < 2 * once - 0.9 * traversal


def test_others_put_a_thread_s_caches_out_while_it_sleeps_on_busy_cores():
    """The first message finds them cold, one right behind it does not, a later one as far as time has passed."""
    cold = 1e-4
    assert taken(2, 1, cold=cold) - taken(2, 1) == pytest.approx(cold, rel=1e-3)
    assert taken(2, 2, cold=cold) - taken(2, 2) == pytest.approx(cold, rel=0.1)
    machine = BoxedMachine(2, Shape(25e6), replace(BARE, cold=cold))
    machine.work(1.0), machine.work(1.0)
    assert machine._cold(0, 4.0, 0.0) == pytest.approx(cold)
    machine.env.run(KEEP)
    assert machine._cold(0, 4.0, 1e-3) == pytest.approx(cold * (1 - math.exp(-1)))
    machine.env.run(2 * KEEP)  # it has taken 63 segments of this message
    assert machine._cold(0, 64.0 * SEGMENT, KEEP) == pytest.approx(cold * (1 - math.exp(-1 / 64)))


def test_what_passes_in_a_burst_wakes_nobody_for_every_segment():
    one = {"byte": 4e-9, "batched": 1e-9, "traversal": 16384 * 1e-9 / 2}

    def spent(burst):
        machine = BoxedMachine(2, Shape(25e6), replace(BARE, burst=burst, **one))
        machine.constants = replace(machine.constants, traversal=0.0)  # messages of their own cost nothing
        finish(machine, [send(machine, rank, MIB) for rank in range(2)])
        return machine.network.moved["cores"] * machine.byte

    paced = 1e-9 + 3e-9 / found(25e6 * 4e-9 / 2, 0.25, math.inf)
    assert spent(0.0) == pytest.approx(paced * MIB, rel=1e-3)
    assert spent(2 * MIB) == pytest.approx(1e-9 * MIB, rel=1e-3)
    assert spent(MIB / 2) == pytest.approx((1e-9 + paced) / 2 * MIB, rel=0.01)


def test_messages_that_share_a_burst_have_it_once():
    machine = BoxedMachine(4, Shape(25e6), replace(BARE, burst=65536.0, byte=4e-9, batched=1e-9))
    link = ("h0>", ">h1")
    assert machine._burst(link, 40000.0) == 40000.0
    assert machine._burst(("h0>", ">h2"), 40000.0) == 25536.0
    assert machine._burst(("h3>", ">h2"), 40000.0) == 40000.0
    machine._promise(link, -40000.0)
    assert machine._burst(link, 40000.0) == 40000.0


def test_who_answers_after_a_long_sleep_takes_longer_than_who_begins():
    def times(nbytes, **changes):
        machine = BoxedMachine(2, Shape(25e6), replace(BARE, **changes))
        once = finish(machine, [send(machine, rank, nbytes) for rank in range(2)])
        machine = BoxedMachine(2, Shape(25e6), replace(BARE, **changes))
        return once, finish(machine, [round_trip(machine, rank, nbytes) for rank in range(2)])

    resume = 1e-4
    plain, slow = times(MIB), times(MIB, resume=resume)
    assert slow[0] == plain[0]
    assert slow[1] - plain[1] == pytest.approx(resume, rel=1e-3)
    assert times(4.0, resume=resume)[1] - times(4.0)[1] < 0.01 * resume  # who has hardly slept
