"""Intervals where straight lines are wrong: a profile of the loss of `likelihood` and `constants`."""

import numpy as np
import pytest

from simperf.calibrate.fit import Data, FitConstant, Model, fit
from simperf.calibrate.fit.messages import alpha_beta
from simperf.calibrate.uncertainty.constants import log_residual
from simperf.calibrate.uncertainty.likelihood import LossProfile

pytest.importorskip("scipy")

WIDE = (np.full(2, -np.inf), np.full(2, np.inf))


def line(x):
    """Residuals that are linear in two constants, which pull at each other."""
    design = np.stack((np.ones_like(x), x), axis=1)
    return lambda row: design @ (row - np.array([1.0, 2.0]))


def test_where_a_model_is_linear_the_straight_line_is_right():
    x = np.linspace(0.0, 3.0, 12)
    design = np.stack((np.ones_like(x), x), axis=1)
    profile = LossProfile(line(x), np.array([1.0, 2.0]), *WIDE, scale=1e6)
    variance = np.linalg.inv(design.T @ design)
    for i in range(2):
        rise = 0.5 * 0.1**2 / variance[i, i]
        for reach in (0.1, -0.1):
            assert profile.end(i, reach, rise) == pytest.approx([1.0, 2.0][i] + reach, rel=1e-4)
        assert profile.length(i, rise) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("wrong", [0.4, 0.6, 1.5, 4.0])
def test_an_end_is_found_from_a_straight_line_that_is_too_short_or_too_long(wrong):
    profile = LossProfile(lambda row: np.array([np.expm1(row[0])]), np.zeros(1), WIDE[0][:1], WIDE[1][:1], scale=1e6)
    for side in (1.0, -1.0):
        truth = float(np.log1p(side * 0.8))
        assert profile.end(0, side * wrong, 0.5 * 0.8**2) == pytest.approx(truth, rel=0.05)


def test_an_end_stops_at_a_bound():
    profile = LossProfile(lambda row: row - 1.0, np.array([1.0]), np.array([0.5]), np.array([9.0]), scale=1e6)
    assert profile.end(0, -1.0, 0.5) == 0.5
    assert profile.end(0, 1.0, 0.5) == pytest.approx(2.0)


def test_other_constants_give_way():
    """Two constants of which only the sum is seen well: each goes as far as the weak prior lets it."""
    profile = LossProfile(
        lambda row: np.array([10.0 * (row[0] + row[1] ** 3), 0.1 * row[1]]), np.zeros(2), *WIDE, scale=1e6
    )
    assert profile.end(1, 5.0, 0.5) == pytest.approx(10.0, rel=0.05)


def test_a_constant_at_its_bound_has_an_interval_to_the_other_side():
    """Readings that need a negative latency: zero is best, and the interval says how much it could be."""
    size = np.geomspace(1e3, 1e8, 20)
    noise = np.exp(0.02 * np.random.default_rng(2).standard_normal(20))
    data = Data.table(1e-10 * size * np.where(size < 1e5, 0.97, 1.0) * noise, nbytes=size)
    found = fit(alpha_beta("link", "no latency at all"), data)
    alpha = found.constants["alpha"]
    assert "at its lower bound" in alpha.note
    assert alpha.low == alpha.value < 1e-12
    assert 1e-10 < alpha.high < 1e-8
    assert alpha.stderr > 0
    (line,) = [text for text in found.report().splitlines() if "alpha:" in text and "90 %" in text]
    assert "90 %: " in line
    assert "(" not in line  # a share of nothing would be no number


def test_an_interval_is_not_the_same_to_both_sides_where_a_constant_saturates():
    """n / (n + half): beyond the largest n, half a size can be anything, below it is known."""
    half = Model(
        "half",
        "half a size",
        (FitConstant("rate", 1.0), FitConstant("half", 20.0)),
        lambda v, c: c["n"] / (v["rate"] * c["n"] / (c["n"] + v["half"])),
    )
    n = np.geomspace(1.0, 30.0, 24)
    data = Data.table((n + 40.0) / 2.0 * np.exp(0.05 * np.random.default_rng(1).standard_normal(24)), n=n)
    found = fit(half, data)
    one = found.constants["half"]
    above, below = one.high - one.value, one.value - one.low
    assert above > 1.15 * below
    draws = np.array(one.draws)
    assert np.mean(draws > one.high) < 0.15
    assert np.mean(draws < one.low) < 0.15


def test_residuals_are_logs_and_an_impossible_prediction_is_a_large_one():
    model = Model("own", "a line", (FitConstant("a", 1.0),), lambda v, c: v["a"] * c["n"])
    data = Data.table([2.0, 4.0], n=[1.0, 2.0])
    assert log_residual(model, data, {"a": 2.0}) == pytest.approx([0.0, 0.0])
    assert log_residual(model, data, {"a": -1.0})[0] < -100


@pytest.mark.parametrize("tight", [0.01, 0.1])
def test_the_interval_of_a_constant_of_three_points_holds_its_value(tight):
    """Readings that repeat better or as well as points scatter: of three points, two are close together by chance."""
    model, size, truth = alpha_beta("a", "three points"), np.geomspace(3e3, 3e6, 3), {"alpha": 2e-5, "beta": 2e-9}
    held = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        middle = model.predict(truth, {"nbytes": size}) * np.exp(0.1 * rng.standard_normal(3))
        samples = tuple(one * np.exp(tight * rng.standard_normal(9)) for one in middle)
        data = Data({"nbytes": size}, np.array([np.median(one) for one in samples]), samples)
        found = fit(model, data, seed=seed)
        low, high = found.interval(data)
        assert np.all(np.log(high / low) <= 2 * 1.645 * np.hypot(3.0, found.scatter)), "no interval to 1e-128 s"
        for name, one in found.constants.items():
            assert one.low <= one.value <= one.high, (seed, name)
            held.append(one.low <= truth[name] <= one.high)
    assert np.mean(held) >= 0.85
