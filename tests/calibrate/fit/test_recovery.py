"""Truth, synthesise, fit, recover: for every fitted model, with noise and outliers.

The goal is that 90 % intervals hold each constant in 85 to 95 % of the repetitions. A share that is counted in 200
repetitions has itself a standard deviation of 1.5 (at 95 %) to 2.5 (at 85 %) percentage points. So each constant must
be counted within two of these of the goal's ends, 80 to 98 %, most of them within the goal's ends themselves, and the
mean of a model's constants within them, too. `tests.calibrate.fit.coverage` counts more repetitions.
"""

from __future__ import annotations

import numpy as np
import pytest

from simperf.calibrate.fit import fit
from tests.calibrate.fit.coverage import coverage
from tests.calibrate.fit.devices import DEVICES
from tests.calibrate.fit.truths import TRUTHS

pytest.importorskip("scipy")

REPETITIONS = 200
LOW, HIGH = 0.85, 0.95
EVERY = {**TRUTHS, **DEVICES}
#: models of which every check repeats fits by hundreds; of the others, long checks do
SHORT = ("launch", "alpha-beta")


def deviation(share: float) -> float:
    """Of a share that is counted in so many repetitions."""
    return float(np.sqrt(share * (1.0 - share) / REPETITIONS))


@pytest.mark.parametrize("name", EVERY)
def test_exact_points_give_the_constants_back(name: str) -> None:
    truth = EVERY[name]
    found = fit(truth.model, truth.measured(np.random.default_rng(0), noise=1e-4, outliers=0.0))
    for key, value in truth.values.items():
        assert found.values[key] == pytest.approx(value, rel=0.02), key


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in EVERY]
)
def test_intervals_cover_the_truth(name: str) -> None:
    """Of every single constant, with noise of 3 % and outliers."""
    found = coverage(EVERY[name], REPETITIONS)
    shares = {key: held for key, (held, _, _) in found.items()}
    for key, share in shares.items():
        assert LOW - 2.0 * deviation(LOW) <= share <= HIGH + 2.0 * deviation(HIGH), (key, shares)
    assert LOW <= np.mean(list(shares.values())) <= HIGH, shares
    assert sum(LOW <= share <= HIGH for share in shares.values()) >= 0.75 * len(shares), shares
    for key, (_, _, error) in found.items():  # outliers, all of them slow, move nothing by more than the interval
        assert abs(error) < 0.08, key


@pytest.mark.parametrize("width", [0.5, 2.0])
def test_intervals_of_another_width_would_be_noticed(width: float) -> None:
    found = coverage(TRUTHS["alpha-beta"], REPETITIONS, width=width)
    allowed = LOW - 2.0 * deviation(LOW), HIGH + 2.0 * deviation(HIGH)
    assert not any(allowed[0] <= held <= allowed[1] for held, _, _ in found.values())
