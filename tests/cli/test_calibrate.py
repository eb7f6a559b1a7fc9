"""`simperf calibrate fit` and `validate` on the command line."""

import json

import pytest

from tests.calibrate.synthetic import gpu_dataset

pytest.importorskip("scipy")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "machine.json"
    gpu_dataset().save(path)
    return path


def test_fit_then_validate(simperf, data):
    code, out, err = simperf("calibrate", "fit", data, "-o", "profile.toml", "--hold-out", 3)
    assert code == 0
    assert "[[Variables]]" in out
    assert "tea/brewing: no model reads this series" in out
    assert "next: simperf calibrate validate profile.toml" in err
    code, out, err = simperf("calibrate", "validate", "profile.toml", data, "--within", 10)
    assert code == 0
    assert "held out" in out
    assert "[calibration] use" in err
    code, out, _ = simperf("calibrate", "validate", "profile.toml", data, "--format", "json")
    assert {row["series"] for row in json.loads(out)} >= {"op/gemm", "copy/h2d-pinned"}
    code, _, err = simperf("calibrate", "validate", "profile.toml", data, "--within", 0.001)
    assert code == 1
    assert "more than 0.001 %" in err
    assert simperf("check", "profile.toml")[0] == 0


def test_fit_without_output_writes_nothing(simperf, data, tmp_path):
    before = sorted(tmp_path.iterdir())
    code, _, err = simperf("calibrate", "fit", data)
    assert code == 0
    assert "no profile was written" in err
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_wrong_is_said(simperf, data):
    assert simperf("calibrate", "fit", "none.json")[0] == 2
    code, _, err = simperf("calibrate", "fit", data, "--gpu", "a101")
    assert code == 2
    assert "unknown gpu 'a101'" in err
    code, _, err = simperf("calibrate", "validate", "nothing", data)
    assert code == 2
    assert "unknown profile or GPU 'nothing'" in err
    _, _, err = simperf("calibrate", "validate", "h100-sxm5-80", data)
    assert "did you mean 'h100-sxm5-80gb'" in err


def test_help_lists_the_verbs(simperf):
    _, out, err = simperf("calibrate", "--help")
    for verb in ("measure", "fit", "validate"):
        assert verb in out + err
