"""The flow network, case by case; random ones are in tests/properties/test_fluid.py."""

import math
from collections.abc import Mapping

import pytest
import simpy

from simperf.engine import flow, fluid
from simperf.engine.array_component import ArrayComponent
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder
from simperf.errors import ProgramError, UnknownNameError


def network_of(recorder=None, **capacities):
    env = simpy.Environment()
    return env, FlowNetwork(env, capacities, recorder=recorder)


def at(env, time, action):
    """Do `action` at `time`."""

    def wait():
        yield env.timeout(time)
        action()

    env.process(wait())


def test_a_transfer_alone_takes_latency_and_bytes_over_bandwidth():
    env, network = network_of(a=10.0, b=5.0)
    event = network.transfer(["a", "b"], 20.0, latency=1.5)
    assert env.run(event) == 5.5 == env.now
    assert network.alone(["a", "b"], 20.0, latency=1.5) == 5.5
    assert network.alone(["a"], 20.0, cap=4.0) == 5.0
    began = env.now
    assert network.alone(["a", "a"], 20.0) == env.run(network.transfer(["a", "a"], 20.0)) - began, "drawn on twice"
    assert network.alone(["a"], 0.0, latency=1.0) == 1.0


def test_four_gpus_on_one_switch_send_their_gradients():
    # d2l 12.7: 160 MB each from three GPUs into one port of 16 GB/s takes 30 ms.
    env, network = network_of(**{f"up{i}": 16e9 for i in range(4)}, down0=16e9)
    events = [network.transfer([f"up{i}", "down0"], 160e6) for i in (1, 2, 3)]
    env.run()
    assert [event.value for event in events] == pytest.approx([0.030] * 3, rel=1e-14)
    assert network.effort == (1, 3)


def test_flows_come_and_go():
    env, network = network_of(a=10.0)
    first = network.transfer(["a"], 60.0)
    second = network.transfer(["a"], 20.0, latency=2.0)
    env.run()
    # 20 B alone until 2; 5 B/s each until the second has its 20 B at 6; then 20 B alone.
    assert (first.value, second.value) == (8.0, 6.0)


def test_nothing_to_move_takes_the_latency_and_no_links_no_time():
    env, network = network_of(a=1.0)
    events = [network.transfer(["a"], 0.0, latency=0.25), network.transfer([], 1e9, latency=0.5)]
    events += [network.transfer([], 8.0, cap=4.0), network.transfer([], 0.0)]
    env.run()
    assert [event.value for event in events] == [0.25, 0.5, 2.0, 0.0]
    assert network.moved == {"a": 0.0}


def test_an_infinite_capacity_never_limits():
    env, network = network_of(a=math.inf, b=4.0)
    env.run(until=env.timeout(7.0))
    events = [network.transfer(["a"], 1e12), network.transfer(["a", "b"], 8.0)]
    env.run()
    assert [event.value for event in events] == [7.0, 9.0]


def test_a_cap_leaves_the_rest_to_others():
    env, network = network_of(a=10.0)
    slow, fast = network.transfer(["a"], 4.0, cap=1.0), network.transfer(["a"], 36.0)
    env.run()
    assert (slow.value, fast.value) == (4.0, 4.0)


def test_weights_share_in_proportion():
    env, network = network_of(a=9.0)
    heavy, light = network.transfer(["a"], 12.0, weight=2.0), network.transfer(["a"], 12.0)
    env.run()
    assert heavy.value == 2.0
    assert light.value == pytest.approx(2.0 + 6.0 / 9.0, rel=1e-15)


def test_a_link_that_is_down_stalls_its_flows_until_it_is_up():
    env, network = network_of(a=10.0)
    event = network.transfer(["a"], 100.0)
    at(env, 4.0, lambda: network.set_capacity("a", 0.0))
    at(env, 9.0, lambda: network.set_capacity("a", 30.0))
    env.run(until=6.0)
    assert network.rates() == {"a": 0.0}
    assert network.moved == {"a": 40.0}
    env.run()
    assert event.value == env.now == 11.0
    assert network.alone(["a"], 60.0) == 2.0
    assert network.floors() == {"a": pytest.approx(100.0 / 30.0)}


def test_the_clock_stops_with_the_last_flow_even_if_it_was_once_slower():
    # The end predicted at 10 B/s is void when the link is sped up, or its flow called off.
    env, network = network_of(a=10.0)
    network.transfer(["a"], 100.0)
    at(env, 5.0, lambda: network.set_capacity("a", 50.0))
    env.run()
    assert env.now == 6.0
    flow = network.transfer(["a"], 1e6)
    at(env, 1.0, lambda: network.cancel(flow))
    env.run()
    assert env.now == 7.0


def test_background_traffic_takes_part_until_it_is_stopped():
    env, network = network_of(a=10.0)
    polite = network.background(["a"], 2.0, name="storage")
    event = network.transfer(["a"], 40.0)
    greedy = network.background(["a"], 100.0)
    at(env, 3.0, greedy.stop)
    env.run(until=2.0)
    # Max-min: the polite one has its 2; transfer and greedy 4 each.
    assert network.rates() == {"a": 10.0}
    assert network.rate(event) == 4.0
    env.run(event)
    assert env.now == 3.0 + 28.0 / 8.0
    polite.stop()
    polite.stop()
    env.run(until=20.0)
    assert network.moved == {"a": pytest.approx(65.0, rel=1e-14)}
    assert network.busy == {"a": 6.5}
    network.background(["a"], 0.0).stop()


def test_a_flow_called_off_gives_its_share_back():
    env, network = network_of(a=10.0)
    lost, kept = network.transfer(["a"], 100.0), network.transfer(["a"], 30.0)
    late = network.transfer(["a"], 5.0, latency=9.0)
    left = []
    at(env, 2.0, lambda: left.extend([network.cancel(lost), network.cancel(lost), network.cancel(late)]))
    env.run()
    assert left == [90.0, 0.0, 5.0]
    assert kept.value == 4.0
    assert not lost.triggered
    assert not late.triggered
    assert network.cancel(kept) == 0.0
    assert network.moved == {"a": 40.0}


def test_what_starts_at_one_instant_is_shared_out_once():
    env, network = network_of(a=10.0)

    def send(size, steps):
        yield env.timeout(1.0)
        yield network.transfer(["a"], size, latency=0.5)
        # Started at the instant of the ends, by some only some steps later: still shared out once.
        for _ in range(steps):
            yield env.timeout(0.0)
        yield network.transfer(["a"], 10.0)

    for steps in range(5):
        env.process(send(10.0, steps))
    env.run()
    assert network.effort[0] == 2
    assert env.now == pytest.approx(1.5 + 10.0, rel=1e-14)


def test_a_change_touches_only_what_is_connected_with_it():
    env, network = network_of(**{f"r{i}": 10.0 for i in range(40)})
    for pair in range(20):
        network.transfer([f"r{2 * pair}", f"r{2 * pair + 1}"], 1000.0)
    env.run(until=1.0)
    assert network.effort == (20, 20)
    extra = network.transfer(["r7"], 10.0)
    env.run(extra)
    env.run(until=4.0)
    # Two flows when it starts, one when it ends; the other 19 pairs are left alone.
    assert network.effort == (22, 23)


def test_a_component_that_falls_apart_is_two():
    env, network = network_of(a=10.0, b=10.0)
    bridge = network.transfer(["a", "b"], 5.0)
    network.transfer(["a"], 100.0)
    network.transfer(["b"], 100.0)
    env.run(bridge)
    env.run(until=2.0)
    assert network.effort == (3, 5)
    network.transfer(["a"], 1.0)
    env.run(until=2.1)
    assert network.effort == (4, 6)  # same route: one bundle


@pytest.mark.parametrize("many", [2, 64])
def test_counters_of_rates_only_where_they_change(many, monkeypatch):
    monkeypatch.setattr(fluid, "MANY", many)
    recorder = Recorder()
    env, network = network_of(recorder, a=10.0, b=4.0)
    network.transfer(["a"], 20.0)
    network.transfer(["a", "b"], 12.0, latency=1.0)
    env.run()
    seen = {name: [(s.time, s.value) for s in recorder.samples if s.name == name] for name in ("rate a", "rate b")}
    ends = pytest.approx(1.0 + 10.0 / 6.0), pytest.approx(4.0)
    assert seen == {
        "rate a": [(0.0, 10.0), (ends[0], 4.0), (ends[1], 0.0)],
        "rate b": [(1.0, 4.0), (ends[1], 0.0)],
    }
    assert network.peak == {"a": 10.0, "b": 4.0}
    assert not recorder.spans


def test_no_drift_over_thousands_of_re_shares():
    # A long flow beside 5,000 short ones that come and go at odd times.
    env, network = network_of(a=1e9)

    def short():
        for i in range(5000):
            yield env.timeout(1e-3 / 3)
            yield network.transfer(["a"], 1e5 / 7 + i)

    long = network.transfer(["a"], 1e10)
    env.process(short())
    env.run()
    shorts = math.fsum(1e5 / 7 + i for i in range(5000))
    assert long.value == pytest.approx((1e10 + shorts) / 1e9, rel=1e-12)
    assert network.moved["a"] == pytest.approx(1e10 + shorts, rel=1e-14)


def test_small_flows_keep_their_time_in_a_long_lived_bundle():
    # The bundle has counted 3e15 B when 7.1 B join on a link that is slow now: not lost in rounding.
    env, network = network_of(a=1e16 / 3)
    network.transfer(["a"], 1e17)
    at(env, 1.0, lambda: network.set_capacity("a", 2.0))
    env.run(until=2.0)
    assert env.run(network.transfer(["a"], 7.1)) - 2.0 == pytest.approx(7.1, rel=1e-12)


def test_a_component_that_has_fallen_apart_is_no_longer_looked_at_as_one():
    env, network = network_of(one=1e3, two=1e3, **{f"r{i}": 1.0 for i in range(400)})
    for i in range(200):
        network.transfer([("one", "two")[i % 2], f"r{i}"], 100.0)
        network.transfer(["one", f"r{200 + i}", "two"], 1.0)
    env.run(until=50.0)
    before = network.effort
    network.transfer(["one", "r0"], 1.0)
    env.run(until=51.0)
    assert network.effort == (before[0] + 1, before[1] + 100)


def test_many_rounds_of_a_symmetric_ring_stay_in_step():
    env, network = network_of(**{f"r{i}": 7e9 for i in range(64)})

    def rank(i):
        for _ in range(30):
            yield network.transfer([f"r{i}"], 1e6 / 3, latency=1e-7 / 3)
            yield rendezvous[0]

    rendezvous = [env.event()]
    done = [env.process(rank(i)) for i in range(64)]

    def beat():
        while not all(process.triggered for process in done):
            yield env.timeout(1e-3)
            rendezvous[0].succeed()
            rendezvous[0] = env.event()

    env.process(beat())
    env.run(env.all_of(done))
    assert network.effort == (30 * 64, 30 * 64)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda n: n.transfer(["nope"], 1.0), UnknownNameError),
        (lambda n: n.transfer(["a"], -1.0), ProgramError),
        (lambda n: n.transfer(["a"], math.nan), ProgramError),
        (lambda n: n.transfer(["a"], math.inf), ProgramError),
        (lambda n: n.transfer(["a"], 1.0, latency=-1e-9), ProgramError),
        (lambda n: n.transfer(["a"], 1.0, cap=0.0), ProgramError),
        (lambda n: n.transfer(["a"], 1.0, weight=0.0), ProgramError),
        (lambda n: n.set_capacity("a", -1.0), ProgramError),
        (lambda n: n.set_capacity("a", math.nan), ProgramError),
        (lambda n: n.background(["a"], math.inf), ProgramError),
        (lambda n: FlowNetwork(n.env, {"a": -1.0}), ProgramError),
    ],
)
def test_what_makes_no_sense_is_refused(call, error):
    _, network = network_of(a=1.0)
    with pytest.raises(error):
        call(network)


def test_a_component_is_taken_apart_when_few_are_left(monkeypatch):
    monkeypatch.setattr(fluid, "SEVERAL", 1000)  # no bottleneck component
    env, network = network_of(hub=64.0, **{f"r{i}": 1.0 for i in range(80)})
    events = [network.transfer(["hub", f"r{i}"], 1.0 + i) for i in range(80)]
    env.run(until=0.5)
    bundles = [event.bundle for event in events]
    assert all(isinstance(bundle, flow.Bundle) for bundle in bundles)
    assert all(isinstance(bundle.component, ArrayComponent) for bundle in bundles)
    assert network.rates()["hub"] == pytest.approx(64.0)
    env.run(events[70])
    assert events[79].bundle.component is None
    env.run()
    # 64 B/s for 80 flows until 64 are left, then 1 B/s each: reckoned flow by flow.
    left, now, alive = [1.0 + i for i in range(80)], 0.0, list(range(80))
    for i in range(80):
        rate = min(1.0, 64.0 / len(alive))
        step = left[i] / rate
        now += step
        left = [bytes_left - rate * step for bytes_left in left]
        alive.remove(i)
        assert events[i].value == pytest.approx(now, rel=1e-12)


def test_bytes_that_were_moved_without_flows_count_in_all_reports():
    env = simpy.Environment()
    network = FlowNetwork(env, {"wire": 10.0, "idle": 10.0})
    env.run(network.transfer(["wire"], 20.0))
    network.count({"wire": 30.0})
    assert network.moved == {"wire": 50.0, "idle": 0.0}
    assert network.floors()["wire"] == 5.0


def test_links_of_a_large_machine_come_into_being_when_they_are_used():
    asked = []

    class Machine(Mapping):
        def __getitem__(self, name):
            asked.append(name)
            if not name.startswith("link"):
                raise KeyError(name)
            return 10.0

        def __iter__(self):
            raise AssertionError("nobody needs all of them")

        def __len__(self):
            return 10**9

    env = simpy.Environment()
    network = FlowNetwork(env, Machine())
    assert env.run(network.transfer(["link7"], 20.0)) == 2.0
    network.count({"link8": 5.0})
    assert network.moved == {"link7": 20.0, "link8": 5.0}
    assert network.floors() == {"link7": 2.0, "link8": 0.5}
    assert set(asked) == {"link7", "link8"}
