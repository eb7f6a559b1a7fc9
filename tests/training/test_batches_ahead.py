"""Mini-batches that are copied ahead of their step, and those that lie on the device."""

import pytest

from simperf.errors import InputError
from tests.training.strategies import layers, metric, run, star

#: computes 30 ms a sample, of which each has 160 MB: 10 ms over the link to the host
WORK = {"forward": 0.0, "backward": 30e-3, "nbytes": 1.0, "nbytes_input": 160e6}


def step(work, n=1, **options):
    given = {"batch": n, "steps": 8, "strategy": "ddp", **options}
    return metric(run(star(n, latency="0 s"), work, **given), "time per step")


@pytest.mark.parametrize(("backward", "expected"), [(30e-3, 30e-3), (5e-3, 10e-3)])
def test_a_copy_ahead_costs_what_the_kernels_do_not_hide(backward, expected):
    """Beside the step before, so that a step is the longer of both; in its place it is their sum."""
    work = layers(**{**WORK, "backward": backward})
    assert step(work, batches="ahead") == pytest.approx(expected, rel=2e-3)
    assert step(work) == pytest.approx(backward + 10e-3, rel=2e-3)
    assert step(work, batches="device") == pytest.approx(backward, rel=1e-6)


@pytest.mark.parametrize("exact", [True, None])
def test_copies_ahead_of_several_devices_share_their_link(exact):
    """Two copies of 10 ms beside each other over one link take 20 ms, four 40 ms: more than 30 ms of kernels."""
    work = layers(**WORK)
    assert step(work, 2, batches="ahead", exact=exact) == pytest.approx(30e-3, rel=2e-3)
    assert step(work, 4, batches="ahead", exact=exact) == pytest.approx(40e-3, rel=2e-3)


def test_the_rate_of_one_device_is_met_with_copies_ahead():
    work = layers(**WORK)
    assert metric(run(star(1), work, batch=1, alone=25.0, batches="ahead"), "samples per second") == pytest.approx(25.0)


@pytest.mark.parametrize("batches", ["ahead", "device"])
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"strategy": "data-parallel"}, "one process scatters each mini-batch"),
        ({"decode": 1e-3, "workers": 1}, "mini-batches that are decoded or read come from the host"),
    ],
)
def test_batches_that_cannot_be_there_are_refused(batches, options, match):
    with pytest.raises(InputError, match=match):
        run(star(2), layers(nbytes_input=1e6), batch=2, batches=batches, **options)


@pytest.mark.parametrize("batches", ["ahead", "device"])
def test_batches_without_bytes_are_refused(batches):
    with pytest.raises(InputError, match="the model has no mini-batches that are copied"):
        run(star(2), layers(), batch=2, batches=batches)
