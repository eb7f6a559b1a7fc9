"""Files of results, plans and profiles: schema, round trip, and what is said of other formats."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import simperf
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.engine.recorder import CATEGORIES, Sample, Span
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.hardware.profile import FittedConstant, FittedModel
from simperf.results import Metric, ResourceUse, Result
from simperf.study.file_schemas import file_schema
from simperf.study.planning import Plan
from simperf.study.planning.request import TABLES
from simperf.time_use import RankClass, TimeUse

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "formats.md"
RESULT, PLAN, FINISHED, PROFILE = (
    Draft202012Validator(file_schema(kind)) for kind in ("result", "plan", "finished-plan", "profile")
)
REQUEST = {
    "format": 1,
    "plan": {"title": "one", "model": "resnet18", "samples": 1e6, "deadline": "10 h"},
    "candidates": {"instances": ["p3-2xlarge"], "nodes": 1, "batch_per_gpu": [32, 64]},
}


def faults(validator, data):
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)]


def example(name):
    """A block of the page, by the words of its heading."""
    text = PAGE.read_text("utf-8")
    found = re.search(rf"^## {name}\n.*?^```(json|toml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return (json.loads if found[1] == "json" else tomllib.loads)(found[2])


# results


@pytest.mark.parametrize("name", ["d2l/copy-overlap", "d2l/sync-160mb"])
def test_a_result_is_what_its_schema_says_and_comes_back(name, tmp_path):
    result = simperf.run(name)
    data = json.loads(result.to_bytes())
    assert data["format"] == 1
    assert not faults(RESULT, data)
    result.save(tmp_path / "r.json")
    again = Result.load(tmp_path / "r.json")
    assert again == result
    assert again.to_bytes() == result.to_bytes()
    assert again.times == result.times


times = st.floats(0, 1e6, allow_nan=False)
numbers = st.floats(allow_nan=False)
names = st.text(min_size=1, max_size=8)


@st.composite
def results(draw):
    spans = [
        Span(draw(names), draw(names), start, start + draw(times), draw(st.sampled_from(CATEGORIES)))
        for start in draw(st.lists(times, max_size=5))
    ]
    row = TimeUse(draw(st.integers(0, 9)), "dp", ("gpu0", "gpu1"), "communication", draw(times), draw(times))
    return Result(
        draw(names),
        draw(times),
        metrics=draw(st.dictionaries(names, st.builds(Metric, numbers, st.sampled_from(["s", "1"])), max_size=3)),
        resources=draw(st.dictionaries(names, st.builds(ResourceUse, names, numbers, numbers), max_size=3)),
        spans=tuple(spans),
        memory=tuple(Sample("gpu0", "weights", time, 1.0) for time in draw(st.lists(times, max_size=3))),
        ranks=draw(
            st.dictionaries(
                names, st.builds(RankClass, st.tuples(names, names), st.just("dp"), st.integers(0, 9)), max_size=2
            )
        ),
        given_times=() if spans else (row,),
        notes=tuple(draw(st.lists(names, max_size=3))),
    )


@settings(max_examples=60, deadline=None)
@given(results())
def test_any_result_comes_back(result):
    data = json.loads(result.to_bytes())
    assert not faults(RESULT, data)
    again = Result.from_dict(data)
    assert again == result
    assert again.to_bytes() == result.to_bytes()


def test_a_result_from_before_formats_is_read():
    data = json.loads(simperf.run("d2l/async", set={"program.n": 3}).to_bytes())
    older = {key: value for key, value in data.items() if key not in ("format", "times", "memory", "ranks")}
    older["schema"] = 1
    assert Result.from_dict(older).to_bytes() == Result.from_dict(data).to_bytes()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 2}, r"no saved result that this simperf reads: format 2\n    expected: \"format\": 1"),
        ({"format": None}, "the key `format` is missing"),
        ({"time": "60 ms"}, "no saved result: time: input should be a valid number"),
        ({"metrics": {"x": {"value": 1.0}}}, r"no saved result: metrics\.x\.unit: field required"),
        ({"tiem": 1}, "no saved result: tiem: extra inputs are not permitted"),
        ({"spans": [["a", "b", 0.0, 1.0, "comput"]]}, r"no saved result: spans\[0\]\[4\]"),
    ],
)
def test_what_is_wrong_with_a_result_is_told_with_its_key(change, told):
    data = {"format": 1, "name": "one", "time": 1.0} | change
    with pytest.raises(InputError, match=told):
        Result.from_dict({key: value for key, value in data.items() if value is not None}, file="r.json")


def test_the_example_of_a_result_is_one():
    data = example("Result")
    assert not faults(RESULT, data)
    result = Result.from_dict(data)
    assert [(row.dimension, row.activity) for row in result.times] == [("", "compute"), ("dp", "communication")]


# plans


@pytest.fixture(scope="module")
def found():
    return simperf.plan(REQUEST, cache=False)


def test_a_finished_plan_is_what_its_schema_says_and_comes_back(found, tmp_path):
    assert not faults(FINISHED, json.loads(json.dumps(found.to_dict())))
    for name in ("p.json", "p.json.gz"):
        found.save(tmp_path / name)
        again = Plan.load(tmp_path / name)
        assert again.ranked == found.ranked
        assert again.pruned == found.pruned
        assert again.to_dict() == found.to_dict()
        again.save(tmp_path / f"again-{name}")
        assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()
    assert simperf.run(again.scenario(1), record=False).metrics["samples per second"].value == found.winner.rate


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "no finished plan: a table is expected"),
        ({"ranked": []}, "a finished plan from before format 1(.|\n)*run the plan again"),
        ({}, "the key `format` is missing"),
        ({"format": 2}, "no finished plan that this simperf reads: format 2"),
        ({"format": 1, "title": "x"}, "no finished plan: samples: field required"),
    ],
)
def test_what_is_no_finished_plan_is_told(data, told, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(InputError, match=told):
        Plan.load(tmp_path / "p.json")


def test_the_schema_of_plans_has_the_keys_that_are_read():
    tables = file_schema("plan")["properties"]
    assert {name: set(tables[name]["properties"]) for name in TABLES} == {n: set(keys) for n, keys in TABLES.items()}
    assert not faults(PLAN, REQUEST)
    assert faults(PLAN, {**REQUEST, "limts": {}})


def test_a_plan_of_another_format_is_refused_and_one_without_is_read(tmp_path):
    older = {key: value for key, value in REQUEST.items() if key != "format"}
    assert simperf.study.planning.make_request(older).title == "one"
    with pytest.raises(InputError, match=r"format: this simperf reads format 1 of such files \(read: 2\)"):
        simperf.plan({**REQUEST, "format": 2})


def test_the_examples_of_plans_are_plans():
    assert not faults(PLAN, example("Plan"))
    assert simperf.study.planning.make_request(example("Plan")).model.name == "resnet50"


# profiles

constants = st.builds(
    FittedConstant,
    value=st.floats(1e-9, 1e15),
    low=st.floats(1e-9, 1e15),
    high=st.floats(1e-9, 1e15),
    stderr=st.floats(0, 1e15),
    unit=st.sampled_from(["s", "B/s", "1"]),
    draws=st.lists(st.floats(0.5, 2), max_size=3).map(tuple),
    note=st.text(max_size=5),
)
models = st.builds(
    FittedModel,
    title=st.text(max_size=5),
    points=st.integers(1, 99),
    error=st.floats(0, 1),
    scatter=st.floats(0, 1),
    constant=st.dictionaries(st.sampled_from(["overhead", "rate"]), constants, min_size=1),
)


@settings(max_examples=40, deadline=None)
@given(
    found=st.dictionaries(
        st.sampled_from(["kernel.gemm-fp16", "kernel.conv-fp32:conv2d", "frontend"]), models, min_size=1
    )
)
def test_a_profile_that_was_read_is_written_as_it_was(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("profile") / "mine.toml"
    data = Dataset("made up")
    path.write_text(models_text(data, found, points=3), "utf-8")
    assert not faults(PROFILE, tomllib.loads(path.read_text("utf-8")))
    read = Catalog.load().profile(str(path))
    assert set(read.model) == set(found)
    again = models_text(data, read.model, points=3)
    assert again == path.read_text("utf-8")
    path.write_text(again, "utf-8")
    assert Catalog.load().profile(str(path)).model == read.model


def test_profiles_of_another_format_or_family_are_refused(tmp_path):
    text = (Path(simperf.__file__).parent / "hardware/data/profile/unseen-gpus.toml").read_text("utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("format = 1\n", ""), "utf-8")
    older = Catalog.load().profile(str(path))
    path.write_text(text, "utf-8")
    assert Catalog.load().profile(str(path)).model == older.model
    path.write_text(text.replace("format = 1", "format = 3"), "utf-8")
    with pytest.raises(InputError, match=r"mine\.toml:4: format: this simperf reads format 1 .* \(read: 3\)"):
        Catalog.load().profile(str(path))
    path.write_text(text.replace('model."unseen.rows"', 'model."kernel.gem-fp16"'), "utf-8")
    with pytest.raises(InputError, match=r"no kernel family; did you mean 'gemm'"):
        Catalog.load().profile(str(path))


def test_the_example_of_a_profile_is_one(tmp_path):
    assert not faults(PROFILE, example("Profile"))
    text = re.search(r"^## Profile\n.*?^```toml\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)[1]
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    profile = Catalog.load().profile(str(tmp_path / "mine.toml"))
    assert profile.kernels()["gemm-fp16"]["rate"] == 1.02e14
    assert profile.draws == 4
