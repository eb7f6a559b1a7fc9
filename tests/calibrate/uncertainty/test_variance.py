"""How far another session lies from what was fitted to several."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import Data, FitConstant, Model, fit
from simperf.calibrate.uncertainty.variance import (
    ErrorSpread,
    VariancePrior,
    log_errors,
    session_spreads,
    variance_prior,
)

pytest.importorskip("scipy")

LINE = Model(
    "kernel.x",
    "a line",
    (FitConstant("a", 1.0), FitConstant("b", 1.0)),
    lambda v, c: v["a"] + v["b"] * c["n"],
    columns=("n",),
)
SIZES = tuple(float(n) for n in range(1, 13))


def session(pace, *, left_out=()):
    points = [Measurement("x", {"n": n}, (pace * (1.0 + 2.0 * n),)) for n in SIZES if n not in left_out]
    return Dataset("a machine", measurements=tuple(points))


def line(sessions):
    return fit(LINE, Data.of(sessions[0], ("n",)), draws=0)


def test_misses_are_those_of_each_session_at_each_point_and_unknown_where_it_has_none():
    sessions = [session(1.0), session(1.2, left_out=(3.0,))]
    fitted = line(sessions)
    table = log_errors(fitted, None, sessions)
    assert table.shape == (2, 12)
    assert table[0] == pytest.approx(0.0, abs=1e-6)
    assert np.isnan(table[1, 2])
    assert np.delete(table[1], 2) == pytest.approx(np.log(1.2), abs=1e-6)
    away = Data.of(list(session(1.0))[:3], ("n",))
    assert log_errors(replace(fitted, data=fitted.data.take(slice(3, None))), away, sessions).shape == (2, 12)


def test_one_session_says_nothing_of_others():
    assert session_spreads({"kernel.x": np.zeros((1, 5))}) == {"kernel.x": ErrorSpread()}


def machine(rng, *, sessions, models=40, points=10):
    """Misses of models whose sessions are apart by deviations that differ; now and then a point is disturbed."""
    found = {}
    for number in range(models):
        apart = 0.08 * np.exp(0.6 * rng.standard_normal())
        shared = apart * rng.standard_normal((sessions, 1))
        own = 0.03 * rng.standard_normal((sessions, points))
        own += 0.3 * (rng.random((sessions, points)) < 0.08) * rng.random((sessions, points))
        model = 0.04 * rng.standard_normal(points)
        found[f"kernel.{number}"] = shared + own + model
    return found


@pytest.mark.parametrize("count", [3, 5])
def test_nine_of_ten_points_of_another_session_are_held(count):
    rng = np.random.default_rng(count)
    inside = {"together": [], "alone": []}
    for _ in range(20):
        tables = machine(rng, sessions=count + 1)
        # what is fitted follows the sessions that are known
        middles = {name: table[:-1].mean() for name, table in tables.items()}
        known = {name: table[:-1] - middles[name] for name, table in tables.items()}
        later = {name: table[-1] - middles[name] for name, table in tables.items()}
        ways = {
            "together": session_spreads(known),
            "alone": {name: session_spreads({name: known[name]})[name] for name in known},
        }
        for way, found in ways.items():
            for name, one in found.items():
                inside[way] += list(np.abs(later[name]) < 1.645 * np.hypot(one.common, one.own))
    assert 0.85 < np.mean(inside["together"]) < 0.95
    assert np.mean(inside["alone"]) > 0.85  # wide, by Student's t, where no other model helps


def test_variances_of_one_sort_help_each_other():
    """Two models that happen to agree are not thought surer than the others."""
    rng = np.random.default_rng(1)
    tables = {f"kernel.{i}": 0.1 * rng.standard_normal((4, 1)) + np.zeros((4, 5)) for i in range(30)}
    tables["kernel.lucky"] = np.full((4, 5), 1e-4) * np.array([[1.0], [2.0], [3.0], [4.0]])
    found = session_spreads(tables)
    assert found["kernel.lucky"].common > 0.03
    assert session_spreads({"kernel.lucky": tables["kernel.lucky"]})["kernel.lucky"].common < 1e-3


def test_what_is_usual_is_found_again():
    rng = np.random.default_rng(4)
    freedom, known, variance = 5, 8.0, 0.01
    true = known * variance / rng.chisquare(known, size=4000)
    found = variance_prior(list(true * rng.chisquare(freedom, size=4000) / freedom), freedom)
    assert found.variance == pytest.approx(variance, rel=0.1)
    assert found.freedom == pytest.approx(known, rel=0.25)


def test_what_is_usual_of_variances_that_are_known_from_different_numbers():
    rng = np.random.default_rng(5)
    known, variance = 8.0, 0.01
    freedom = rng.integers(2, 12, size=6000)
    true = known * variance / rng.chisquare(known, size=6000)
    found = variance_prior(list(true * rng.chisquare(freedom) / freedom), list(freedom))
    assert found.variance == pytest.approx(variance, rel=0.1)
    assert found.freedom == pytest.approx(known, rel=0.25)
    # deviations below the least are all that, and then no longer told apart
    tiny = [1e-8 * variance for variance in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert variance_prior(tiny, 4).freedom == np.inf
    assert (
        variance_prior([1e-4, 1e-6, 1e-8, 1e-2, 1.0], 4).freedom
        < variance_prior([1e-4, 1e-6, 1e-8, 1e-2, 1.0], 4, least=0.05).freedom
    )


def test_a_variance_is_drawn_towards_what_is_usual_by_what_is_known_of_both():
    like = VariancePrior(0.01, 6.0)
    few, many = like.shrunk(0.04, 2.0), like.shrunk(0.04, 60.0)
    assert few[0] == pytest.approx((6 * 0.01 + 2 * 0.04) / 8)
    assert 0.01 < few[0] < many[0] < 0.04
    assert few[1] > many[1] > 1.0
    assert VariancePrior(0.01, np.inf).shrunk(0.04, 2.0) == (0.01, 1.0)
    assert VariancePrior(0.0, 0.0).shrunk(0.04, 2.0) == pytest.approx((0.04, 2.92 / 1.645), rel=1e-3)
