"""Asynchronous workers: throughput, saturation, the distribution of staleness, determinism."""

import pytest

from simperf.errors import InputError
from simperf.training.servers.worker import Pace, needed_by
from simperf.training.step import even_step

ASYNC = {"mode": "asynchronous", "layers": 1}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_throughput_is_the_sum_of_the_workers(star, with_servers, workers):
    """A negligible gradient: each worker runs at its own pace, a straggler at half of it."""
    plan = {"steps": 200, "backward": 10e-3, "weights": 1.0, "batch": 8, **ASYNC}
    rate = with_servers(star(workers), **plan).metrics["samples per second"][0]
    assert rate == pytest.approx(workers * 8 / (10e-3 + 1e-6), rel=1e-6)
    slow = with_servers(star(workers), stragglers=1, slowdown=2.0, **plan).metrics["samples per second"][0]
    assert slow == pytest.approx((workers - 0.5) * 8 / 10e-3, rel=0.03)


@pytest.mark.parametrize(("workers", "saturated"), [(2, False), (16, True)])
def test_the_servers_port_saturates(star, with_servers, workers, saturated):
    """A server takes B / S gradients a second; fewer workers than that leave it idle at times."""
    size, compute = 100e6, 10e-3  # 2 ms a transfer
    plan = {"steps": 200, "backward": compute, "weights": size, "accepts": 1, **ASYNC}
    rate = with_servers(star(workers), **plan).metrics["samples per second"][0]
    capacity = 50e9 / size
    assert rate <= min(capacity, workers / (compute + 2 * size / 50e9)) * (1 + 1e-9)
    if saturated:
        assert rate == pytest.approx(capacity, rel=0.02)
    else:
        assert rate == pytest.approx(workers / (compute + 2 * size / 50e9), rel=0.01)


def test_equal_workers_that_share_the_port_stay_in_step(star, with_servers):
    """All push, all pull, all compute: the port idles. Jitter or one transfer at a time dissolves it."""
    size, compute = 100e6, 10e-3
    plan = {"steps": 100, "backward": compute, "weights": size, "uneven": 0.0, **ASYNC}
    together = with_servers(star(16), **plan).metrics["samples per second"][0]
    assert together == pytest.approx(16 / (compute + 2 * 16 * size / 50e9), rel=1e-3)
    jitter = with_servers(star(16), jitter=0.2, **plan).metrics["samples per second"][0]
    in_turn = with_servers(star(16), accepts=1, **plan).metrics["samples per second"][0]
    assert 0.85 * 500 < jitter < in_turn < 500


def test_uneven_shares_bring_equal_workers_out_of_step(star, with_servers):
    """By default the port is nearly full, as long as the workers together ask for more than it carries."""
    size, compute = 100e6, 10e-3
    plan = {"steps": 100, "backward": compute, "weights": size, **ASYNC}
    session = with_servers(star(16), **plan)
    assert 0.8 * 500 < session.metrics["samples per second"][0] < 500
    assert any("uneven shares" in note for note in session.notes)
    one = with_servers(star(1), **plan)
    assert one.metrics["samples per second"][0] == pytest.approx(1 / (compute + 2 * size / 50e9), rel=1e-3)
    assert not any("uneven" in note for note in one.notes), "a worker by itself shares nothing"
    once, again, other = (with_servers(star(4), seed=seed, **{**plan, "steps": 10}).now for seed in (3, 3, 4))
    assert once == again != other


def test_the_servers_memory_saturates(star, with_servers):
    """Updates are applied one after the other: their time is the server's capacity."""
    plan = {"steps": 50, "backward": 1e-3, "weights": 1e6, "apply": 3.0, "server_memory": 1e9, **ASYNC}
    session = with_servers(star(8), **plan)
    assert session.metrics["samples per second"][0] == pytest.approx(1e9 / 3e6, rel=0.01)
    assert session.metrics["server memory busy"][0] == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("workers", [2, 4, 16])
def test_equal_workers_are_one_round_apart(star, with_servers, workers):
    """Between a worker's pull and its push each of the others makes one update."""
    session = with_servers(star(workers), steps=20, backward=5e-3, weights=1e6, uneven=0.0, **ASYNC)
    assert session.metrics["staleness mean"][0] == pytest.approx(workers - 1, rel=1e-9)
    assert session.metrics["staleness highest"][0] == workers - 1


def test_jitter_spreads_the_staleness_and_keeps_its_mean(star, with_servers):
    metrics = with_servers(star(16), steps=150, backward=5e-3, weights=1e4, jitter=0.5, **ASYNC).metrics
    assert metrics["staleness mean"][0] == pytest.approx(15, rel=0.02)
    assert metrics["staleness 95 %"][0] > 20


def test_asynchrony_pays_with_jitter_and_a_straggler(star, with_servers):
    plan = {"steps": 40, "backward": 10e-3, "weights": 1e5, "jitter": 0.3, "stragglers": 1, "slowdown": 3.0}
    together = with_servers(star(8), mode="synchronous", **plan).metrics["samples per second"][0]
    apart = with_servers(star(8), mode="asynchronous", **plan).metrics["samples per second"][0]
    assert apart > 2 * together


def test_the_seed_decides(star, with_servers):
    plan = {"steps": 10, "backward": 10e-3, "weights": 1e6, "jitter": 0.3, **ASYNC}
    once, again, other = (with_servers(star(4), seed=seed, **plan).now for seed in (3, 3, 4))
    assert once == again != other


def test_forward_kernels_need_the_weights_of_their_layer():
    assert needed_by(even_step(4, forward=1.0, backward=2.0, nbytes=4.0)) == {0: [0], 1: [1], 2: [2], 3: [3]}
    assert needed_by(even_step(4, forward=0.0, backward=2.0, nbytes=4.0)) == {}


def test_data_are_read_from_the_machines_disk(catalog, with_servers):
    """A disk slower than the step sets the pace: one batch of 1,000 samples of 125 kB each for four GPUs."""
    machine = catalog.machine("p3-8xlarge")
    fast = with_servers(machine, steps=4, backward=10e-3, weights=1e6, batch=1000)
    slow = with_servers(machine, steps=4, backward=10e-3, weights=1e6, batch=1000, disk="ebs0", stored=125e3)
    bandwidth = machine.nodes["ebs0"].part.read_bandwidth
    assert slow.now > 4 * 4 * 125e6 / bandwidth > 2 * fast.now


def test_the_batch_travels_to_the_gpu_first(star, with_servers):
    plain = with_servers(star(2), steps=1, weights=1e6).now
    copied = with_servers(star(2, latency="0 s"), steps=1, weights=1e6, sample=50e6).now
    assert copied == pytest.approx(plain - 1e-6 + 2 * 50e6 / 50e9, rel=1e-6), "both copies leave by the host's port"


@pytest.mark.parametrize("options", [{"stragglers": -1}, {"factor": 0.0}, {"factor": float("inf")}])
def test_paces_without_meaning(options):
    with pytest.raises(InputError, match="stragglers"):
        Pace(**options)
