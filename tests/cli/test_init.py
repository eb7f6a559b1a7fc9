"""`simperf init`: files to start from, and the line that names the schema of a file."""

import gzip
import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from simperf.study.file_schemas import file_schema, schema_kinds
from simperf.study.starting_files import STARTS

CALIBRATION = Path(__file__).parents[2] / "calibration"


@pytest.mark.parametrize("kind", STARTS)
def test_a_starting_file_is_valid_commented_and_has_a_schema(simperf, tmp_path, kind):
    code, out, err = simperf("init", kind)
    assert (code, out) == (0, f"{kind}.toml\n")
    assert f"wrote {kind}.schema.json" in err
    lines = (tmp_path / f"{kind}.toml").read_text().splitlines()
    assert lines[0] == f"#:schema {kind}.schema.json"
    assert sum("#" in line for line in lines) > 10
    assert simperf("check", f"{kind}.toml")[0] == 0
    schema = json.loads((tmp_path / f"{kind}.schema.json").read_text())
    assert schema == file_schema(kind)
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads("\n".join(lines)))


def test_what_a_starting_file_offers_as_comments_is_valid_too(simperf, tmp_path):
    """Each commented table, taken in, leaves a valid file."""
    for kind in ("server", "plan"):
        simperf("init", kind)
        path = tmp_path / f"{kind}.toml"
        lines = path.read_text().splitlines()
        first = next(place for place, line in enumerate(lines) if line.startswith("# ["))
        taken = [line[2:] if line.startswith("# ") and ("=" in line or "[" in line) else line for line in lines[first:]]
        path.write_text("\n".join([*lines[:first], *taken]))
        assert "[" in taken[0]
        code, _, err = simperf("check", f"{kind}.toml")
        assert (code, err) == (0, "")


def test_a_starting_scenario_runs_and_compares(simperf):
    simperf("init", "scenario", "first.toml")
    code, out, _ = simperf("run", "first.toml")
    assert code == 0
    assert "samples per second" in out.splitlines()[0]


def test_nothing_is_overwritten(simperf, tmp_path):
    (tmp_path / "mine.toml").write_text("mine")
    code, out, err = simperf("init", "plan", "mine.toml")
    assert (code, out) == (2, "")
    assert "mine.toml: the file exists and is not overwritten" in err
    assert (tmp_path / "mine.toml").read_text() == "mine"
    (tmp_path / "plan.schema.json").write_text("mine")
    assert simperf("init", "plan")[0] == 0
    assert (tmp_path / "plan.schema.json").read_text() == "mine"
    assert simperf("init", "plan", "no/where.toml")[0] == 2
    assert simperf("init", "plan", "plan.txt")[0] == 2
    code, _, err = simperf("init", "plam")
    assert code == 2
    assert "plan" in err
    assert simperf("init")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml", "plan.schema.json", "plan.toml"]


def test_a_copied_scenario_names_its_schema(simperf, tmp_path):
    code, _, err = simperf("scenarios", "copy", "d2l/async")
    assert code == 0
    assert "wrote scenario.schema.json" in err
    lines = (tmp_path / "async.toml").read_text().splitlines()
    assert lines[0] == "#:schema scenario.schema.json"
    assert simperf("check", "async.toml")[0] == 0
    assert "wrote scenario.schema.json" not in simperf("scenarios", "copy", "d2l/sync-160mb")[2]


@pytest.mark.parametrize("kind", schema_kinds())
def test_each_kind_of_file_has_a_schema_that_is_one(kind):
    schema = file_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"simperf {kind.replace('finished-plan', 'finished plan')}"


def test_a_search_of_layouts_has_a_schema():
    """That of the how-to fits; a key that does not exist does not."""
    data = {"layouts": {"model": "llama3-8b", "on": ["dgx-h100"], "gpus": [8, 16], "batch": 64, "tp": 2}}
    check = jsonschema.Draft202012Validator(file_schema("layouts"))
    check.validate({**data, "plan": {"deadline": "3 days"}, "program": {"stack": "megatron-core"}})
    assert not check.is_valid({**data, "layouts": {**data["layouts"], "tensor": 2}})
    assert not check.is_valid({"layouts": {"model": "llama3-8b"}})


def test_files_of_measurements_and_prices_have_schemas():
    check = jsonschema.Draft202012Validator(file_schema("measurements"))
    files = sorted(CALIBRATION.glob("*.json.gz"))
    assert len(files) > 20
    for path in files:
        data = json.loads(gzip.decompress(path.read_bytes()))
        data["measurements"] = data["measurements"][::40]
        check.validate(data)
    point = {"series": "op/gemm", "at": {"m": 8}, "samples": [1e-3]}
    assert check.is_valid({"schema": "simperf-dataset/1", "measurements": [point]})
    assert not check.is_valid({"schema": "simperf-dataset/1", "measurements": [{**point, "sample": 3}]})
    prices = jsonschema.Draft202012Validator(file_schema("prices"))
    prices.validate({"date": "2026-01", "source": "a quote", "price": {"p5-48xlarge": "55 USD/h"}})
    assert not prices.is_valid({"price": {"p5-48xlarge": "55 USD/h"}})
