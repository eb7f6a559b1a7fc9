"""Shipped scenarios are found by name from anywhere, and copied without overwriting."""

import pytest

import simperf
from simperf.errors import InputError, UnknownNameError
from simperf.scenario import load_scenario, shipped
from simperf.scenario.shipped import copy_scenario, find_scenario, shipped_folder, shipped_scenarios


@pytest.fixture(autouse=True)
def _empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_names():
    names = list(shipped_scenarios())
    assert names == sorted(names)
    assert {"d2l/async", "d2l/sync-160mb"} <= set(names)


@pytest.mark.parametrize("name", ["d2l/async", "async", "d2l/async.toml", "scenarios/d2l/async.toml"])
def test_found_by_name(name):
    assert find_scenario(name) == str(shipped_folder() / "d2l" / "async.toml")


def test_a_file_goes_before_a_name(tmp_path):
    (tmp_path / "async").write_text("x")
    assert find_scenario("async") == "async"
    (tmp_path / "d2l").mkdir()
    assert find_scenario("d2l") == "d2l", "the loader says that it is a directory"
    assert find_scenario("d2l/async").endswith("async.toml")


def test_not_found_offers_names_and_files(tmp_path):
    with pytest.raises(InputError, match=r"did you mean 'd2l/async'"):
        find_scenario("d2l/asnyc")
    (tmp_path / "mine.toml").write_text("x = 1")
    with pytest.raises(InputError, match=r"did you mean 'mine.toml'"):
        find_scenario("mien.toml")


def test_copies(tmp_path):
    assert str(copy_scenario("d2l/async")) == "async.toml"
    with pytest.raises(InputError, match="not overwritten"):
        copy_scenario("d2l/async")
    (tmp_path / "folder").mkdir()
    assert copy_scenario("d2l/async", "folder").read_bytes() == (tmp_path / "async.toml").read_bytes()
    assert copy_scenario("d2l/async", "other.toml").name == "other.toml"
    assert load_scenario("other.toml").program.name == "async-chain"
    with pytest.raises(UnknownNameError, match="did you mean 'd2l/async'"):
        copy_scenario("d2l/asnyc")


def test_a_copy_brings_the_files_that_it_names(tmp_path):
    (tmp_path / "folder").mkdir()
    copied = copy_scenario("large/recorded-step", "folder/mine.toml")
    assert sorted(one.name for one in (tmp_path / "folder").iterdir()) == ["mine.toml", "recorded-step.json.gz"]
    assert simperf.run(str(copied)).time == simperf.run("large/recorded-step").time
    assert shipped.files_beside(shipped_scenarios()["d2l/async"]) == []
    with pytest.raises(InputError, match=r"recorded-step\.json\.gz: the file exists"):
        copy_scenario("large/recorded-step", "folder/other.toml")
    assert not (tmp_path / "folder" / "other.toml").exists()


def test_an_installation_without_scenarios(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "files", lambda package: tmp_path / "nowhere")
    assert shipped_scenarios() == {}
    with pytest.raises(InputError, match="no such file"):
        find_scenario("d2l/async")


def test_the_wheel_s_folder_goes_first(tmp_path, monkeypatch):
    packed = tmp_path / "simperf" / "_shipped" / "scenarios" / "x"
    packed.mkdir(parents=True)
    (packed / "y.toml").write_text("")
    monkeypatch.setattr(shipped, "files", lambda package: tmp_path / "simperf")
    assert list(shipped_scenarios()) == ["x/y"]
