"""Classes of links that are drawn on alike (simperf.engine.link_table)."""

from types import MappingProxyType

import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.link_table import LinkClass
from simperf.engine.network import FlowNetwork


def play(capacities, routes, singles, *, classed):
    """Ends of flows over `routes` (mappings of name to count) and over single links, and what all links moved."""
    env = simpy.Environment()
    network = FlowNetwork(env, MappingProxyType(capacities))
    ends = {}
    spread = []
    if classed:
        kinds = {}
        for name in sorted(capacities):
            counts = tuple(route.get(name, 0) for route, *_ in routes)
            if any(counts):
                kinds.setdefault((capacities[name], counts), []).append(name)
        spread = network.routes(
            [LinkClass(tuple(names), counts, capacity) for (capacity, counts), names in kinds.items()]
        )

    def flow(key, start, resources, nbytes, cap):
        yield env.timeout(start)
        yield network.transfer(resources, nbytes, cap=cap)
        ends[key] = env.now

    for index, (route, start, nbytes, cap) in enumerate(routes):
        resources = spread[index] if classed else [name for name, count in route.items() for _ in range(count)]
        env.process(flow(("route", index), start, resources, nbytes, cap))
    for index, (names, start, nbytes) in enumerate(singles):
        env.process(flow(("single", index), start, list(names), nbytes, float("inf")))
    env.run()
    return ends, network.moved


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_classes_of_links_are_no_approximation(data):
    count = data.draw(st.integers(2, 12))
    names = [f"l{index}" for index in range(count)]
    capacities = {name: data.draw(st.sampled_from([1.0, 3.0])) for name in names}
    pick = st.dictionaries(st.sampled_from(names), st.integers(1, 2), min_size=1)
    whole = st.just(dict.fromkeys(names, 1))
    times, sizes = st.sampled_from([0.0, 0.5, 2.0, 7.0]), st.sampled_from([1.0, 4.0, 10.0])
    routes = data.draw(
        st.lists(st.tuples(pick | whole, times, sizes, st.sampled_from([0.4, float("inf")])), min_size=1, max_size=4)
    )
    some = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
    singles = data.draw(st.lists(st.tuples(some, times, sizes), max_size=5))
    one, moved = play(capacities, routes, singles, classed=True)
    two, expected = play(capacities, routes, singles, classed=False)
    assert one == pytest.approx(two, rel=1e-9)
    assert {k: v for k, v in moved.items() if v} == pytest.approx({k: v for k, v in expected.items() if v}, rel=1e-9)


def test_thousands_of_links_cost_as_much_as_one():
    names = [f"l{index}" for index in range(5000)]
    env = simpy.Environment()
    network = FlowNetwork(env, MappingProxyType(dict.fromkeys(names, 2.0)))
    (route,) = network.routes([LinkClass(tuple(names), (1,), 2.0)])
    for _ in range(3):
        network.transfer(route, 4.0)
    env.run()
    assert env.now == pytest.approx(6.0)
    assert len(route.links) == 1
    assert np.allclose(list(network.moved.values()), 12.0)
    assert len(network.moved) == len(names)
