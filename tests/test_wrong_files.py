"""Files and tables of a wrong type or sign: refused by name; and a file that has changed is read again."""

import json
import math

import pytest
import tomli_w

import simperf
from simperf import Transformer
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.json_file import parse_json

STACK = {
    "format": 1,
    "kind": "stack",
    "title": "one's own",
    "strategy": {"kind": "servers", "overlap": False},
    "transport": {"connections": 1},
    "source": {"overlap": "its code", "connections": "its code"},
}
SIZES = {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1000, "sequence": 128}


def _write(path, data):
    path.write_text(tomli_w.dumps(data), "utf-8")
    return str(path)


def test_a_stack_is_read_again_when_its_file_has_changed(tmp_path):
    path = tmp_path / "own.toml"
    assert simperf.load_stack(_write(path, STACK)).transport.connections == 1
    changed = {**STACK, "transport": {"connections": 12}}
    assert simperf.load_stack(_write(path, changed)).transport.connections == 12
    with pytest.raises(InputError, match=r"own.toml:1: format: .* format 1"):
        simperf.load_stack(_write(path, {**STACK, "format": 2}))


@pytest.mark.parametrize("kind", [[], {}, 3, True], ids=repr)
def test_the_strategy_of_a_stack_is_a_name(tmp_path, kind):
    with pytest.raises(InputError, match=r"strategy\.kind: no such strategy"):
        simperf.load_stack(_write(tmp_path / "own.toml", {**STACK, "strategy": {"kind": kind}}))


@pytest.mark.parametrize("key", ["tied", "bias", "qkv_bias", "qk_norm", "dropout"])
@pytest.mark.parametrize("value", ["no", 0, 1, None, []], ids=repr)
def test_yes_and_no_of_a_transformer_are_no_other_values(key, value):
    with pytest.raises(InputError, match=f"{key}: yes or no is expected"):
        Transformer(**SIZES, **{key: value})


def test_a_transformer_has_a_name():
    with pytest.raises(InputError, match="name: a text is expected"):
        Transformer(**SIZES, name=3)


def test_the_format_of_a_strategy_is_a_number():
    data = {"program": {"use": "train"}, "strategy": {"kind": "ddp", "format": True}}
    with pytest.raises(InputError, match=r"strategy\.format: this simperf reads format 1"):
        simperf.make_scenario(data)


@pytest.mark.parametrize("value", [-1.0, 0.0, math.nan])
def test_a_rate_of_a_profile_is_above_0(tmp_path, value):
    constant = {"value": value, "low": 1.0, "high": 2.0, "stderr": 0.1, "unit": "FLOP/s"}
    model = {"points": 4, "error": 0.1, "scatter": 0.1, "constant": {"rate": constant}}
    profile = {"kind": "profile", "title": "own", "model": {"kernel.gemm-fp16": model}, "source": {"default": "own"}}
    with pytest.raises(InputError, match=r"constant\.rate.*: .*(a number above 0 is meant|finite number)"):
        Catalog.load().profile(_write(tmp_path / "own.toml", profile))


def test_a_time_of_a_profile_is_not_negative_but_a_power_may_be(tmp_path):
    constant = {"value": -1.0, "low": -2.0, "high": 2.0, "stderr": 0.1, "unit": "1"}
    model = {"points": 4, "error": 0.1, "scatter": 0.1, "constant": {"power": constant}}
    profile = {"kind": "profile", "title": "own", "model": {"link.own": model}, "source": {"default": "own"}}
    Catalog.load().profile(_write(tmp_path / "power.toml", profile))
    constant["unit"] = "s"
    with pytest.raises(InputError, match="a number of 0 or more is meant"):
        Catalog.load().profile(_write(tmp_path / "time.toml", profile))


@pytest.mark.parametrize("value", [None, 3, "x", []], ids=repr)
def test_a_finished_plan_says_what_was_asked_for(tmp_path, value):
    request = {
        "plan": {"model": "resnet18", "samples": 1e6, "deadline": "10 h"},
        "candidates": {"instances": ["p3-2xlarge"], "nodes": 1, "batch_per_gpu": 32},
    }
    plan = simperf.plan(request, cache=False)
    plan.save(tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    data["request"]["plan"] = value
    (tmp_path / "plan.json").write_text(json.dumps(data), "utf-8")
    with pytest.raises(InputError, match="plan"):
        type(plan).load(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('{"a": 1, "a": 2}', 1, "a"),
        ('{"a": [1, {"b": 1,\n"b\\u0061": 3, "c": {"b": 2},\n"b": 4}]}', 3, "a[1].b"),
        ('{"text": "\\"a\\": 1, {", "x": {"d": []},\n"x": 2}', 2, "x"),
        ('[[0, "a"], [{}, {"a": "a", "\\u0061": 1}]]', 1, "[1][1].a"),
    ],
)
def test_a_key_of_json_that_stands_twice_is_refused_with_its_place(text, line, key):
    with pytest.raises(InputError) as caught:
        parse_json(text, "f.json")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.key) == ("f.json", line, key)
    assert "twice" in problem.message


def test_the_same_key_in_two_tables_is_fine():
    assert parse_json('{"a": {"a": 1}, "b": [{"a": 1}, {"a": "a"}]}', "f.json").data["b"][1] == {"a": "a"}
