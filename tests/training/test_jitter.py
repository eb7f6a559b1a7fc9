"""Distributions have the mean that they say; jitter scales what it should."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.training.jitter import (
    FAMILIES,
    Constant,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    TruncatedNormal,
    Weibull,
    distribution,
    jittered,
    scaled,
    stream,
)
from simperf.training.step import even_step

ALL = [
    Constant(2.0),
    Lognormal(2.0, 0.8),
    TruncatedNormal(2.0, 1.5),
    TruncatedNormal(2.0, 0.3, low=1.5),
    Gamma(2.0, 0.5),
    Gamma(2.0, 0.0),
    Exponential(2.0),
    Weibull(2.0, 0.7),
    Empirical((1.0, 2.0, 9.0)),
]


@pytest.mark.parametrize("one", ALL, ids=repr)
def test_the_mean_of_what_is_drawn_is_the_mean_that_is_said(one):
    values = one.draw(np.random.default_rng(1), 200_000)
    assert values.min() >= 0.0
    assert abs(values.mean() - one.mean) <= 5 * values.std() / math.sqrt(len(values)) + 1e-12


@pytest.mark.parametrize("one", [Lognormal(2.0, 0.4), Gamma(2.0, 0.4)])
def test_cv_is_the_deviation_over_the_mean(one):
    values = one.draw(np.random.default_rng(2), 200_000)
    assert values.std() / values.mean() == pytest.approx(0.4, rel=0.02)


def test_truncation_draws_again_and_moves_the_mean():
    """Cut at its centre, a normal distribution has the mean of half a normal: centre + deviation * sqrt(2/pi)."""
    one = TruncatedNormal(1.0, 0.5, low=1.0)
    assert one.mean == pytest.approx(1.0 + 0.5 * math.sqrt(2 / math.pi), rel=1e-12)
    assert one.draw(np.random.default_rng(3), 1000).min() >= 1.0
    assert TruncatedNormal(1.0, 0.0).mean == 1.0


@given(st.sampled_from(sorted(FAMILIES)), st.floats(1e-3, 1e3), st.floats(0.0, 2.0))
@settings(max_examples=40, deadline=None)
def test_every_family_by_name_gives_positive_times(family, mean, cv):
    one = distribution(family, mean=mean, cv=cv)
    assert (one.draw(np.random.default_rng(0), 100) >= 0).all()
    assert one.mean >= mean * (1 - 1e-12)


def test_measured_values_are_scaled_to_the_mean():
    one = distribution("constant", mean=1.0, values=(1.0, 3.0))
    assert one == Empirical((0.5, 1.5))
    assert set(one.draw(np.random.default_rng(0), 50).tolist()) == {0.5, 1.5}


def test_a_stream_depends_on_seed_and_name_alone():
    def some(seed, name):
        numbers = stream(Lognormal(), Simulation(seed=seed).random(name))
        return [next(numbers) for _ in range(600)]

    assert some(1, "rank 0") == some(1, "rank 0")
    assert some(1, "rank 0") != some(1, "rank 1")
    assert some(1, "rank 0") != some(2, "rank 0")


def test_a_step_is_slowed_as_a_whole_or_kernel_by_kernel():
    step = even_step(4, forward=4.0, backward=8.0, update=1.0, nbytes=4.0)
    whole = jittered(step, iter([1.5]))
    assert whole.compute_time == 13.0 * 1.5
    assert whole.gradients == step.gradients
    each = jittered(step, iter([2.0] * 4 + [1.0] * 4 + [3.0]), per_kernel=True)
    assert each.compute_time == 2 * 4.0 + 8.0 + 3.0
    assert scaled(Kernel("k", 2.0, demand=0.5), 3.0) == Kernel("k", 6.0, demand=0.5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lognormal(0.0), "mean"),
        (lambda: Lognormal(-1.0, -1.0), r"(?s)mean.*cv"),
        (lambda: Gamma(1.0, -0.1), "cv"),
        (lambda: TruncatedNormal(1.0, 0.1, low=2.0), "low"),
        (lambda: Weibull(1.0, 0.0), "shape"),
        (lambda: Exponential(math.inf), "mean"),
        (lambda: Empirical(()), "values"),
        (lambda: distribution("lognorml"), "no such distribution"),
        (lambda: distribution("constant", values=(0.0,)), "not all values"),
    ],
)
def test_what_is_no_distribution_is_told(make, words):
    with pytest.raises(InputError, match=words):
        make()
