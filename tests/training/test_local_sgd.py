"""Local SGD: communication every k steps (simperf.training.data.local_sgd)."""

import pytest

from simperf.errors import InputError
from tests.training.strategies import MIB, layers, metric, run, star


@pytest.mark.parametrize("every", [1, 2, 4])
def test_the_average_costs_one_all_reduce_every_k_steps(every):
    m = run(star(4), layers(forward=1e-3), strategy="local-sgd", every=every, steps=4)
    one = 2 * 3 * (100 * MIB / 4 / 50e9 + 500e-9)
    assert m.now == pytest.approx(4 * 6e-3 + 4 / every * one, rel=1e-9)
    assert metric(m, "payload per step") == pytest.approx(100 * MIB / every)
    assert metric(m, "time per step") == pytest.approx(6e-3 + one / every, rel=1e-9)


def test_more_seldom_than_the_run_is_long_is_never():
    m = run(star(4), layers(), strategy="local-sgd", every=10, steps=4)
    assert m.now == pytest.approx(4 * 5e-3, rel=1e-9)


def test_never_is_not_a_number_of_steps():
    with pytest.raises(InputError, match="every"):
        run(star(2), layers(), strategy="local-sgd", every=0)


def test_micro_batches_are_computed_before_the_update():
    """Four micro-batches of a step take four times the passes; the update and the average come once."""
    work = layers(forward=1e-3, update=2e-3)
    one, four = (
        run(star(4), work, strategy="local-sgd", accumulate=count, batch=4 * count, steps=2) for count in (1, 4)
    )
    average = 2 * 3 * (100 * MIB / 4 / 50e9 + 500e-9)
    assert one.now == pytest.approx(2 * (6e-3 + 2e-3 + average), rel=1e-9)
    assert four.now == pytest.approx(2 * (4 * 6e-3 + 2e-3 + average), rel=1e-9)
    assert metric(four, "samples per second") == pytest.approx(16 / metric(four, "time per step"), rel=1e-9)
    assert metric(four, "scaling efficiency") <= 1.0
