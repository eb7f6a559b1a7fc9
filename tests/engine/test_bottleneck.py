"""Flows behind one link in virtual time and what is connected; see also test_fluid.py."""

import bisect
import math
import random

import pytest
import simpy

from simperf.engine import fluid
from simperf.engine.bottleneck import BottleneckComponent, find_hub
from simperf.engine.flow import connected, first_end
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder


def star(ports, *, hub=10.0, port=10.0, recorder=None):
    env = simpy.Environment()
    capacities = {"hub": hub, "far": 1e6, **{f"up{i}": port for i in range(ports)}}
    return env, FlowNetwork(env, capacities, recorder=recorder)


def bundles(events):
    return [event.bundle for event in events]


def behind_bottleneck(events):
    components = {bundle.component for bundle in bundles(events) if bundle is not None}
    return len(components) == 1 and isinstance(components.pop(), BottleneckComponent)


def play(ports, *, several, monkeypatch, seed=1, count=400, hub=10.0, port=10.0, recorder=None):
    """Random transfers of all kinds of sizes through one port; ends, peaks and re-shares."""
    monkeypatch.setattr(fluid, "SEVERAL", several)
    env, network = star(ports, hub=hub, port=port, recorder=recorder)
    draw = random.Random(seed)
    ends = []

    def flow(start, source, nbytes, weight, cap):
        yield env.timeout(start)
        ends.append((yield network.transfer([f"up{source}", "hub"], nbytes, weight=weight, cap=cap)))

    for _ in range(count):
        cap = draw.choice([math.inf, math.inf, math.inf, 0.5])
        size = 10 ** draw.uniform(-3, 2)
        env.process(flow(draw.uniform(0, 300), draw.randrange(ports), size, draw.choice([1.0, 1.0, 2.5]), cap))
    env.run()
    return ends, network


def test_equal_flows_through_one_port_share_it():
    env, network = star(20)
    events = [network.transfer([f"up{i}", "hub"], 1.0 + i) for i in range(20)]
    env.run(until=0.1)
    assert behind_bottleneck(events)
    assert network.rates()["hub"] == pytest.approx(10.0)
    assert network.rate(events[3]) == pytest.approx(0.5)
    env.run()
    now, left = 0.0, 20
    for i, event in enumerate(events):  # one byte more each than the one before, at 10 B/s over those that are left
        now += left / 10.0
        left -= 1
        assert event.value == pytest.approx(now, rel=1e-12), i


@pytest.mark.parametrize("port", [10.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_random_flows_end_as_they_do_without_a_bottleneck_component(seed, port, monkeypatch):
    ends, network = play(40, several=4, monkeypatch=monkeypatch, seed=seed, port=port)
    reference, slow = play(40, several=10**6, monkeypatch=monkeypatch, seed=seed, port=port)
    assert ends == pytest.approx(reference, rel=1e-11)
    assert network.moved == pytest.approx(slow.moved, rel=1e-11)
    assert network.busy == pytest.approx(slow.busy, rel=1e-9)
    assert network.peak == pytest.approx(slow.peak, rel=1e-9)


def test_the_recorder_hears_the_same_rates(monkeypatch):
    def rates(several):
        recorder = Recorder()
        play(12, several=several, monkeypatch=monkeypatch, count=60, recorder=recorder)
        found = {}
        for one in recorder.samples:
            found.setdefault(one.name, []).append((one.time, one.value))
        return found

    def at(samples, time):
        return samples[bisect.bisect(samples, (time, math.inf)) - 1][1] if samples[0][0] <= time else 0.0

    fast, slow = rates(4), rates(10**6)
    assert fast.keys() == slow.keys()
    for name, samples in slow.items():
        times = [0.77 * i for i in range(500)]
        assert [at(fast[name], t) for t in times] == pytest.approx([at(samples, t) for t in times], abs=1e-9), name


def test_a_port_that_gets_narrow_breaks_the_component():
    env, network = star(10)
    events = [network.transfer([f"up{i}", "hub"], 10.0) for i in range(10)]
    env.run(until=2.0)
    assert behind_bottleneck(events)
    network.set_capacity("up0", 0.5)
    env.run(until=2.5)
    assert not behind_bottleneck(events)
    env.run()
    # 2 B each by now; then nine share 9.5 B/s, and the last goes at its port's 0.5 B/s
    assert events[1].value == pytest.approx(2.0 + 8.0 / (9.5 / 9))
    assert events[0].value == pytest.approx(2.0 + 8.0 / 0.5)


def test_another_flow_that_does_not_come_through_breaks_the_component():
    env, network = star(10)
    events = [network.transfer([f"up{i}", "hub"], 10.0) for i in range(10)]
    env.run(until=2.0)
    beside = network.transfer(["up0"], 95.0)
    env.run(until=2.5)
    assert not behind_bottleneck(events)
    env.run()
    # the flow beside gets 9 of the port's 10 B/s until the ten are done at 10 s
    assert events[0].value == pytest.approx(10.0)
    assert beside.value == pytest.approx(10.0 + (95.0 - 8 * 9.0) / 10.0)


def test_a_flow_called_off_and_small_ones_beside_large_ones():
    env, network = star(9)
    events = [network.transfer([f"up{i}", "hub"], 1e9) for i in range(8)]
    env.run(until=1e6)
    assert network.cancel(events.pop()) == pytest.approx(1e9 - 1.25e6)
    small = network.transfer(["up8", "hub"], 1e-3)
    assert env.run(small) - 1e6 == pytest.approx(1e-3 / (10.0 / 8), rel=1e-6)
    assert behind_bottleneck(events)


def test_hubs():
    env, network = star(3, hub=10.0, port=4.0)
    pair = [network.transfer([f"up{i}", "hub"], 10.0) for i in range(2)]
    env.run(until=0.1)
    assert find_hub(bundles(pair)) is None  # the ports hold them, not the hub
    pair.append(network.transfer(["up2", "hub"], 10.0))
    env.run(until=0.2)
    found, links, components = connected(pair[0].bundle, 10**9)
    assert (len(found), len(links), components) == (3, 4, [])
    assert find_hub(found).name == "hub"
    assert first_end(found) == pytest.approx((10.0 - 0.4) / (10.0 / 3))  # as of the last share-out, at 0.1 s
