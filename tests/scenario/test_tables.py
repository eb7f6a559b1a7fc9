"""`simperf.scenario.tables` and `schema`: one table at a time."""

from dataclasses import replace

import pytest

from simperf.files import TomlFile
from simperf.hardware import Catalog
from simperf.scenario.calibration import cost_settings
from simperf.scenario.schema import CostTable, RunTable, VariantTable, read_table
from simperf.scenario.settings import CostSettings, Scenario
from simperf.scenario.tables import TableReader

TOML = TomlFile("f", {}, "")


@pytest.fixture
def reader(tmp_path):
    return TableReader(tmp_path)


def words(problems):
    return " | ".join(str(problem) for problem in problems)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({}, "the machine is empty"),
        ({"use": 5}, "a name is expected"),
        ({"use": "dgx-1v", "node": []}, "not both"),
        ({"use": "dgx-1v", "fodler": "x"}, "did you mean 'folder'"),
        ({"node": 5}, "node"),
        ({"server": "dgx-1v", "fabric": {"type": "star"}}, "a fabric has a link"),
    ],
)
def test_machines_that_are_refused(reader, table, word):
    problems = []
    assert reader.machine(dict(table), Catalog.load(), TOML, problems) is None
    assert word in words(problems)


def test_a_folder_is_a_text_and_is_there(reader):
    for folder, word in ((5, "the path of a folder is expected"), ("nowhere", "no such folder")):
        problems = []
        assert "dgx-1v" in reader.catalog({"folder": folder}, TOML, problems).names("server")
        assert word in words(problems)


def test_a_catalog_and_a_program_are_read_once(reader, tmp_path):
    assert reader.catalog({}, TOML, []) is reader.catalog({}, TOML, [])
    (tmp_path / "mine.py").write_text("def work(m):\n    yield None\n")
    table = {"python": "mine.py:work"}
    assert reader.program(table, TOML, [])[0] is reader.program(table, TOML, [])[0]


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"use": "pytorhc"}, "did you mean 'pytorch'"),
        ({"lanch": "1 us"}, "did you mean 'launch'"),
        ({"kind": "frontend"}, "unknown key"),
        ({"launch": "-1 us"}, "cannot be negative"),
        ({"scripted": 2}, "between 0 and 1"),
        ({"depth": 0}, '"unlimited" is expected'),
    ],
)
def test_frontends_that_are_refused(reader, table, word):
    problems = []
    assert reader.frontend(dict(table), Catalog.load(), TOML, problems) is None or problems
    assert word in words(problems)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (None, "the table is missing"),
        ({}, "no program is named"),
        ({"use": "sends", "python": "a.py:b"}, "use and python are both there"),
        ({"use": ["sends"]}, "a text in quotes"),
        ({"use": "snds"}, "did you mean 'sends'"),
        ({"python": "a.py"}, "names no function"),
    ],
)
def test_programs_that_are_refused(reader, table, word):
    problems = []
    assert reader.program(table, TOML, problems) == (None, {})
    assert word in words(problems)


@pytest.mark.parametrize(
    ("model", "data", "word"),
    [
        (RunTable, {"seed": 2**63}, "less than 9223372036854775808"),
        (RunTable, {"seed": True}, "a whole number"),
        (RunTable, {"sed": 1}, "did you mean 'seed'"),
        (CostTable, {"efficiency": {"gem": 0.5}}, "did you mean 'gemm'"),
        (CostTable, {"efficiency": 0.5}, "a table in { }"),
        (VariantTable, {"name": ""}, "at least 1 character"),
        (VariantTable, {"name": "a", "set": []}, "a table in { }"),
        (VariantTable, 5, "a table"),
    ],
)
def test_tables_that_are_refused(model, data, word):
    problems = []
    assert read_table(model, data, TOML, ("t",), problems) is None
    assert word in words(problems)


def test_a_scenario_has_defaults(reader):
    program, parameters = reader.program({"use": "async-chain"}, TOML, [])
    scenario = Scenario(name="x", program=program, parameters=parameters)
    assert (scenario.mode, scenario.cost, scenario.expectations) == ("eager", CostSettings(), ())


def test_constants_of_two_gpus_are_not_mixed():
    every = Catalog.load().profile("cpu-epyc-zen5-2c")
    first, second, third = (
        replace(every, gpu=gpu, model={name: every.model[name]})
        for gpu, name in (("t4", "kernel.gemm-fp32"), ("k80", "kernel.elementwise-fp32"), ("k80", "kernel.copy-fp32"))
    )
    found = cost_settings(CostTable(), [first, second, third], 0)
    assert (found.gpu, set(found.kernels)) == ("k80", {"elementwise-fp32", "copy-fp32"})
    assert cost_settings(CostTable(), [first], 0).gpu == "t4"
