"""Exchanges as flows: times of the same sends one by one, and bytes that are conserved."""

import pytest

from simperf.collectives.exchange import exchange_channels
from simperf.collectives.nccl import Tuner
from simperf.hardware import Catalog, build_machine

FABRIC = {"type": "rail", "link": "infiniband-hdr", "switch": "infiniband-hdr-switch"}
ONE = {"name": "dgx-a100-80gb"}
TWO = {"kind": "cluster", "server": "dgx-a100-80gb", "count": 2, "fabric": FABRIC}


def placed(machine, nranks, nbytes):
    built = build_machine(machine, Catalog.load())
    ranks = built.gpus[:: len(built.gpus) // nranks][:nranks]
    return Tuner(built, ranks, "all-to-all").best(nbytes)


@pytest.mark.parametrize(("machine", "nranks"), [(ONE, 8), (ONE, 2), (TWO, 16), (TWO, 8), (TWO, 2)])
@pytest.mark.parametrize("nbytes", [1e6, 256e6])
def test_an_even_exchange_takes_as_long_as_its_sends_one_by_one(machine, nranks, nbytes):
    choice = placed(machine, nranks, nbytes)
    channels = exchange_channels(choice.placed, "all-to-all", nbytes)
    from simperf.collectives.executors.channel_flows import play_channels

    assert play_channels(channels, nranks).time == pytest.approx(choice.play().time, rel=0.02)


def moved(channels):
    found = {}
    for one, nbytes in channels.moved():
        for name in one.names:
            found[name] = found.get(name, 0.0) + nbytes
    return found


def of_gpus(found, gpus, *, out):
    """Bytes that leave each GPU, or come to it."""
    return [
        sum(
            nbytes
            for name, nbytes in found.items()
            if (name.startswith(f"{gpu}>") if out else name.endswith(f">{gpu}"))
        )
        for gpu in gpus
    ]


def test_each_rank_sends_all_but_its_own_part():
    choice = placed(ONE, 8, 64e6)
    channels = exchange_channels(choice.placed, "all-to-all", 64e6)
    sent = of_gpus(moved(channels), choice.placement.nodes, out=True)
    assert sent == pytest.approx([64e6 * 7 / 8 / choice.transport.efficiency] * 8)


@pytest.mark.parametrize(("name", "skewed"), [("dispatch", "come"), ("combine", "leave")])
def test_unequal_rows_are_conserved_and_the_fullest_rank_gates(name, skewed):
    rows = (40, 10, 10, 20, 10, 10, 0, 20)
    choice = placed(ONE, 8, 64e6)
    channels = exchange_channels(choice.placed, name, 64e6, rows)
    found, nodes, wire = moved(channels), choice.placement.nodes, 64e6 / choice.transport.efficiency
    uneven, even = (of_gpus(found, nodes, out=out) for out in ((False, True) if skewed == "come" else (True, False)))
    assert uneven == pytest.approx([wire * 7 * one / sum(rows) for one in rows])
    assert even == pytest.approx([wire * (1 - one / sum(rows)) for one in rows])
    from simperf.collectives.executors.channel_flows import play_channels

    equal = exchange_channels(choice.placed, "all-to-all", 64e6)
    longest, usual = play_channels(channels, 8).time, play_channels(equal, 8).time
    start = choice.transport.start
    assert longest - start == pytest.approx((usual - start) * 40 * 8 / sum(rows), rel=0.05)


def test_a_ring_sends_to_the_next_rank_only():
    choice = placed(ONE, 4, 64e6)
    channels = exchange_channels(choice.placed, "send-recv", 16e6)
    wire = 16e6 / choice.transport.efficiency
    for out in (True, False):
        assert of_gpus(moved(channels), choice.placement.nodes, out=out) == pytest.approx([wire] * 4)


def test_a_send_to_the_next_rank_has_its_links_alone():
    """However many ranks there are, whose exchanges with each other would share the adapters."""
    from simperf.collectives.executors.channel_flows import play_channels

    fabric = {"type": "rail", "link": "infiniband-hdr", "switch": "infiniband-hdr-switch"}
    for count in (2, 4):
        built = build_machine({**TWO, "count": count, "fabric": fabric}, Catalog.load())
        choice = Tuner(built, built.gpus[::8], "all-to-all").best(count * 256e6)
        channels = exchange_channels(choice.placed, "send-recv", 256e6)
        rate = min(one.capacity for one in channels.classes)
        assert play_channels(channels, count).time == pytest.approx(256e6 / rate, rel=0.02)
