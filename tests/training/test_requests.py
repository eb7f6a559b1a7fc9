"""Limits of software: requests without an answer, and slices that a server takes in at one time."""

import pytest
import simpy

from simperf.errors import InputError
from simperf.training.servers.requests import Buffers, Requests
from simperf.training.servers.staleness import Consistency
from tests.training.strategies import store_options

#: 64 slices of 1 MB, one server, ports of 50 GB/s: 20 us each of a lone worker
PLAN = {"steps": 1, "weights": 64e6, "slice_size": 1e6}
WIRE = 1e6 / 50e9


def test_requests_are_posted_one_after_the_other():
    requests, posted = Requests(8), []
    for index in range(3):
        requests.ask(index, lambda index=index: posted.append(index))
    assert posted == [0], "the server has not taken the first"
    requests.sent()
    assert posted == [0, 1]


def test_many_requests_that_are_taken_at_once_are_posted_in_order():
    requests, posted = Requests(100_000), []

    def post(index):
        posted.append(index)
        requests.sent()

    requests.ask(0, lambda: posted.append(0))  # not taken yet: the others wait behind it
    for index in range(1, 5000):
        requests.ask(index, lambda index=index: post(index))
    assert posted == [0]
    requests.sent()
    assert posted == list(range(5000))


def test_requests_without_a_limit_do_not_wait():
    requests, posted = Requests(0), []
    for index in range(3):
        requests.ask(index, lambda index=index: posted.append(index))
    requests.answered(2, lambda: None)
    assert posted == [0, 1, 2]


def test_a_buffer_is_kept_until_the_sum_is_there():
    buffers, taken = Buffers(2), []
    for index in (0, 1, 2, 2, 3, 0):
        buffers.take(index, lambda index=index: taken.append(index))
    assert taken == [0, 1, 0]
    buffers.free(1)
    assert taken == [0, 1, 0, 2, 2]
    buffers.free(0)
    buffers.free(2)
    assert taken == [0, 1, 0, 2, 2, 3]


def test_with_one_request_every_slice_goes_out_and_comes_back_alone(star, with_servers):
    session = with_servers(star(1, latency="25 us"), requests=1, **PLAN)
    assert session.now == pytest.approx(64 * 2 * (50e-6 + WIRE), rel=1e-9)


def test_requests_share_a_round_trip(star, with_servers):
    """Those of a round trip share the port, each way; the latency is paid once for all."""
    for limit in (2, 4, 8):
        session = with_servers(star(1, latency="25 us"), requests=limit, **PLAN)
        assert session.now == pytest.approx(64 / limit * 2 * (50e-6 + limit * WIRE), rel=1e-9)


def test_the_thread_takes_its_time_over_each_request_and_its_answer(star, with_servers):
    """Alone under way: twice the thread, and there and back. Many: the thread is all that counts."""
    machine, each = star(1, latency="25 us"), 64 * 2 * 40e-6
    one = with_servers(machine, requests=1, handle=40e-6, **PLAN).now
    assert one == pytest.approx(64 * 2 * (40e-6 + 50e-6 + WIRE), rel=1e-9)
    for limit in (16, 0):
        many = with_servers(machine, requests=limit, handle=40e-6, **PLAN).now
        assert each < many < each + 2 * (50e-6 + WIRE) + 1e-9


def test_a_thread_that_is_faster_than_the_port_costs_one_request(star, with_servers):
    plan = {**PLAN, "requests": 16, "connections": 1}
    free = with_servers(star(1, latency="0 s"), **plan).now
    busy = with_servers(star(1, latency="0 s"), handle=1e-6, **plan).now
    assert free < busy < free + 3e-6


def test_all_wait_for_one_busy_thread(star, with_servers):
    """Sums need all workers: one slow thread of four is as bad as four."""
    plan = {**PLAN, "requests": 8, "handle": 1e-4, "connections": 1}
    one, four, none = (
        with_servers(star(4, latency="0 s"), **{**plan, **more}).now for more in ({"handlers": 1}, {}, {"handle": 0.0})
    )
    assert one == pytest.approx(four, rel=0.02)
    assert one > 64 * 2e-4 > 1.5 * none


def test_answers_go_before_requests_that_wait_for_the_thread():
    env = simpy.Environment()
    requests, order = Requests(2, handle=1.0, env=env), []

    def post(index):
        order.append((f"post {index}", env.now))
        requests.sent()

    for index in range(3):
        requests.ask(index, lambda index=index: post(index))
    env.run(until=0.5)
    requests.answered(0, lambda: order.append(("answer 0", env.now)))
    env.run()
    assert order == [("post 0", 1.0), ("answer 0", 2.0), ("post 1", 3.0), ("post 2", 4.0)]


def test_enough_requests_are_as_good_as_no_limit(star, with_servers):
    free = with_servers(star(4, latency="0 s"), connections=1, **PLAN).now
    many = with_servers(star(4, latency="0 s"), connections=1, requests=64, **PLAN).now
    assert many == pytest.approx(free, rel=1e-9)


def test_one_buffer_takes_slices_in_and_adds_them_up_in_turn(star, with_servers):
    """No slice comes in while the one before it is added up: four ports into one, then 9 bytes of memory for each."""
    rate = 100e9
    more = {"apply": 9.0, "server_memory": rate, "connections": 1, **PLAN}
    one = with_servers(star(4, latency="0 s"), buffers=1, **more).now
    two = with_servers(star(4, latency="0 s"), buffers=2, **more).now
    free = with_servers(star(4, latency="0 s"), **more).now
    each = 4 * WIRE + 9e6 / rate
    assert one == pytest.approx(64 * each + 4 * WIRE, rel=0.02)
    assert one > 1.5 * two
    assert two == pytest.approx(free, rel=0.05), "two overlap what one does in turn"


def test_nothing_is_lost_over_several_steps(star, with_servers):
    session = with_servers(star(4, 2), servers=2, requests=3, buffers=1, connections=1, **{**PLAN, "steps": 3})
    assert session.simulation.network.moved["gpu0>hub"] == pytest.approx(3 * 64e6)
    assert session.simulation.network.moved["hub>gpu3"] == pytest.approx(3 * 64e6)


@pytest.mark.parametrize(
    "options",
    [
        {"requests": -1},
        {"handle": -1.0},
        {"handlers": -1},
        {"buffers": -1},
        {"buffers": 1, "rule": Consistency("asynchronous")},
    ],
)
def test_limits_without_meaning(options):
    with pytest.raises(InputError):
        store_options(**options)
