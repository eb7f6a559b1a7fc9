"""A token bucket against closed forms."""

import math

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.bucket import PACKET, TokenBucket
from simperf.engine.network import FlowNetwork
from simperf.errors import ProgramError

KIB = 1024.0


def shaped(rate=1e6, burst=32 * KIB, peak=1e9, **links):
    env = simpy.Environment()
    network = FlowNetwork(env, {"port": 0.0, **links})
    return env, network, TokenBucket(network, "port", rate=rate, burst=burst, peak=peak)


@given(
    rate=st.floats(1e4, 1e8),
    burst=st.floats(2 * PACKET, 1e6),
    nbytes=st.floats(1.0, 1e8),
    factor=st.floats(1.5, 1e3),
)
@settings(max_examples=60)
def test_one_flow_takes_what_is_in_the_bucket_and_then_the_rate(rate, burst, nbytes, factor):
    peak = rate * factor
    env, network, _ = shaped(rate, burst, peak)
    time = env.run(network.transfer(["port"], nbytes))
    quick = burst * peak / (peak - rate)  # tokens come in while the burst passes
    expected = nbytes / peak if nbytes <= quick else quick / peak + (nbytes - quick) / rate
    assert time == pytest.approx(expected, rel=1e-9)


def test_never_more_than_burst_and_rate_in_any_window():
    env, network, bucket = shaped()
    ends = []

    def bursts():
        for pause in (0.0, 0.005, 0.02, 0.1):
            yield env.timeout(pause)
            flow = network.transfer(["port"], 40 * KIB)
            yield flow
            ends.append((env.now, network.moved["port"]))

    env.process(bursts())
    env.run()
    for time, moved in ends:
        assert moved <= bucket.burst + bucket.rate * time + 1e-6


def test_tokens_come_back_while_the_link_rests():
    env, network, bucket = shaped()

    def twice():
        yield network.transfer(["port"], 64 * KIB)
        assert bucket.tokens < PACKET
        yield env.timeout(16 * KIB / 1e6)
        assert bucket.tokens == pytest.approx(16 * KIB, rel=1e-6)
        start = env.now
        yield network.transfer(["port"], 16 * KIB)
        assert env.now - start < 1e-3  # all of it in a burst
        yield env.timeout(10.0)
        assert bucket.tokens == bucket.burst

    env.run(env.process(twice()))


def test_a_slower_neighbour_fills_the_bucket_while_it_is_drawn_on():
    env, network, bucket = shaped(slow=0.5e6)

    def first():
        yield network.transfer(["port"], 100 * KIB)
        yield network.transfer(["port", "slow"], 0.5e6)  # a second at half the rate: half a megabyte of tokens
        assert bucket.tokens == bucket.burst
        start = env.now
        yield network.transfer(["port"], 32 * KIB)
        assert env.now - start < 1e-3

    env.run(env.process(first()))


def test_flows_share_the_burst():
    env, network, _ = shaped(rate=1e6, burst=30e3, peak=1e9)
    flows = [network.transfer(["port"], 20e3) for _ in range(3)]
    assert [env.run(flow) for flow in flows] == pytest.approx([0.030030, 0.030030, 0.030030], rel=1e-3)


def test_a_bucket_smaller_than_a_packet_is_a_plain_link():
    env, network, _ = shaped(burst=0.0)
    assert env.run(network.transfer(["port"], 5e5)) == pytest.approx(0.5)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"burst": -1.0}, {"peak": 1.0}, {"rate": math.inf}])
def test_makes_sense(wrong):
    with pytest.raises(ProgramError, match="token bucket"):
        shaped(**wrong)


def test_many_flows_are_told_of_too():
    """In a component of hundreds of routes the rates live in arrays; the bucket hears of them all the same."""
    count = 700
    env = simpy.Environment()
    network = FlowNetwork(env, {"port": 0.0, **{f"l{index}": 1e9 for index in range(count)}})
    TokenBucket(network, "port", rate=1e6, burst=70e3, peak=1e9)
    flows = [network.transfer([f"l{index}", "port"], 200.0) for index in range(count)]
    assert env.run(env.all_of(flows)) is not None
    assert env.now == pytest.approx((count * 200.0 - 70e3) / 1e6, rel=1e-3)
