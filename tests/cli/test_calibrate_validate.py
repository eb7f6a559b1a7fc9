"""`simperf calibrate validate`: points told apart, and exit codes that scripts can use."""

import csv
import io

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.cli.calibrate_validate import validate
from tests.calibrate.synthetic import gpu_dataset

pytest.importorskip("scipy")


@pytest.fixture
def fitted(simperf, tmp_path):
    """A data set of copies and a profile that holds half of them out."""
    data = Dataset("copies", measurements=gpu_dataset().select("copy/h2d-pinned"))
    data.save(tmp_path / "few.json")
    assert simperf("calibrate", "fit", "few.json", "-o", "p.toml", "--hold-out", 2)[0] == 0
    return data


def slower(data: Dataset, factor: float, title: str) -> Dataset:
    points = (Measurement(one.series, one.at, tuple(factor * s for s in one.samples)) for one in data)
    return Dataset(title, measurements=tuple(points))


def test_points_that_were_fitted_and_that_were_not(simperf, fitted):
    code, out, _ = simperf("calibrate", "validate", "p.toml", "few.json", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == len(fitted)
    assert {row["fitted"].lower() for row in rows} == {"true", "false"}


def test_another_data_set_is_held_out_as_a_whole_and_its_error_counts(simperf, fitted, tmp_path):
    slower(fitted, 1.5, "a slower machine").save(tmp_path / "slow.json")
    code, _, err = simperf("calibrate", "validate", "p.toml", "slow.json", "--within", 10)
    assert code == 1
    assert "held-out points are off by 33" in err
    assert simperf("calibrate", "validate", "p.toml", "slow.json", "--within", 40)[0] == 0
    assert simperf("calibrate", "validate", "p.toml", "slow.json")[0] == 0


def test_every_point_on_request(simperf, fitted):
    short = simperf("calibrate", "validate", "p.toml", "few.json")[1]
    every = simperf("calibrate", "validate", "p.toml", "few.json", "--points")[1]
    assert len(every.splitlines()) >= len(short.splitlines()) + len(fitted)


def test_a_profile_whose_points_were_all_fitted_is_told_apart(simperf, fitted):
    assert simperf("calibrate", "fit", "few.json", "-o", "all.toml", "--hold-out", 0)[0] == 0
    code, _, err = simperf("calibrate", "validate", "all.toml", "few.json")
    assert code == 0
    assert "every point was fitted, which says little: fit with --hold-out 5" in err
    code, _, err = simperf("calibrate", "validate", "all.toml", "few.json", "--within", 0)
    assert code == 2
    assert "--within: no point was held out of the fit" in err


def test_a_data_set_that_the_profile_says_nothing_of(simperf, fitted, tmp_path):
    Dataset("other", measurements=(Measurement("tea/brewing", {"leaves": 3}, (180.0,)),)).save(tmp_path / "tea.json")
    code, _, err = simperf("calibrate", "validate", "p.toml", "tea.json")
    assert code == 2
    assert "no point of this data set" in err


def test_the_picture(simperf, fitted, tmp_path):
    code, _, err = simperf("calibrate", "validate", "p.toml", "few.json", "--plot", "errors.png")
    assert code == 0
    assert (tmp_path / "errors.png").stat().st_size > 1000
    assert "wrote errors.png" in err


def test_the_command_is_documented():
    assert validate.__doc__


def test_a_profile_that_is_not_there_is_told_before_the_data(simperf, fitted):
    code, _, err = simperf("calibrate", "validate", "nope.toml", "few.json")
    assert code == 2
    assert err.startswith("error: nope.toml: no such file\n    expected: a file that `simperf calibrate fit DATA.json")


def test_what_is_mistaken_for_the_other_is_told(simperf, fitted):
    code, _, err = simperf("calibrate", "validate", "few.json", "p.toml")
    assert code == 2
    assert err.startswith(
        "error: few.json: this is no profile\n    expected: the profile that `simperf calibrate fit` wrote"
    )
    code, _, err = simperf("calibrate", "fit", "p.toml", "-o", "q.toml")
    assert code == 2
    assert "error: p.toml:1: not a data set: invalid JSON" in err
    assert "expected: what `simperf calibrate measure`, `cluster` or `import` writes" in err


def test_a_profile_that_could_not_be_written_is_refused_before_the_fit(simperf, fitted, tmp_path):
    (tmp_path / "file").touch()
    code, out, err = simperf("calibrate", "fit", "few.json", "-o", "no/p.toml", "--plots", "file")
    assert (code, out) == (2, "")
    assert "error: --output: no/p.toml: there is no folder 'no'" in err
    assert "error: --plots: file: this is a file, a folder is expected" in err
    code, out, err = simperf("calibrate", "fit", "few.json", "-o", "p.json")
    assert (code, out) == (2, "")
    assert "error: --output: p.json: the name must end in .toml" in err


def test_units_stand_with_every_point(simperf, fitted):
    out = simperf("calibrate", "validate", "p.toml", "few.json", "--format", "csv")[1]
    assert {row["unit"] for row in csv.DictReader(io.StringIO(out))} == {one.unit for one in fitted}


def test_the_three_commands_are_named(simperf):
    code, out, err = simperf("calibrate")
    assert code == 2
    lines = [line.strip() for line in (out + err).splitlines()]
    for words in (
        "measure --quick -o machine.json",
        "fit machine.json -o profile.toml",
        "validate profile.toml machine.json",
    ):
        assert f"simperf calibrate {words}" in lines, "a line of its own, to be copied"


def test_a_profile_with_a_wrong_unit_or_key_or_in_a_folder_is_told(simperf, fitted, tmp_path):
    profile, data = "p.toml", "few.json"
    text = (tmp_path / profile).read_text()
    for old, new, said in (
        ('unit = "s"', 'unit = "us"', "no unit of a fitted constant, which is one of 1, s, B, FLOP, J"),
        ("stderr = ", "sdterr = ", "unknown key; did you mean 'stderr'?"),
    ):
        (tmp_path / "wrong.toml").write_text(text.replace(old, new, 1))
        code, _, err = simperf("calibrate", "validate", "wrong.toml", data)
        assert code == 2
        assert said in err
    (tmp_path / "folder.toml").mkdir()
    assert "this is a directory" in simperf("calibrate", "validate", "folder.toml", data)[2]


def test_two_constants_stand_beside(simperf, fitted):
    profile, data = "p.toml", "few.json"
    out = simperf("calibrate", "validate", profile, data)[1]
    assert "in 90 %  two constants" in out


def test_a_picture_that_could_not_be_written_is_refused_before_anything_is_predicted(simperf, fitted):
    profile, data = "p.toml", "few.json"
    code, out, err = simperf("calibrate", "validate", profile, data, "--plot", "no/e.png")
    assert (code, out) == (2, "")
    assert "there is no folder" in err
