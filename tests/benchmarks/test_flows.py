"""Flows a second over the network, beside raw SimPy timeouts in the same run.

    pytest tests/benchmarks/test_flows.py --benchmark-enable --benchmark-columns=min,median,ops

Goal: 3,000 unsynchronised random flows on a 64-port star in 3 s or less, few or all of
them alive at one time. The machine is named in pytest-benchmark's own report (--benchmark-json).
"""

import random

import pytest
import simpy

from simperf.engine.maxmin import fill
from simperf.engine.network import FlowNetwork
from tests.benchmarks.raw_timeouts import raw_timeouts

PORTS, FLOWS, SEQUENTIAL, RANKS, ROUNDS = 64, 3_000, 20_000, 256, 40


def star(window):
    """Random flows of 1 to 100 MB between ports of 1 GB/s, started at random in `window` [s]."""
    env = simpy.Environment()
    network = FlowNetwork(env, {f"{way}{port}": 1e9 for way in ("up", "down") for port in range(PORTS)})
    draw = random.Random(0)

    def flow(start, source, sink, nbytes):
        yield env.timeout(start)
        yield network.transfer((f"up{source}", f"down{sink}"), nbytes, latency=1e-6)

    for _ in range(FLOWS):
        source = draw.randrange(PORTS)
        sink = (source + draw.randrange(1, PORTS)) % PORTS
        env.process(flow(draw.random() * window, source, sink, draw.uniform(1e6, 1e8)))
    env.run()
    return env.now


def one_at_a_time():
    env = simpy.Environment()
    network = FlowNetwork(env, {"up": 1e9, "down": 1e9})

    def sender():
        for _ in range(SEQUENTIAL):
            yield network.transfer(("up", "down"), 1e6, latency=1e-6)

    env.process(sender())
    env.run()
    return env.now


def ring():
    """Every rank sends to its neighbour, all at the same time, round after round."""
    env = simpy.Environment()
    network = FlowNetwork(env, {f"{way}{rank}": 1e9 for way in ("out", "in") for rank in range(RANKS)})

    def rank(i):
        route = (f"out{i}", f"in{(i + 1) % RANKS}")
        for _ in range(ROUNDS):
            yield network.transfer(route, 1e6, latency=1e-6)

    for i in range(RANKS):
        env.process(rank(i))
    env.run()
    assert network.effort[0] == RANKS * ROUNDS
    return env.now


def test_raw_simpy_timeouts(benchmark):
    """The baseline: 20,000 timeouts of one process."""
    assert benchmark(raw_timeouts, SEQUENTIAL) == SEQUENTIAL


@pytest.mark.parametrize("window", [5.0, 0.1], ids=["moderate", "all-alive"])
def test_random_flows_on_a_star(benchmark, window):
    """3,000 flows; in the second case all have started before the first ends."""
    assert benchmark.pedantic(star, (window,), rounds=1) > 1.0


def test_one_flow_at_a_time(benchmark):
    """20,000 transfers, each started when the last has ended."""
    assert benchmark(one_at_a_time) == pytest.approx(SEQUENTIAL * 1.001e-3)


def test_ring_neighbours(benchmark):
    """256 ranks, 40 rounds: 10,240 sends."""
    assert benchmark(ring) == pytest.approx(ROUNDS * 1.001e-3)


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_fill_for_a_handful(benchmark, flows):
    """The solver alone, for flows over two links each."""
    routes = [(i, i + 1) for i in range(flows)]
    levels = benchmark(fill, routes, [1.0] * (flows + 1), [1.0] * flows, [float("inf")] * flows)
    assert min(levels) >= 0.5
