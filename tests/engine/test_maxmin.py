"""Each test states a system of links and flows, and what fair sharing of it must be."""

import math
import random

import numpy as np
import pytest

from simperf.engine import maxmin
from simperf.engine.maxmin import fill, fill_many, refill
from tests.engine.rates import max_min_rates, route_table


def check_fair(routes, capacities, rates, caps=None, weights=None, rel=1e-9):
    """Max-min fair means: every flow is at its cap, or has a full link on which none has a higher level."""
    caps = caps or [math.inf] * len(routes)
    weights = weights or [1.0] * len(routes)
    drawn = [0.0] * len(capacities)
    highest = [0.0] * len(capacities)
    for route, rate, weight in zip(routes, rates, weights, strict=True):
        for link in route:
            drawn[link] += rate
            highest[link] = max(highest[link], rate / weight)
    for link, capacity in enumerate(capacities):
        assert drawn[link] <= capacity * (1 + rel), f"link {link} is over-full"
    for flow, route in enumerate(routes):
        at_cap = rates[flow] >= caps[flow] * (1 - rel)
        assert rates[flow] <= caps[flow] * (1 + rel)
        held = any(
            drawn[link] >= capacities[link] * (1 - rel) and rates[flow] / weights[flow] >= highest[link] * (1 - rel)
            for link in route
        )
        assert at_cap or held, f"flow {flow} has no bottleneck"


def random_system(seed, *, links, flows, longest=4, capped=0.3, weighted=True):
    draw = random.Random(seed)
    routes = [tuple(draw.sample(range(links), draw.randint(1, min(longest, links)))) for _ in range(flows)]
    capacities = [draw.choice([0.0, 1.0, 2.0, 5.0, draw.uniform(0.1, 10)]) for _ in range(links)]
    caps = [draw.uniform(0.01, 3) if draw.random() < capped else math.inf for _ in range(flows)]
    weights = [draw.choice([1.0, 1.0, 2.0, draw.uniform(0.1, 4)]) if weighted else 1.0 for _ in range(flows)]
    return routes, capacities, caps, weights


def test_a_flow_alone_gets_its_narrowest_link():
    assert max_min_rates([(0, 1, 2)], [8.0, 3.0, 5.0]) == [3.0]


def test_a_chain_shares_with_each_local_flow():
    # One long flow over n links, each with a local flow: all get half.
    assert max_min_rates([(0, 1, 2), (0,), (1,), (2,)], [2.0, 2.0, 2.0]) == [1.0, 1.0, 1.0, 1.0]


def test_what_one_flow_cannot_use_the_others_get():
    # Bertsekas and Gallager's figure in outline: the flow held at 1/3 elsewhere leaves 2/3.
    rates = max_min_rates([(0,), (0, 1), (1,), (1,)], [1.0, 1.0])
    assert rates == pytest.approx([2 / 3, 1 / 3, 1 / 3, 1 / 3], rel=1e-14)


def test_cap_and_weight():
    assert max_min_rates([(0,), (0,)], [9.0], caps=[2.0, math.inf]) == [2.0, 7.0]
    assert max_min_rates([(0,), (0,)], [9.0], weights=[1.0, 2.0]) == [3.0, 6.0]
    assert max_min_rates([(0,), (0,)], [9.0], caps=[math.inf, 4.0], weights=[1.0, 2.0]) == [5.0, 4.0]


def test_no_flows_no_links_and_links_that_are_down():
    assert max_min_rates([], [1.0]) == []
    assert max_min_rates([()], [], caps=[4.0]) == [4.0]
    assert max_min_rates([()], []) == [math.inf]
    assert max_min_rates([(0, 1), (1,)], [0.0, 6.0]) == [0.0, 6.0]


def test_a_link_crossed_twice_is_drawn_on_twice():
    assert max_min_rates([(0, 0), (0,)], [9.0]) == [3.0, 3.0]


@pytest.mark.parametrize("seed", range(60))
def test_few_and_many_agree_and_are_fair(seed):
    routes, capacities, caps, weights = random_system(seed, links=1 + seed % 12, flows=1 + seed)
    limits = [cap / weight for cap, weight in zip(caps, weights, strict=True)]
    few = fill(routes, capacities, weights, limits)
    room = np.array([math.inf, *capacities])
    many = fill_many(route_table(routes), room, np.array(weights), np.array(limits))
    assert many.tolist() == pytest.approx(few, rel=1e-11, abs=1e-13)
    check_fair(routes, capacities, [a * b for a, b in zip(few, weights, strict=True)], caps, weights)


@pytest.mark.parametrize("patience", [8, 0])
@pytest.mark.parametrize("seed", range(30))
def test_refill_finds_what_filling_from_nothing_finds(seed, patience):
    # Flows come, go and change weight one at a time; each answer starts from the last.
    routes, capacities, caps, weights = random_system(seed, links=10, flows=60, capped=0.2)
    draw = random.Random(seed)
    limits = np.array([cap / weight for cap, weight in zip(caps, weights, strict=True)])
    room, loads, table = np.array([math.inf, *capacities]), np.array(weights), route_table(routes)
    levels, marks = np.full(60, math.inf), np.full(11, math.inf)
    since = 0.0
    for _ in range(20):
        levels, marks, drawn = refill(
            table, room, loads, limits, levels=levels, marks=marks, since=since, patience=patience
        )
        assert levels == pytest.approx(fill_many(table, room, loads, limits), rel=1e-10, abs=1e-12)
        expected = np.zeros(11)
        for row in table:
            np.add.at(expected, row, levels * loads)
        assert drawn[1:] == pytest.approx(expected[1:], rel=1e-10, abs=1e-12)
        changed = draw.randrange(60)
        loads[changed] *= draw.choice([0.5, 2.0])
        total = np.zeros(11)
        for row in table:
            np.add.at(total, row, loads)
        here = table[:, changed]
        here = here[here > 0]
        since = min(levels[changed], float((room[here] / total[here]).min()))


def test_newton_settles_without_help_on_a_star(monkeypatch):
    # One flow more or less on a 16-port star: the shortcut must carry the load, not its fallback.
    draw = random.Random(7)
    routes = [(port, 16 + (port + hop) % 16) for port in range(16) for hop in range(1, 9)]
    room, loads, limits = np.array([math.inf] + [1.0] * 32), np.ones(128), np.full(128, math.inf)
    table = route_table(routes)
    levels, marks, _ = refill(
        table, room, loads, limits, levels=np.full(128, math.inf), marks=np.full(33, math.inf), since=0.0
    )
    calls = []
    monkeypatch.setattr(maxmin, "fill_many", lambda *args: calls.append(1) or fill_many(*args))
    for _ in range(100):
        loads[draw.randrange(128)] += 1.0
        levels, marks, _ = refill(table, room, loads, limits, levels=levels, marks=marks, since=0.0)
    assert len(calls) <= 10


def test_symmetric_flows_get_the_same_float():
    routes = [(i, 8 + (i + hop) % 8) for i in range(8) for hop in range(1, 8)] * 3
    rates = max_min_rates(routes, [1.0] * 16)
    assert len(set(rates)) == 1
    assert rates[0] == pytest.approx(1 / 21, rel=1e-15)


def test_links_of_very_different_size():
    routes = [(0, 1), (1, 2), (2,), (0,)]
    capacities = [1e-3, 1e12, 1.0]
    check_fair(routes, capacities, max_min_rates(routes, capacities))
