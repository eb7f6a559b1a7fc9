"""The schemas accept every file that ships, and refuse what the loader refuses."""

import copy
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import simperf.hardware
from simperf.errors import UnknownNameError
from simperf.hardware import KINDS
from simperf.scenario import shipped_scenarios
from simperf.scenario.json_schema import json_schema

DATA = Path(simperf.hardware.__file__).parent / "data"
SCENARIO = Draft202012Validator(json_schema("scenario"))


def read(path):
    return tomllib.loads(Path(path).read_text("utf-8"))


@pytest.mark.parametrize("kind", ["scenario", *KINDS])
def test_it_is_a_schema(kind):
    Draft202012Validator.check_schema(json_schema(kind))


@pytest.mark.parametrize("name", shipped_scenarios())
def test_every_shipped_scenario_is_valid(name):
    assert not [error.message for error in SCENARIO.iter_errors(read(shipped_scenarios()[name]))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_is_valid(kind):
    validator = Draft202012Validator(json_schema(kind))
    for path in sorted((DATA / kind).glob("*.toml")):
        assert not [error.message for error in validator.iter_errors(read(path))], path.name


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("progam",), {}),
        (("scenario", "titel"), "x"),
        (("scenario", "title"), 5),
        (("machine", "use"), 5),
        (("execution", "mode"), "egaer"),
        (("cost", "corner"), "sharpe"),
        (("program", "use"), "nothing"),
        (("program", "nbytes"), "160 Mb"),
        (("program", "nbytes"), "160 ms"),
        (("program", "nbytes"), 160),
        (("program", "times"), "1"),
        (("program", "n"), 1),
        (("run", "seed"), -1),
        (("frontend", "launch"), "5 MB"),
        (("frontend", "depth"), 0.5),
        (("expect", "tme"), "1 s"),
        (("expect", "time"), {"valu": "1 s"}),
        (("expect", "time"), {"value": "1 s", "kind": "closed"}),
        (("expect", "kind"), "pin"),
        (("measured", "kind"), "published"),
        (("compare", 0, "nam"), "x"),
    ],
)
def test_what_is_wrong_is_refused(path, value):
    data = copy.deepcopy(read(shipped_scenarios()["d2l/sync-160mb"]))
    assert SCENARIO.is_valid(data)
    here = data
    for step in path[:-1]:
        here = here.setdefault(step, {}) if isinstance(here, dict) else here[step]
    here[path[-1]] = value
    assert not SCENARIO.is_valid(data)


def test_a_program_of_ones_own_is_accepted():
    assert SCENARIO.is_valid({"program": {"python": "mine.py:steps", "anything": 5}})
    assert not SCENARIO.is_valid({"program": {"python": "mine.py"}})
    assert not SCENARIO.is_valid({})


def test_no_such_kind():
    with pytest.raises(UnknownNameError, match="did you mean 'gpu'"):
        json_schema("gpus")
