"""Strategies among devices whose pace varies and links that are slow for a time (trainer, jitter, stragglers)."""

from itertools import islice

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError, UnknownNameError
from simperf.execution.session import Session
from simperf.hardware import build_machine
from simperf.training.driver import train
from simperf.training.jitter import Constant, Exponential, Gamma, stream
from simperf.training.stragglers import slowed
from tests.training.strategies import CATALOG, MIB, down, job, layers, metric, run
from tests.training.strategies import star as flat

FAST = {"bandwidth": "1e9 GB/s", "latency": "0 s"}
ALL_REDUCE = 2 * (100 * MIB / 2 / 50e9 + 500e-9)


@pytest.mark.parametrize("strategy", ["ddp", "local-sgd"])
@pytest.mark.parametrize("n", [2, 6])
def test_a_step_takes_as_long_as_the_slowest_device(n, strategy):
    """With free communication step k takes the longest of n draws; their mean is that of order statistics."""
    law, steps = Exponential(), 200
    m = run(flat(n, **FAST), layers(), n=n, strategy=strategy, steps=steps, jitter=law)
    draws = [stream(law, Simulation(seed=0).random(f"pace of rank {rank}")) for rank in range(n)]
    longest = [5e-3 * max(factors) for factors in islice(zip(*draws, strict=True), steps)]
    assert m.now == pytest.approx(sum(longest), rel=1e-6)
    harmonic = sum(1 / k for k in range(1, n + 1))
    assert metric(m, "time per step") == pytest.approx(5e-3 * harmonic, rel=4 * 1.3 / steps**0.5 / harmonic)


def test_averages_more_seldom_even_jitter_out():
    """Local SGD waits for the slowest sum of k steps, which is nearer to the mean than k times the slowest."""
    law = Gamma(cv=0.3)
    times = [
        metric(
            run(flat(8, **FAST), layers(), n=8, strategy="local-sgd", every=k, steps=64, jitter=law), "time per step"
        )
        for k in (1, 4, 16)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.3 * 5e-3
    assert 5e-3 < times[-1] < 1.2 * 5e-3


@pytest.mark.parametrize("strategy", ["naive", "data-parallel"])
def test_one_process_waits_for_the_slowest_too(strategy):
    law = Gamma(cv=0.3)
    steady, uneven = (
        metric(run(flat(4), layers(), strategy=strategy, steps=20, jitter=one), "time per step")
        for one in (Constant(), law)
    )
    assert steady + 0.1 * 5e-3 < uneven < 2 * steady


def test_the_seed_decides_and_no_jitter_is_the_mean():
    plain, constant = (run(flat(2), layers(), **options).now for options in ({}, {"jitter": Constant()}))
    assert plain == constant
    times = []
    for seed in (1, 1, 2):
        m = Session(Simulation(flat(2), seed=seed))
        m.play(train(m, job(layers(), m.machine.gpus, batch=2, jitter=Gamma(cv=0.2))))
        times.append(m.now)
    assert times[0] == times[1] != times[2]


@pytest.mark.parametrize("strategy", ["ddp", "local-sgd", "data-parallel", "naive"])
def test_a_link_at_half_of_its_capacity_is_a_link_of_half_the_capacity(strategy):
    ids = [{"id": f"gpu{i}", "gpu": "v100-sxm2-16gb"} for i in range(4)]
    nodes = [*ids, {"id": "hub", "kind": "switch"}, {"id": "cpu0", "cpu": "xeon-8168"}]
    ends = {"gpu0": 25, "gpu1": 50, "gpu2": 50, "gpu3": 50, "cpu0": 16}
    links = [{"a": end, "b": "hub", "bandwidth": f"{rate} GB/s", "latency": "250 ns"} for end, rate in ends.items()]
    half = build_machine({"node": nodes, "link": links}, CATALOG)
    links = down("gpu0>hub", 0.5) + down("hub>gpu0", 0.5)
    slowed = run(flat(4), layers(), strategy=strategy, links=links)
    pieces = 5e-3 if strategy == "data-parallel" else 1e-9  # its chains are cut for the machine as it is built
    assert slowed.now == pytest.approx(run(half, layers(), strategy=strategy, exact=True).now, rel=pieces)
    assert slowed.now > run(flat(4), layers(), strategy=strategy).now


def test_a_link_that_is_down_while_gradients_travel_costs_that_time():
    """All gradients in one bucket, which is under way from 5 to 7.1 ms; nothing is lost while none travels."""
    base = run(flat(2), layers(), n=2, steps=1, bucket=1e9, first_bucket=1e9)
    assert base.now == pytest.approx(5e-3 + ALL_REDUCE, rel=1e-9)
    during = down("gpu0>hub", 0.0, 5.5e-3, 25.5e-3)
    flapped = run(flat(2), layers(), n=2, steps=1, bucket=1e9, first_bucket=1e9, links=during)
    assert flapped.now == pytest.approx(base.now + 20e-3, rel=1e-9)
    before = down("gpu0>hub", 0.0, 1e-3, 4e-3)
    unseen = run(flat(2), layers(), n=2, steps=1, bucket=1e9, first_bucket=1e9, links=before)
    assert unseen.now == pytest.approx(base.now, rel=1e-9)


def test_what_cannot_be():
    with pytest.raises(UnknownNameError, match="gpu0>hbu"):
        run(flat(2), layers(), links=down("gpu0>hbu", 0.5))
    for options in ({"jitter": Gamma(cv=0.2)}, {"links": down("gpu0>hub", 0.5)}):
        with pytest.raises(InputError, match="every rank has times of its own"):
            run(flat(2), layers(), exact=False, **options)


@pytest.mark.parametrize(("mode", "rate"), [("synchronous", "slowest"), ("asynchronous", "sum")])
def test_a_slow_worker_of_a_parameter_server(star, with_servers, mode, rate):
    """One of four workers sends at a tenth: all wait for it, or it alone is slower; its port is never the server's."""
    push = {"slow_link": "gpu3>hub", "slow_share": 0.1}
    plan = {"backward": 20e-3, "weights": 10e6, "steps": 40, "mode": mode, "servers": 4, "placement": "sliced"}
    m = with_servers(star(4, 4), **plan, **push)
    good = 20e-3 + 2 * 10e6 / 50e9 + 1e-6
    slow = 20e-3 + 10e6 / 50e9 + 10e6 / 5e9 + 1e-6
    expected = 4 / slow if rate == "slowest" else 3 / good + 1 / slow
    assert metric(m, "samples per second") == pytest.approx(expected, rel=0.02)


def test_a_server_that_cannot_be_reached_for_a_while(star, with_servers):
    """The port of the only server is down while all push: the step takes that much longer."""
    plan = {"backward": 20e-3, "weights": 10e6, "steps": 1}
    gone = {"slow_link": "hub>cpu0", "slow_from": 20.1e-3, "slow_until": 50.1e-3}
    base, flapped = (with_servers(star(2), **plan, **more).now for more in ({}, gone))
    assert flapped == pytest.approx(base + 30e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("hub>cpu0", 0.0, 1.0, 0.0), "slow_until: a link that is down for ever"),
        (("hub>cpu0", 0.5, 2.0, 1.0), "slow_until: an end after 2 s, when it begins, is expected"),
        (("hub>cpu0", 1.5, 0.0, 0.0), "slow_share: a share from 0"),
    ],
)
def test_links_that_cannot_be(given, words):
    with pytest.raises(InputError, match=words):
        slowed(*given)
    assert slowed("", *given[1:]) == ()
