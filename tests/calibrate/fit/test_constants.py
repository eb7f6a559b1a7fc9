"""Mean over middle reading: what takes a program longer than a few readings of its operations say."""

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import fit
from simperf.calibrate.fit.constants import longer_runs

pytest.importorskip("scipy")


def session(seed, share, *, device="cpu", blocks=15, series=("op/x", "op/y", "op/z")):
    """Blocks of 4 ms, of which a share is stopped for 2 ms, which is half of their time."""
    rng = np.random.default_rng(seed)
    points = [
        Measurement(one, {"device": device, "n": n}, tuple(1e-6 * n * (1 + 0.5 * (rng.random(blocks) < share))))
        for one in series
        for n in range(1, 101)
    ]
    return Dataset("a machine", measurements=tuple(points))


def test_the_mean_of_what_stops_work_is_found():
    (choice,) = longer_runs([session(seed, 0.06) for seed in range(4)])
    found = fit(choice.model, choice.data)
    assert len(choice.data) == 12
    assert found.values["longer"] == pytest.approx(1.03, abs=0.003)
    low, high = found.constants["longer"].low, found.constants["longer"].high
    assert low < 1.03 < high
    assert high - low < 0.01


def test_a_session_whose_cores_were_taken_away_more_often_counts_no_more_than_others():
    (choice,) = longer_runs([*(session(seed, 0.06) for seed in range(5)), session(5, 0.4)])
    assert fit(choice.model, choice.data, draws=0).values["longer"] < 1.04


def test_gpus_and_few_readings_say_nothing():
    assert not list(longer_runs([session(0, 0.1, device="cuda")]))
    assert not list(longer_runs([session(0, 0.1, blocks=3)]))
    assert not list(longer_runs([session(0, 0.1, series=("op/x",))]))
