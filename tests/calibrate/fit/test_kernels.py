"""Softmax measured on a GPU: from its points to a profile, and back to the times that were played."""

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.fit.kernels import row_columns
from simperf.calibrate.measure.conditions import amounts
from simperf.calibrate.validate import validate
from simperf.cost import FittedRoofline
from simperf.hardware import Catalog
from simperf.workload.kinds import layernorm, softmax
from tests.calibrate.synthetic import write_profile

pytest.importorskip("scipy")

V100 = Catalog.load().gpu("v100-pcie-32gb")
TRUTH = {"overhead": 5e-6, "rate": 750e9, "kept": 0.45, "loose": 0.4}


def points():
    rng = np.random.default_rng(5)
    model = FittedRoofline(V100, {"normalization": TRUTH})
    for columns in (256, 768, 1600, 2048, 3072, 6400, 12288, 30000):
        for rows in (1024, 8192, 65536):
            op = softmax(rows, columns)
            times = model.cost(op).time * np.exp(0.02 * rng.standard_normal(5))
            at = {**amounts(op), "rows": rows, "columns": columns, "device": "cuda", "cache": "warm"}
            yield Measurement("op/normalization", at, tuple(float(time) for time in times))


@pytest.fixture(scope="module")
def dataset():
    return Dataset("rows of a V100", measurements=tuple(points()))


def test_rows_that_are_read_again_are_found_in_measurements(dataset):
    found = fit_dataset(dataset, part=V100)["kernel.normalization-fp32"].fit
    for key, value in TRUTH.items():
        assert found.values[key] == pytest.approx(value, rel=0.15), key
    assert found.mape() < 0.02


def test_without_a_gpu_of_the_catalogue_nothing_is_known_of_caches(dataset):
    found = fit_dataset(dataset)["kernel.normalization-fp32"].fit
    assert "kept" not in found.values
    assert found.mape() > 0.05


def test_a_profile_of_rows_predicts_what_was_held_out_and_is_played(dataset, tmp_path):
    found = fit_dataset(dataset, part=V100, hold_out=3)
    path = tmp_path / "rows.toml"
    write_profile(path, found, gpu=V100.name)
    profile = Catalog.load().profile(str(path))
    held = validate(profile, dataset, part=V100).held_out
    assert held is not None
    assert held.mape < 0.03
    played = FittedRoofline(V100, profile.kernels()).cost(softmax(8192, 12288)).time
    truth = FittedRoofline(V100, {"normalization": TRUTH}).cost(softmax(8192, 12288)).time
    assert played == pytest.approx(truth, rel=0.05)


def test_columns_of_rows():
    found = row_columns([softmax(10**5, 512), softmax(10**5, 3072), layernorm(10**5, 3072)], V100)
    assert list(found["again"]) == [0.0, 1.0, 0.5]
    assert found["pressure"][0] == 0.0
    assert found["tail"] == pytest.approx([0.0, 1 / 3, 0.0])
