"""One number may be fitted: the speed of one device (simperf.training.fitting)."""

import pytest

from simperf.errors import InputError
from simperf.training.data.run import ReplicatedRun
from tests.training.strategies import layers, metric, run, star


@pytest.mark.parametrize("rate", [50.0, 100.0, 400.0])
def test_one_device_reaches_the_measured_rate(rate):
    work = layers(forward=1e-3, backward=2e-3, nbytes_input=1e6, launch=5e-6)
    m = run(star(4), work, n=1, batch=8, alone=rate, dataset=80)
    assert metric(m, "samples per second") == pytest.approx(rate, rel=1e-6)
    assert metric(m, "time per epoch") == pytest.approx(80 / rate, rel=1e-6)
    assert "times the catalogue's speed" in m.notes[0]


def test_what_the_others_add_is_not_fitted():
    work = layers(forward=1e-3, backward=2e-3)
    m = run(star(4), work, batch=32, alone=1000.0)
    assert metric(m, "samples per second") < 4000.0
    assert metric(m, "scaling efficiency") == pytest.approx(metric(m, "samples per second") / 4000.0, rel=1e-6)


def test_a_rate_that_the_rest_of_the_step_forbids_is_refused():
    with pytest.raises(InputError, match="the rest of the step alone takes too long"):
        run(star(1), layers(nbytes_input=160e6), batch=8, alone=1e6)


def test_the_rate_is_met_with_accumulated_gradients():
    m = run(star(1), layers(update=1e-3), batch=64, accumulate=16, alone=1000.0)
    assert metric(m, "samples per second") == pytest.approx(1000.0)


@pytest.mark.parametrize("turns", [1, 2, 8])
def test_fewer_micro_batches_for_an_update_cost_its_share(turns):
    """One device with 8 micro-batches takes 8 p + u for p of a pass and u of an update; others take turns p + u."""
    work = layers(forward=1e-3, backward=2e-3, update=40e-3, nbytes=1.0)
    one, two = (metric(run(star(1), work, batch=8 * k, accumulate=k), "time per step") for k in (1, 2))
    passes, update = two - one, 2 * one - two
    assert update == pytest.approx(40e-3)
    given = {"batch": 16 * turns, "accumulate": turns, "alone": 1000.0, "alone_accumulate": 8}
    m = run(star(2, bandwidth="1e9 GB/s", latency="0 s"), work, **given)
    step = 64 / 1000.0 * (turns * passes + update) / (8 * passes + update)
    assert metric(m, "time per step") == pytest.approx(step, rel=1e-6)
    assert metric(m, "scaling efficiency") == pytest.approx(8 * turns / step / 1000.0, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"alone_accumulate": 8}, "nothing was measured with so many micro-batches"),
        ({"alone_accumulate": -1, "alone": 10.0}, "a number of micro-batches is expected"),
        ({"alone_accumulate": 2, "alone": 10.0, "strategy": "naive"}, "the strategy updates after each mini-batch"),
    ],
)
def test_micro_batches_of_one_device_that_have_no_effect_are_refused(options, match):
    with pytest.raises(InputError, match=match):
        run(star(2), layers(), batch=8, **options)


@pytest.mark.parametrize("launch", [0.0, 1.5e-3])
def test_of_many_micro_batches_a_few_are_played(launch, monkeypatch):
    """Whether the device or the frontend is the slower one, each further micro-batch takes the same time."""
    work = layers(forward=1e-3, launch=launch)
    options = {"accumulate": 40, "batch": 80, "alone": 60.0, "steps": 2}
    quick = metric(run(star(2), work, **options), "samples per second")
    monkeypatch.setattr("simperf.training.data.run.PLAYED", (1000, 1001, 1002))
    assert quick == pytest.approx(metric(run(star(2), work, **options), "samples per second"), rel=1e-9)


@pytest.mark.parametrize("launch", [0.0, 2e-6, 20e-6])
def test_of_long_micro_batches_fewer_are_played(launch, monkeypatch):
    """Of 1,200 kernels each, where 1,024 may wait."""
    work = layers(600, forward=3e-3, launch=launch)
    options = {"n": 1, "accumulate": 6, "batch": 6, "alone": 30.0, "steps": 1}
    counts = []
    play = ReplicatedRun._alone
    monkeypatch.setattr(
        *(ReplicatedRun, "_alone"),
        lambda *args, accumulate: counts.append(accumulate) or play(*args, accumulate=accumulate),
    )
    assert metric(run(star(1), work, **options), "samples per second") == pytest.approx(30.0, rel=1e-9)
    assert set(counts) == {2, 3, 4}
