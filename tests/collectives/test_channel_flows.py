"""Channels as flows: latency, bytes over rate, what is read out of host memory, and what ends the collective."""

from dataclasses import replace

import pytest

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.collectives.executors.channel_flows import play_channels
from simperf.engine.link_table import LinkClass

#: two channels over a link of 10 GB/s: alone, one takes 1 ms + 0.5 s, the other 1 s
FLOWS = (ChannelFlow(1e-3, 1e9, 2e9), ChannelFlow(0.0, 4e9, 4e9))
WIRE = LinkClass(("wire", "twin"), (1, 1), 10e9)
MEMORY = LinkClass(("memory",), (1, 1), 10e9)
CAPACITIES = {"wire": 10e9, "twin": 10e9, "memory": 10e9}


def test_the_last_channel_ends_the_collective_and_copies_follow_it():
    channels = ChannelSet(FLOWS, (WIRE,), (), last=0.25)
    run = play_channels(channels, 4, start=2.0)
    assert run.time == pytest.approx(2.0 + 1.0 + 0.25, rel=1e-12)
    assert run.finish == (run.time,) * 4
    assert run.moved == {"wire": 5e9, "twin": 5e9}


@pytest.mark.parametrize(("least", "time"), [(0.5, 1.0), (3.0, 3.0)])
def test_a_collective_takes_its_least_time(least, time):
    assert play_channels(ChannelSet(FLOWS, (WIRE,), (), least=least), 4).time == pytest.approx(time, rel=1e-12)


def test_a_channel_is_read_out_of_host_memory_after_its_last_send():
    """The first channel is read out until 0.501 s + 2 GB / 2 GB/s, after the second one has ended."""
    flows = (replace(FLOWS[0], drain=2e9, drain_cap=2e9), FLOWS[1])
    run = play_channels(ChannelSet(flows, (WIRE,), (MEMORY,)), 4, capacities=CAPACITIES)
    assert run.time == pytest.approx(1.501, rel=1e-12)
    assert run.moved == {"wire": 5e9, "twin": 5e9, "memory": 2e9}


def test_traffic_on_one_of_two_links_takes_its_fair_share():
    """A channel of 8 GB/s beside 9 GB/s of others has half of the 10 GB/s of the link that they share."""
    one = ChannelSet((ChannelFlow(0.0, 4e9, 8e9),), (LinkClass(("wire", "twin"), (1,), 10e9),), ())
    assert play_channels(one, 4).time == pytest.approx(0.5, rel=1e-12)
    beside = play_channels(one, 4, capacities=CAPACITIES, traffic=[(("twin",), 9e9)])
    assert beside.time == pytest.approx(0.8, rel=1e-12)
