"""Truth, synthesise, fit, recover: for every fitted model, with noise and outliers."""

from __future__ import annotations

import numpy as np
import pytest

from simperf.calibrate.fit import fit
from tests.calibrate.fit.truths import TRUTHS

pytest.importorskip("lmfit")

REPETITIONS = 200


@pytest.mark.parametrize("name", TRUTHS)
def test_exact_points_give_the_constants_back(name: str) -> None:
    truth = TRUTHS[name]
    found = fit(truth.model, truth.measured(np.random.default_rng(0), noise=1e-4, outliers=0.0))
    for key, value in truth.values.items():
        assert found.values[key] == pytest.approx(value, rel=0.02), key


@pytest.mark.parametrize("name", TRUTHS)
def test_intervals_cover_the_truth(name: str) -> None:
    """90 % intervals hold the true constants in 85 to 95 % of repetitions with noise of 3 % and outliers."""
    truth = TRUTHS[name]
    rng = np.random.default_rng(3)
    held = dict.fromkeys(truth.values, 0)
    errors: dict[str, list[float]] = {key: [] for key in truth.values}
    for repetition in range(REPETITIONS):
        found = fit(truth.model, truth.measured(rng), seed=repetition)
        for key, value in truth.values.items():
            one = found.constants[key]
            held[key] += one.low <= value <= one.high
            errors[key].append(one.value / value - 1.0)
    shares = {key: count / REPETITIONS for key, count in held.items()}
    assert 0.85 <= np.mean(list(shares.values())) <= 0.95, shares
    assert min(shares.values()) > 0.78, shares
    for key, values in errors.items():  # outliers, all of them slow, move nothing by more than the interval
        assert abs(np.median(values)) < 0.15, key
