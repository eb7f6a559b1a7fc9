"""The boxed cluster in the simulator, against closed forms and conservation."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.experiments import MODEL
from simperf.calibrate.cluster.machine import BoxedMachine
from simperf.calibrate.cluster.play import finish, gloo_ring, gloo_segments, play_plan, round_trip, send, train
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.cluster.strategies import Compute, ddp_steps, serve, worker
from simperf.collectives import make_plan

MIB = float(1 << 20)
RATE = 25e6
#: only the links count
BARE = Constants(
    efficiency=1.0,
    burst=0.0,
    latency=0.0,
    traversal=0.0,
    call=0.0,
    byte=1e-15,
    add=0.0,
    window=0.0,
    frame=0.0,
    word=0.0,
)
COMPUTE = Compute.of(MODEL["mlp-8x512"], forward=0.05, backward=0.1, update=0.001)


def box(hosts, shape=None, **changes):
    return BoxedMachine(hosts, shape or Shape(RATE), replace(BARE, **changes))


def all_reduce(machine, algorithm, ranks, nbytes):
    if algorithm == "gloo":
        return finish(machine, [gloo_ring(machine, rank, ranks, nbytes) for rank in range(ranks)])
    plan = make_plan("all-reduce", algorithm, nranks=ranks)
    return finish(machine, [play_plan(machine, plan, rank, nbytes) for rank in range(plan.nparticipants)])


def test_a_send_takes_the_burst_at_once_and_the_rest_at_the_rate():
    machine = box(2, efficiency=0.95, burst=32768.0, byte=1e-12)
    time = finish(machine, [send(machine, rank, MIB) for rank in range(2)])
    assert time == pytest.approx((MIB / 0.95 - 32768) / RATE, rel=1e-3)


def test_latency_and_work_of_a_message_add_up():
    machine = box(2, latency=50e-6, traversal=10e-6, call=20e-6, cores=1e9)
    # asking, telling that there is room, half of the way out, and half of the way in
    expected = 20e-6 + (10e-6 + 50e-6) + 5e-6 + 4.0 / RATE + 50e-6 + 5e-6
    assert finish(machine, [send(machine, rank, 4.0) for rank in range(2)]) == pytest.approx(expected, rel=1e-6)


def test_a_round_trip_costs_less_than_two_sends_because_room_is_told_in_time():
    constants = {"latency": 50e-6, "traversal": 10e-6, "call": 20e-6}
    once, both = box(2, **constants), box(2, **constants)
    single = finish(once, [send(once, rank, 4.0) for rank in range(2)])
    double = finish(both, [round_trip(both, rank, 4.0) for rank in range(2)])
    assert single < double < 2 * single


def test_a_train_of_messages_is_bound_by_the_cores():
    machine = box(2, traversal=10e-6, call=0.0, cores=2.0)
    time = finish(machine, [train(machine, rank, 4.0, 64) for rank in range(2)])
    assert time >= 64 * 30e-6 / 2  # three traversals a message, two cores


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("algorithm", ["gloo", "ring", "sharded"])
def test_bandwidth_optimal_algorithms_take_the_bound_where_only_links_count(algorithm, ranks):
    nbytes = 840.0 * 4096
    time = all_reduce(box(ranks), algorithm, ranks, nbytes)
    assert time == pytest.approx(2 * (ranks - 1) / ranks * nbytes / RATE, rel=1e-6)


@pytest.mark.parametrize(("algorithm", "passes"), [("central", 8.0), ("binomial-tree", 4.0), ("naive", 6.0)])
def test_other_algorithms_take_so_many_payloads_one_after_the_other(algorithm, passes):
    assert all_reduce(box(5), algorithm, 4, MIB) == pytest.approx(passes * MIB / RATE, rel=1e-6)


@given(ranks=st.integers(2, 8), nbytes=st.integers(1, 1 << 22), burst=st.floats(0.0, 1e5))
@settings(max_examples=40, deadline=None)
def test_gloo_moves_what_a_ring_moves_and_is_never_faster_than_links_allow(ranks, nbytes, burst):
    nbytes = 4.0 * -(-nbytes // 4)
    machine = box(ranks, burst=burst, byte=1e-12)
    time = all_reduce(machine, "gloo", ranks, nbytes)
    moved = [machine.network.moved[f"h{rank}>"] for rank in range(ranks)]
    assert sum(moved) == pytest.approx(2 * (ranks - 1) * nbytes, rel=1e-9)
    assert time >= max(max(moved) - burst, 0.0) / RATE * (1 - 1e-9)


def test_cores_hold_back_what_links_would_let_pass():
    byte = 2e-9  # two cores move a gigabyte a second, eight links of 1 Gbit/s want nearly as much
    free = all_reduce(box(8, Shape(125e6), byte=byte, cores=64.0), "ring", 8, 8 * MIB)
    bound = all_reduce(box(8, Shape(125e6), byte=byte, cores=1.0), "ring", 8, 8 * MIB)
    moved = 2 * 7 * 8 * MIB
    assert free == pytest.approx(moved / 8 / 125e6, rel=1e-3)
    assert bound == pytest.approx(moved * byte, rel=1e-3)


def test_one_slow_host_sets_the_pace_of_a_ring_and_not_of_its_neighbours():
    shape = Shape(RATE, {1: RATE / 4})
    assert all_reduce(box(4, shape), "ring", 4, MIB) == pytest.approx(1.5 * MIB / (RATE / 4), rel=1e-6)
    machine = box(4, shape)

    def pair():
        machine.send(2, 3, MIB)
        yield machine.receive(2, 3)

    assert finish(machine, [pair()]) == pytest.approx(MIB / RATE, rel=1e-6)


def test_words_and_acknowledgements_take_room_on_the_links():
    machine = box(2, frame=66.0, word=48.0)
    time = finish(machine, [send(machine, rank, MIB) for rank in range(2)])
    assert time == pytest.approx((MIB + 228.0) / RATE, rel=1e-9)  # a word, the message's head, an acknowledgement
    machine.env.run()
    assert machine.network.moved["h1>"] == pytest.approx(180.0 + 66.0 * 64)  # one of each segment of 16 KiB
    ring = box(3, frame=66.0, word=48.0)
    all_reduce(ring, "ring", 3, 3 * MIB)
    assert ring.network.moved["h0>"] == pytest.approx(4 * (MIB + 228.0 + 180.0 + 66.0 * 64), rel=1e-9)


def test_data_that_goes_both_ways_carries_acknowledgements():
    machine = box(2, frame=66.0, word=48.0)
    all_reduce(machine, "ring", 2, 2 * MIB)
    both = sum(machine.network.moved[link] for link in ("h0>", "h1>"))
    assert both == pytest.approx(4 * (MIB + 228.0 + 180.0), rel=1e-9)


def test_a_group_of_gloo_has_threads_of_its_own_that_are_woken():
    direct, threaded = box(2, latency=50e-6), box(2, latency=50e-6)
    alone = finish(direct, [gloo_segments(direct, rank, 2, 4096.0) for rank in range(2)])
    assert finish(threaded, [gloo_ring(threaded, rank, 2, 4096.0) for rank in range(2)]) == pytest.approx(alone + 1e-4)


def test_a_byte_costs_busy_cores_less_than_sleeping_ones():
    """Threads that wait for a core find several segments: eight hosts move a byte for less than two do."""
    assert Constants(byte=4e-9, batched=1e-9).together == 0.25
    assert Constants(byte=1e-9, batched=4e-9).together == 1.0

    def spent(ranks):
        machine = box(ranks, Shape(125e6), byte=4e-9, batched=1e-9, buffer=1e5)
        all_reduce(machine, "ring", ranks, 8 * MIB)
        return machine.network.moved["cores"] * machine.byte / (2 * (ranks - 1) * 8 * MIB)

    assert 1e-9 < spent(8) < 0.65 * spent(2) < 0.65 * 4e-9


@pytest.mark.parametrize(("ranks", "waits"), [(2, 0), (3, 1), (4, 1), (6, 2), (8, 3)])
def test_who_is_done_holds_a_core_for_the_next_repeat_while_others_have_to_end(ranks, waits):
    """On two cores as many end one after the other as share one; nobody waits where each has a core."""
    around = 1e-3

    def time(again):
        machine = box(ranks, Shape(1e12), around=around)
        threads = [gloo_ring(machine, rank, ranks, 4096.0) for rank in range(ranks)]
        return finish(machine, threads, again)

    assert time(4096.0) - time(None) == pytest.approx(waits * around, abs=1e-6)


def test_who_ends_later_waits_for_nobody():
    machine = box(4, around=1e-3)

    def after(seconds):
        yield machine.env.timeout(seconds)

    assert finish(machine, [after(0.01 * rank) for rank in range(4)], 4.0) == pytest.approx(0.03, rel=1e-6)


def test_who_shares_both_links_loses_a_window_and_who_shares_one_does_not():
    window = 32768.0
    chunk = MIB / 4
    lost = 3 * chunk * window / (chunk + window)
    time = all_reduce(box(4, window=window), "sharded", 4, MIB)
    assert time == pytest.approx((1.5 * MIB + 2 * lost) / RATE, rel=1e-2)  # and the word that there is room waits
    assert all_reduce(box(5, window=window), "central", 4, MIB) == pytest.approx(8 * MIB / RATE, rel=1e-6)


def test_a_sender_goes_on_when_its_socket_has_taken_all_in():
    quick, strict = box(5, buffer=1e5), box(5, buffer=0.0)
    assert all_reduce(quick, "binomial-tree", 4, MIB) > all_reduce(strict, "binomial-tree", 4, MIB)
    machine = box(2, buffer=1e5)
    left = []

    def sender():
        yield machine.send(0, 1, MIB)
        left.append(machine.env.now)

    def receiver():
        yield machine.receive(0, 1)

    time = finish(machine, [sender(), receiver()])
    assert (time - left[0]) * RATE == pytest.approx(1e5, rel=1e-6)


def test_training_alone_is_computing_and_a_slow_link_is_communicating():
    alone = ddp_steps(box(2, Shape(1e12)), 2, COMPUTE, MIB)
    assert alone == pytest.approx([0.151, 0.151], rel=1e-3)
    slow = ddp_steps(box(2, Shape(1e5)), 2, COMPUTE, MIB)
    assert slow[0] == pytest.approx(COMPUTE.nbytes / 1e5, rel=2e-3)


def test_four_processes_on_two_cores_take_twice_as_long():
    assert ddp_steps(box(4, Shape(1e12)), 4, COMPUTE, MIB)[0] == pytest.approx(2 * 0.151, rel=1e-3)


def test_small_buckets_overlap_and_one_bucket_does_not():
    times = [ddp_steps(box(2, Shape(1e8)), 2, COMPUTE, bucket)[0] for bucket in (MIB, 4 * MIB, 16 * MIB)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(0.151 + COMPUTE.nbytes / 1e8, rel=1e-3)


def test_buckets_are_those_of_torch():
    assert [bucket.nbytes for bucket in COMPUTE.buckets(2 * MIB)] == [2 * MIB] * 4
    assert [bucket.ready for bucket in COMPUTE.buckets(3 * MIB)] == [2, 5, 7]
    assert sum(COMPUTE.kernels) == pytest.approx(0.1)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_server_gives_each_worker_its_turn(workers):
    """Links only: asynchronous workers share the server's port, and the last waits for all."""
    machine = box(workers + 1, cores=64.0)
    threads = serve(machine, workers, COMPUTE, 1, synchronous=False)
    threads += [worker(machine, rank, workers, COMPUTE, 1) for rank in range(workers)]
    assert finish(machine, threads) == pytest.approx(0.15 + 2 * workers * COMPUTE.nbytes / RATE, rel=1e-3)


def test_synchronous_workers_are_not_faster_than_asynchronous_ones():
    times = {}
    for synchronous in (False, True):
        machine = box(5, Shape(RATE, {1: RATE / 3}), cores=64.0)
        threads = serve(machine, 4, COMPUTE, 3, synchronous=synchronous)
        threads += [worker(machine, rank, 4, COMPUTE, 3) for rank in range(4)]
        times[synchronous] = finish(machine, threads)
    assert times[False] <= times[True]
