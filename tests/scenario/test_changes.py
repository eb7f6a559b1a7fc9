"""Scenarios by name with changes: what `simperf.run(name, set=...)` takes, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simperf
from simperf.errors import InputError
from simperf.scenario.load import change_scenario, load_scenario
from simperf.scenario.overrides import parse_changes


def test_a_name_a_path_and_a_scenario_give_the_same_bytes(tmp_path):
    path = simperf.scenario.find_scenario("d2l/async")
    first = simperf.run("d2l/async", set={"program.n": 20, "program.t2": "5 us"}, seed=3).to_bytes()
    assert simperf.run(Path(path), set=["program.n=20", "program.t2=5 us"], seed=3).to_bytes() == first
    assert simperf.run(load_scenario("d2l/async", ["program.n=20", "program.t2=5 us"], seed=3)).to_bytes() == first
    changed = simperf.run(load_scenario("d2l/async"), set={"program": {"n": 20, "t2": "5 us"}}, seed=3)
    assert changed.to_bytes() == first


def test_a_variant_is_run_by_its_name():
    by_name = simperf.run("d2l/sync-160mb", variant="a quarter on each GPU")
    assert by_name.time == pytest.approx(0.015)
    assert by_name.name == "a quarter on each GPU"
    assert simperf.run(load_scenario("d2l/sync-160mb"), variant="a quarter on each GPU") == by_name
    with pytest.raises(InputError, match=r"variant: no such variant(.|\n)*'on GPU 0'"):
        simperf.run("d2l/sync-160mb", variant="elsewhere")


PROFILE = """
kind = "profile"
title = "Fitted to one series"
[source]
default = "made up for a test"
[model."frontend"]
points = 3
error = 0.0
scatter = 0.0
constant.launch = { value = 2e-5, unit = "s", low = 1e-5, high = 3e-5, stderr = 1e-6 }
"""


def test_a_profile_is_taken_by_its_path_and_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(PROFILE, "utf-8")
    monkeypatch.chdir(tmp_path)
    first = simperf.run("d2l/copy-overlap", profile="mine.toml")
    assert first.time != simperf.run("d2l/copy-overlap").time
    read = simperf.Catalog.load().profile("mine.toml")
    assert simperf.run(load_scenario("d2l/copy-overlap"), profile=read) == first
    with pytest.raises(InputError, match="was not read from a file"):
        simperf.run("d2l/async", profile=replace(read, file=""))
    with pytest.raises(InputError, match=r"profile: calibration\.use: unknown profile 'nobody'"):
        simperf.run("d2l/async", profile="nobody")


def test_values_of_python_are_read_as_those_of_a_file():
    found = parse_changes({"program.n": np.int64(3), "machine.folder": Path("parts"), "program.ranks": (1, 2)})
    assert [one.value for one in found] == [3, "parts", [1, 2]]
    assert type(found[0].value) is int


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"program.m": 1}, "set: program.m: the program 'async-chain' has no parameter 'm'"),
        ({"program.t1": 5e-6}, "set: program.t1: the unit is missing"),
        ({"program.n": "many"}, "set: program.n: a value of another type is expected"),
        ({"progam.n": 1}, "set: progam: unknown table; did you mean 'program'"),
        ({"program.n": None}, "set: program.n: NoneType is no value"),
        ({"program..n": 1}, r"set: program\.\.n: .* is no key"),
        ({3: 4}, r"set: a key is a text \(read: 3\)"),
        (5, "set: a mapping of keys to values is expected, not int"),
        (["program.n"], "'program.n' does not set anything"),
    ],
)
def test_what_is_no_change_is_told(changes, told):
    with pytest.raises(InputError, match=told):
        simperf.run("d2l/async", set=changes)
    with pytest.raises(InputError, match=told):
        simperf.run(load_scenario("d2l/async"), set=changes)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(InputError) as caught:
        simperf.run("d2l/async", set={"program.m": 1, "program.t1": 3})
    assert len(caught.value.problems) == 2


def test_a_table_that_is_none_is_told_once_and_not_of_each_variant():
    with pytest.raises(InputError) as caught:
        simperf.run("d2l/async", set=["execution=unlimited"])
    assert [(one.file, one.key) for one in caught.value.problems] == [("--set", "execution")]


def test_what_a_run_finds_wrong_is_placed_where_it_was_given(tmp_path):
    with pytest.raises(InputError, match=r"^set: program\.algorithm: unknown all-reduce algorithm 'rng'"):
        simperf.run("d2l/sync-160mb", set={"program.algorithm": "rng"})
    with pytest.raises(InputError, match=r"^--set: program\.algorithm: unknown all-reduce algorithm 'rng'"):
        simperf.run("d2l/sync-160mb", set=["program.algorithm=rng"])
    file = tmp_path / "own.toml"
    file.write_text('[machine]\nuse = "dgx-1v"\n[program]\nuse = "all-reduce"\nalgorithm = "rng"\n')
    with pytest.raises(InputError, match=r"own\.toml:5: program\.algorithm: unknown all-reduce algorithm 'rng'"):
        simperf.run(file, set={"program.nbytes": "1 MB"})


@pytest.mark.parametrize("play", [simperf.run, simperf.compare, simperf.limits, simperf.load_scenario])
def test_what_is_no_scenario_is_told(play):
    with pytest.raises(InputError, match="a scenario is expected, not int"):
        play(3)
    with pytest.raises(InputError, match="did you mean 'd2l/async'"):
        play("d2l/asinc")


def test_a_scenario_of_python_alone_cannot_be_made_again():
    bare = simperf.Scenario(name="bare", program=simperf.PROGRAMS["async-chain"])
    assert change_scenario(bare) is bare
    with pytest.raises(InputError, match="was not made of a file or of plain data"):
        change_scenario(bare, {"program.n": 3})
