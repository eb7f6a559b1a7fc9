"""Rows of the tables of fits: which fit is taken, which error counts, and the plain model beside it."""

import math

import numpy as np
import pytest

from simperf.accuracy.fits.rows import FitRow, best_fit, row_of, two_constants
from simperf.calibrate.fit import Data, FitConstant, Model, fit
from simperf.calibrate.fit.messages import alpha_beta

pytest.importorskip("scipy")

SIZE = np.geomspace(1e3, 1e8, 16)
LINE = Data.table(1e-5 + 1e-10 * SIZE, nbytes=SIZE)


def power(count: int) -> Model:
    """A polynomial of the log of the size with `count` constants."""
    constants = tuple(FitConstant(f"c{i}", 1.0, low=-100.0, high=100.0) for i in range(count))
    return Model(
        f"p{count}",
        "polynomial",
        constants,
        lambda v, c: np.exp(sum(v[f"c{i}"] * (np.log(c["nbytes"]) / 10) ** i for i in range(count))),
    )


def test_a_constant_is_not_taken_without_need():
    data = Data.table(np.exp(1.0 + 0.05 * np.log(SIZE)) * np.exp(0.02 * np.sin(37 * SIZE)), nbytes=SIZE)
    assert best_fit([power(2), power(4)], data).model.name == "p2"
    bent = Data.table(np.exp((np.log(SIZE) / 10) ** 3), nbytes=SIZE)
    assert best_fit([power(2), power(4)], bent).model.name == "p4"


def test_a_model_with_nearly_as_many_constants_as_points_is_not_fitted():
    few = LINE.take([0, 5, 10, 15])
    assert best_fit([power(2), power(3)], few).model.name == "p2"
    assert best_fit([power(4), power(3)], few).model.name == "p4"  # none is left: the first, whatever it is


def test_errors_of_points_that_were_not_fitted_count_if_there_are_any():
    found = fit(alpha_beta("link", "a link"), LINE)
    away = Data.table(2.0 * found.predict({"nbytes": SIZE[:4]}), nbytes=SIZE[:4])
    row = row_of("s", "n", "w", [(found, away)], goal=0.4)
    assert (row.points, row.predicted) == (16, 4)
    assert row.outside == pytest.approx(0.5, rel=1e-3)
    assert row.worst == pytest.approx(-0.5, rel=1e-3)
    assert row.coverage == 0.0
    assert row.reached == row.outside
    assert row.met is False
    inside = row_of("s", "n", "w", [(found, None)], goal=0.4)
    assert math.isnan(inside.outside)
    assert inside.reached == inside.inside < 0.01
    assert inside.met is True


def test_several_fits_are_one_row_of_all_their_points():
    found = fit(alpha_beta("link", "a link"), LINE)
    good, bad = (Data.table(factor * LINE.measured[:2], nbytes=SIZE[:2]) for factor in (1.0, 1.25))
    row = row_of("s", "n", "w", [(found, good), (found, bad)])
    assert row.predicted == 4
    assert row.outside == pytest.approx(0.1, abs=2e-3)
    assert row.met is None


def test_a_row_that_was_not_fitted_meets_nothing():
    none = float("nan")
    assert FitRow("s", "n", "w", 0, 0, none, none, none, none).met is None
    assert FitRow("s", "n", "w", 0, 0, none, none, none, none, goal=0.1).met is False


def test_the_plain_model_is_a_line():
    assert np.abs(two_constants(LINE, LINE)).max() < 1e-9
    bent = Data.table(LINE.measured * np.where(SIZE > 1e6, 2.0, 1.0), nbytes=SIZE)
    assert np.abs(two_constants(LINE, bent)).max() == pytest.approx(0.5)
