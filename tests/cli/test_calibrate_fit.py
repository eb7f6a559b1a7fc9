"""`simperf calibrate fit`: what it writes, shows and refuses."""

import tomllib

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.cli.calibrate_fit import fit
from tests.calibrate.synthetic import gpu_dataset

pytest.importorskip("scipy")


@pytest.fixture
def few(tmp_path):
    """Copies only, so that a fit is quick, and a series that nothing reads."""
    whole = gpu_dataset()
    path = tmp_path / "few.json"
    points = (*whole.select("copy/h2d-pinned"), *whole.select("tea/brewing"))
    Dataset("copies", machine=dict(whole.machine), measurements=points).save(path)
    return path


def test_a_profile_says_how_it_was_made_and_what_was_held_out(simperf, few, tmp_path):
    code, out, err = simperf("calibrate", "fit", few, "-o", "p.toml", "--hold-out", 2)
    assert code == 0
    assert "tea/brewing: no model reads this series (1 points)" in out
    written = tomllib.loads((tmp_path / "p.toml").read_text())
    # no folder, which may have a user's name in it
    assert written["made"]["command"] == "simperf calibrate fit few.json -o p.toml --hold-out 2 --seed 0"
    assert len(written["model"]["copy.h2d-pinned"]["held_out"]) == 5
    assert "next: simperf calibrate validate p.toml" in err


def test_nothing_is_held_out_if_so_wished_and_the_seed_moves_only_the_intervals(simperf, few, tmp_path):
    read = []
    for seed in (0, 0, 1):
        assert simperf("calibrate", "fit", few, "-o", "p.toml", "--hold-out", 0, "--seed", seed)[0] == 0
        read.append(tomllib.loads((tmp_path / "p.toml").read_text())["model"]["copy.h2d-pinned"])
    first, again, other = (one["constant"]["bandwidth"] for one in read)
    assert not read[0].get("held_out")
    assert first == again
    assert first["value"] == other["value"]
    assert first["draws"] != other["draws"]


def test_a_data_set_of_which_nothing_can_be_fitted_is_refused_and_nothing_is_written(simperf, tmp_path):
    path = tmp_path / "tea.json"
    Dataset("tea", measurements=(Measurement("tea/brewing", {"leaves": 3}, (180.0,)),)).save(path)
    code, _, err = simperf("calibrate", "fit", path, "-o", "p.toml")
    assert code == 2
    assert "nothing in this data set can be fitted: tea/brewing: no model reads" in err
    assert not (tmp_path / "p.toml").exists()


def test_a_file_that_breaks_off_is_named_with_its_line(simperf, few):
    few.write_text(few.read_text()[:-40])
    code, _, err = simperf("calibrate", "fit", few)
    assert code == 2
    assert "invalid JSON" in err
    assert few.name in err


def test_pictures_are_drawn_on_request(simperf, few, tmp_path):
    code, _, err = simperf("calibrate", "fit", few, "--plots", tmp_path / "pictures")
    assert code == 0
    drawn = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert drawn
    assert f"wrote {len(drawn)} pictures" in err


def test_a_point_that_lacks_a_number_is_told_with_its_file(simperf, tmp_path):
    path = tmp_path / "lack.json"
    Dataset("lack", measurements=(Measurement("copy/host", {"nbytes": "big"}, (1.0,)),)).save(path)
    code, _, err = simperf("calibrate", "fit", path)
    assert code == 2
    assert "lack.json: a point of 'copy/host' has no number 'nbytes' (read: 'big')" in err


def test_the_profile_is_kept_even_if_the_pictures_fail(simperf, few, tmp_path, monkeypatch):
    monkeypatch.setattr("simperf.report.calibration.draw_fit", lambda one: 1 / 0)
    assert simperf("calibrate", "fit", few, "-o", "p.toml", "--plots", "pictures")[0] == 2
    assert tomllib.loads((tmp_path / "p.toml").read_text())["model"]


def test_the_command_is_documented():
    assert fit.__doc__
