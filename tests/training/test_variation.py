"""Devices that are equal only by name: order statistics, and what a synchronous step makes of them."""

import numpy as np
import pytest

from simperf.errors import InputError
from simperf.training.variation import expected_deviation, slowest
from tests.training.strategies import job, layers, metric, run, star


@pytest.mark.parametrize("count", [2, 4, 8, 64])
def test_the_slowest_of_many_is_that_of_draws(count):
    draws = np.random.default_rng(0).standard_normal((20_000, count)).max(axis=1)
    assert expected_deviation(count, count) == pytest.approx(draws.mean(), abs=0.04)


def test_ranks_are_symmetric_and_grow():
    found = [expected_deviation(rank, 9) for rank in range(1, 10)]
    assert found == sorted(found)
    assert found == pytest.approx([-one for one in reversed(found)], abs=1e-12)


def test_one_device_or_no_variation_changes_nothing():
    assert slowest(1, 0.1) == slowest(64, 0.0) == 1.0
    assert slowest(64, 0.015) < slowest(8, 0.015) < 1.0
    assert slowest(8, 0.015, spared=1) > slowest(8, 0.015)


@pytest.mark.parametrize("variation", [-0.01, 0.5])
def test_what_cannot_be_a_deviation_is_refused(variation):
    with pytest.raises(InputError, match="variation"):
        slowest(2, variation)


def test_a_synchronous_step_keeps_the_pace_of_the_slowest():
    """The computing of a step is longer by the expected deviation, what one device does alone is not."""
    work = layers(forward=1e-3, backward=5e-3)
    even, uneven = (run(star(8), work, bucket=1e12, variation=variation) for variation in (0.0, 0.02))
    longer = 6e-3 * (1 / slowest(8, 0.02) - 1)
    assert metric(uneven, "time per step") - metric(even, "time per step") == pytest.approx(longer, rel=1e-6)
    one = run(star(8), work, n=1, batch=1, variation=0.02)
    assert metric(uneven, "scaling efficiency") == pytest.approx(
        metric(one, "time per step") / metric(uneven, "time per step"), rel=1e-9
    )
    assert job(work).disturbances.variation == 0.0, "nothing varies unasked"
