"""The flow network against an independent fluid model in exact arithmetic, and against laws.

`reference` knows nothing of the engine: it steps from event to event in `Fraction`s, and
finds the rates by raising all of them together until a link or a cap stops some.
"""

import math
import random
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine import fluid
from simperf.engine.network import FlowNetwork

INFINITE = None


@dataclass(frozen=True)
class Spec:
    """A flow; without bytes it is background traffic, from `start` to `stop`."""

    start: float
    route: tuple[int, ...]
    nbytes: float | None
    latency: float = 0.0
    cap: float | None = INFINITE
    weight: float = 1.0
    stop: float | None = None


def fill_slowly(active, capacity):
    """Rates of `active` flows, one bottleneck at a time."""
    rates, level = {}, Fraction(0)
    room = dict(capacity)
    while len(rates) < len(active):
        moving = {i: flow for i, flow in active.items() if i not in rates}
        load = {link: sum(Fraction(f.weight) * f.route.count(link) for f in moving.values()) for link in room}
        steps = [(room[link] / load[link]) for link in room if load[link]]
        steps += [Fraction(f.cap) / Fraction(f.weight) - level for f in moving.values() if f.cap is not None]
        step = min(steps)
        level += step
        for link in room:
            room[link] -= step * load[link]
        for i, flow in moving.items():
            capped = flow.cap is not None and level >= Fraction(flow.cap) / Fraction(flow.weight)
            if capped or any(room[link] == 0 for link in flow.route):
                rates[i] = level * Fraction(flow.weight)
    return rates


def reference(specs, capacities, changes):
    """Completion time of each flow with bytes, exactly."""
    capacity = {link: Fraction(value) for link, value in enumerate(capacities)}
    plans = [(Fraction(s.start) + Fraction(s.latency), "join", i) for i, s in enumerate(specs)]
    plans += [(Fraction(s.stop), "stop", i) for i, s in enumerate(specs) if s.stop is not None]
    plans += [(Fraction(time), "set", (link, Fraction(value))) for time, link, value in changes]
    plans.sort(key=lambda plan: plan[0])
    left, active, done, now = {}, {}, {}, Fraction(0)
    while plans or left:
        rates = fill_slowly(active, capacity)
        ends = [left[i] / rates[i] for i in left if rates[i]]
        step = min(ends + [plan[0] - now for plan in plans[:1]])
        now += step
        for i in list(left):
            left[i] -= rates[i] * step
            if left[i] == 0:
                done[i] = float(now)
                del left[i], active[i]
        while plans and plans[0][0] == now:
            _, kind, what = plans.pop(0)
            if kind == "set":
                capacity[what[0]] = what[1]
            elif kind == "stop":
                del active[what]
            elif specs[what].nbytes == 0:
                done[what] = float(now)
            else:
                active[what] = specs[what]
                if specs[what].nbytes is not None:
                    left[what] = Fraction(specs[what].nbytes)
    return done


def simulate(specs, capacities, changes=(), *, probe=None, order=None):
    """Completion times by the engine; `probe(network, events)` is called at many instants."""
    env = simpy.Environment()
    network = FlowNetwork(env, {f"r{link}": value for link, value in enumerate(capacities)})
    done, events = {}, {}

    def play(i, spec):
        route = tuple(f"r{link}" for link in spec.route)
        yield env.timeout(spec.start)
        cap = math.inf if spec.cap is None else spec.cap
        if spec.nbytes is None:
            traffic = network.background(route, spec.cap)
            yield env.timeout(spec.stop - spec.start)
            traffic.stop()
        else:
            events[i] = network.transfer(route, spec.nbytes, latency=spec.latency, cap=cap, weight=spec.weight)
            done[i] = yield events[i]
            assert done[i] == env.now

    def change(time, link, value):
        yield env.timeout(time)
        network.set_capacity(f"r{link}", value)

    for i in order or range(len(specs)):
        env.process(play(i, specs[i]))
    for one in changes:
        env.process(change(*one))
    if probe is not None:
        last = -1.0
        while env.peek() < math.inf:
            assert env.now >= last
            last = env.now
            env.step()
            if env.peek() > env.now:
                probe(network, events)
    env.run()
    return done, network


def eighths(draw, highest):
    return draw.randint(0, 8 * highest) / 8


def random_case(seed):
    """Some links and flows, in numbers that are exact in binary."""
    draw = random.Random(seed)
    links = draw.randint(1, 8)
    specs = []
    for _ in range(draw.randint(1, 9)):
        route = tuple(draw.sample(range(links), draw.randint(1, min(4, links))))
        if draw.random() < 0.1:
            route += route[:1]
        start = eighths(draw, draw.choice([0, 1, 10]))
        cap = draw.choice([None, None, 0.5, 2.0, 5.0])
        if draw.random() < 0.15:
            specs.append(Spec(start, route, None, cap=cap or 1.0, stop=start + 0.125 + eighths(draw, 20)))
        else:
            nbytes = draw.choice([0.0, 1.0, 16.0, 2.0**-20, 1 + eighths(draw, 50)])
            weight = draw.choice([1.0, 1.0, 1.0, 2.0, 0.5])
            specs.append(Spec(start, route, nbytes, draw.choice([0.0, 0.0, 0.25]), cap, weight))
    if draw.random() < 0.3:
        specs += [replace(spec, start=spec.start + 0.5) for spec in specs if spec.nbytes]
    capacities = [draw.choice([1.0, 2.0, 3.0, 7.0, 10.0, 100.0]) for _ in range(links)]
    changes = []
    for link in range(links):
        if draw.random() < 0.3:
            time = eighths(draw, 10)
            changes.append((time, link, draw.choice([0.0, 0.5, 20.0])))
            changes.append((time + 0.125 + eighths(draw, 5), link, draw.choice([1.0, 4.0, 20.0])))
    return specs, capacities, changes


#: least number of flows that meet for the arrays, and of flows behind one link for virtual time; fewer than by default
WAYS = {"few": (64, 1000), "arrays": (2, 1000), "bottlenecks": (2, 2), "bottlenecks and few": (64, 2)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("block", range(10))
def test_200_random_systems_end_when_the_exact_fluid_model_says(block, way, monkeypatch):
    # Any two flows that meet are handled by the arrays, or by the virtual clock, that are for hundreds.
    monkeypatch.setattr(fluid, "MANY", WAYS[way][0])
    monkeypatch.setattr(fluid, "SEVERAL", WAYS[way][1])
    for seed in range(20 * block, 20 * block + 20):
        specs, capacities, changes = random_case(seed)
        expected = reference(specs, capacities, changes)
        done, network = simulate(specs, capacities, changes)
        assert done == {i: pytest.approx(time, rel=1e-9) for i, time in expected.items()}, f"seed {seed}"
        assert set(network.rates().values()) <= {0.0}


def fair(network, events, specs, capacities):
    """Assert that the rates of this instant are max-min fair and fill no link over its capacity."""
    drawn = network.rates()
    rates = {i: network.rate(event) for i, event in events.items() if network.rate(event)}
    for link, capacity in enumerate(capacities):
        assert drawn[f"r{link}"] <= capacity * (1 + 1e-9)
    for i, rate in rates.items():
        level = rate / specs[i].weight
        if specs[i].cap is not None and rate >= specs[i].cap * (1 - 1e-9):
            continue
        assert any(
            drawn[f"r{link}"] >= capacities[link] * (1 - 1e-9)
            and all(
                other / specs[j].weight <= level * (1 + 1e-9) for j, other in rates.items() if link in specs[j].route
            )
            for link in specs[i].route
        )


@st.composite
def systems(draw):
    links = draw(st.integers(1, 6))
    flow = st.builds(
        Spec,
        start=st.floats(0, 10),
        route=st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True).map(tuple),
        nbytes=st.floats(1e-3, 1e4),
        latency=st.sampled_from([0.0, 1e-6, 0.5]),
        cap=st.sampled_from([None, None, 0.7, 30.0]),
        weight=st.sampled_from([1.0, 1.0, 3.0]),
    )
    specs = draw(st.lists(flow, min_size=1, max_size=14))
    return specs, draw(st.lists(st.floats(0.1, 100), min_size=links, max_size=links))


@settings(max_examples=150, deadline=None)
@given(systems(), st.sampled_from(list(WAYS.values())))
def test_laws(system, way):
    """Bytes are conserved, no link is over-full, and the rates are max-min fair at every instant."""
    specs, capacities = system
    before = fluid.MANY, fluid.SEVERAL
    fluid.MANY, fluid.SEVERAL = way
    last = dict.fromkeys((f"r{link}" for link in range(len(capacities))), 0.0)

    def probe(network, events):
        fair(network, events, specs, capacities)
        moved = network.moved
        for link, capacity in enumerate(capacities):
            assert last[f"r{link}"] <= moved[f"r{link}"] * (1 + 1e-12)
            assert moved[f"r{link}"] <= capacity * network.env.now * (1 + 1e-9) + 1e-9
        last.update(moved)

    try:
        done, network = simulate(specs, capacities, probe=probe)
    finally:
        fluid.MANY, fluid.SEVERAL = before
    assert len(done) == len(specs)
    for link in range(len(capacities)):
        total = math.fsum(spec.nbytes for spec in specs if link in spec.route)
        assert network.moved[f"r{link}"] == pytest.approx(total, rel=1e-12)
    assert max(network.floors().values(), default=0.0) <= max(done.values()) * (1 + 1e-9)
    for i, spec in enumerate(specs):
        rate = min([capacities[link] for link in spec.route] + [spec.cap or math.inf])
        assert done[i] >= (spec.start + spec.latency + spec.nbytes / rate) * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(systems(), st.sampled_from([1e-3, 8.0, 1e9]))
def test_bytes_and_bandwidth_scaled_together_change_nothing(system, factor):
    specs, capacities = system
    bigger = [replace(s, nbytes=s.nbytes * factor, cap=s.cap and s.cap * factor) for s in specs]
    done, _ = simulate(specs, capacities)
    scaled, _ = simulate(bigger, [capacity * factor for capacity in capacities])
    assert scaled == {i: pytest.approx(time, rel=1e-9) for i, time in done.items()}


@settings(max_examples=60, deadline=None)
@given(systems(), st.randoms(use_true_random=False))
def test_the_order_in_which_flows_are_started_changes_nothing(system, shuffle):
    specs, capacities = system
    order = list(range(len(specs)))
    shuffle.shuffle(order)
    done, _ = simulate(specs, capacities)
    other, _ = simulate(specs, capacities, order=order)
    assert other == {i: pytest.approx(time, rel=1e-9) for i, time in done.items()}


@settings(max_examples=60, deadline=None)
@given(systems(), systems())
def test_systems_without_a_common_link_do_not_see_each_other(one, two):
    specs, capacities = one
    moved = [replace(s, route=tuple(link + len(capacities) for link in s.route)) for s in two[0]]
    together, _ = simulate([*specs, *moved], [*capacities, *two[1]])
    alone, _ = simulate(specs, capacities)
    beside, _ = simulate(*two)
    expected = alone | {len(specs) + i: time for i, time in beside.items()}
    assert together == {i: pytest.approx(time, rel=1e-13) for i, time in expected.items()}


@pytest.mark.parametrize("ports", [12])
def test_a_large_star_agrees_with_the_small_way_through(ports, monkeypatch):
    # Several hundred connected flows: arrays and the shortcut against filling from nothing.
    draw = random.Random(3)
    specs = []
    for _ in range(500):
        a = draw.randrange(ports)
        b = ports + (a + draw.randrange(1, ports)) % ports
        cap = draw.choice([None, None, None, 0.2])
        specs.append(Spec(draw.uniform(0, 20), (a, b), draw.uniform(0.1, 5), 1e-3, cap))
    capacities = [1.0] * ports + [1.5] * ports
    large, network = simulate(specs, capacities)
    monkeypatch.setattr(fluid, "MANY", 10_000)
    small, _ = simulate(specs, capacities)
    assert large == {i: pytest.approx(time, rel=1e-10) for i, time in small.items()}
    assert network.effort[0] <= 2 * len(specs)
