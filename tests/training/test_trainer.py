"""What a run of data parallelism (trainer) reports (outcome), and what it refuses."""

import pytest

from simperf.errors import InputError, ProgramError, UnknownNameError
from simperf.hardware import build_cluster
from simperf.training.jitter import Constant, Gamma
from tests.training.strategies import CATALOG, MIB, job, layers, metric, run, star


def test_throughput_and_efficiency_are_those_of_the_steps():
    m = run(star(4), layers(forward=1e-3, backward=2e-3), batch=64, steps=4)
    time = metric(m, "time per step")
    assert metric(m, "samples per second") == pytest.approx(64 / time)
    assert metric(m, "scaling efficiency") == pytest.approx(16 * 3e-3 / time, rel=1e-6)
    assert metric(m, "GPUs") == 4
    assert metric(m, "payload per step") == 100 * MIB
    assert metric(m, "device busy, min over ranks") == pytest.approx(16 * 3e-3 / time, rel=1e-6)


def test_weak_scaling_keeps_more_of_it_than_strong_scaling():
    """Computation shrinks with the share of the batch, communication does not."""
    work = layers(backward=0.1e-3)
    strong = [metric(run(star(8), work, n=n, batch=64), "scaling efficiency") for n in (2, 8)]
    weak = [metric(run(star(8), work, n=n, batch=64 * n), "scaling efficiency") for n in (2, 8)]
    assert strong[1] < strong[0]
    assert weak[1] > strong[1]


def test_shares_differ_by_a_sample_if_the_batch_does_not_come_out_even():
    m = run(star(4), layers(), batch=10, steps=1)
    assert m.now > 3 * 5e-3, "two GPUs have three samples"
    assert metric(m, "samples per second") == pytest.approx(10 / m.now)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "steps"),
        ({"accumulate": 0}, "accumulate"),
        ({"accumulate": 3, "batch": 4}, "divisor of the batch of 4"),
        ({"algorithm": "nccl", "options": {"chunks": 3}}, "nccl has no option 'chunks'"),
        ({"batch": 4, "batch_per_gpu": 4}, "batch_per_gpu stands for it"),
        ({"speeds": (1.0,) * 5}, "speeds"),
        ({"speeds": (0.0,)}, "speed"),
        ({"nodes": ("gpu0", "gpu0")}, "takes part once"),
        ({"batch": 1}, "cannot be split over 2"),
        ({"slowdown": 0.9}, "slowdown"),
        ({"bucket": -1.0}, "bucket"),
    ],
)
def test_what_has_no_meaning_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        run(star(2), layers(), **options)


@pytest.mark.parametrize("strategy", ["naive", "data-parallel"])
def test_one_process_does_not_drive_devices_of_two_servers(strategy):
    cluster = build_cluster("p2-xlarge", 2, bandwidth="1 GB/s")
    with pytest.raises(InputError, match="one process, which drives the devices of one server; these are in 2"):
        run(cluster, layers(), strategy=strategy)
    assert run(cluster, layers(), strategy="ddp").now > 0


def test_a_device_that_is_none_is_told_with_what_it_is():
    with pytest.raises(ProgramError, match="no device 'gpu9'; did you mean 'gpu"):
        run(star(2), layers(), nodes=("gpu0", "gpu9"))
    with pytest.raises(ProgramError, match="'hub' is a switch, no device"):
        run(star(2), layers(), nodes=("gpu0", "hub"))


def test_switches_that_cannot_add_up_are_not_taken_for_ones_that_can():
    """In-network reduction is played at the switches of the machine, and refused where they only forward."""
    for machine in (star(4), CATALOG.machine("dgx-a100")):
        with pytest.raises(InputError, match=r"NVSwitch|cannot add up"):
            run(machine, layers(), algorithm="in-network")
    machine = CATALOG.machine("dgx-h100")
    inside, ring = (metric(run(machine, layers(), algorithm=name), "time per step") for name in ("in-network", "ring"))
    assert inside < ring
    moved = run(machine, layers(), algorithm="in-network").simulation.network.moved
    assert not any("cpu" in name and nbytes for name, nbytes in moved.items())


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'ddp'"):
        job(layers(), ("gpu0",), strategy="dpp")
    with pytest.raises(UnknownNameError, match="did you mean 'ring'"):
        run(star(2), layers(), algorithm="rign")


def test_rates_are_in_what_is_counted():
    """A sentence of 50 tokens: the same run, 50 times the figure; `alone` is in tokens as well."""
    work = layers(forward=1e-3)
    plain, tokens = (run(star(2), work, alone=each * 100.0, counted=each, batch=8) for each in (1.0, 50.0))
    assert metric(tokens, "samples per second") == pytest.approx(50 * metric(plain, "samples per second"), rel=1e-9)
    assert metric(tokens, "scaling efficiency") == pytest.approx(metric(plain, "scaling efficiency"), rel=1e-9)
    assert tokens.now == pytest.approx(plain.now, rel=1e-9)
    with pytest.raises(InputError, match="counted"):
        run(star(2), work, counted=0.0)


def test_an_epoch_of_steps_that_differ_is_told():
    even, uneven = (run(star(2), layers(), dataset=100, jitter=law, steps=5) for law in (Constant(), Gamma(cv=0.2)))
    assert not even.notes
    assert any("steps after the first differ by" in note for note in uneven.notes)
    assert metric(even, "time per epoch") == pytest.approx(50 * metric(even, "time per step"), rel=1e-12)
