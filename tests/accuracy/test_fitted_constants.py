"""The list of fitted constants holds what the files have, and every constant that a scenario calls fitted."""

from fnmatch import fnmatchcase
from importlib import import_module
from importlib.resources import files

import pytest

from simperf.accuracy.fitted_constants import constants_behind, fitted_constants, key_of
from simperf.accuracy.nccl_cases import cases_known
from simperf.files import read_toml
from simperf.scenario import load_scenario, shipped_scenarios

CONSTANTS = fitted_constants()
#: how a scenario says that it was given one GPU's speed, which is fitted by rule
ALONE = ("the computing speed of one", "one GPU's speed", "the speed of one GPU")


@pytest.fixture(scope="module")
def variants():
    """Variants of every measured scenario, by its name."""
    names = [name for name in shipped_scenarios() if name.startswith("measured/")]
    loaded = {name: load_scenario(name) for name in names}
    return {name: scenario.variants or (scenario,) for name, scenario in loaded.items()}


def entries(data, name):
    """Tables of a file's lists that have this id or, of stacks, family; an id of measured data may be a pattern."""
    tables = [table for each in data.values() if isinstance(each, list) for table in each]
    return [t for t in tables if name in (t.get("id"), t.get("family")) or fnmatchcase(str(t.get("id", "")), name)]


@pytest.mark.parametrize(
    "one",
    [one for one in CONSTANTS if not one.in_measured_data],
    ids=lambda one: f"{one.file} {one.entry} {one.key}",
)
def test_a_listed_constant_has_that_value_where_it_is_set(one, variants):
    if one.in_scenarios:
        found = [
            key_of(variant.data, one.key)
            for name, each in variants.items()
            for variant in each
            if one.covers(variant.case, name, variant.name)
        ]
        assert one.value in found
    elif ":" in one.file:
        module, _, name = one.file.partition(":")
        found = getattr(import_module(module), name)
        found = key_of(found, one.key) if one.key else found
        assert found if one.value is None else found == one.value
    else:
        assert_listed(one, read_toml(files("simperf").joinpath(one.file)).data)


def assert_listed(one, data):
    """A file has a listed constant, in one of the tables that its entry names."""
    tables = entries(data, one.entry) if one.entry else [data]
    found = [key_of(table, one.key) for table in tables] if one.key else tables
    assert found
    assert all(found) if one.value is None else one.value in found


def test_every_constant_has_a_source_and_its_figures_in_scenarios_are_there(variants):
    for one in CONSTANTS:
        assert one.source, one
        if one.in_scenarios:
            assert any(one.covers(v.case, name, v.name) for name, each in variants.items() for v in each), one
        for pattern in one.variants:
            names = [v.name for name, each in variants.items() for v in each if one.covers(v.case, name, v.name)]
            assert any(fnmatchcase(name, pattern) for name in names), (one.name, pattern)


def test_what_a_scenario_calls_fitted_is_listed(variants):
    for name, each in variants.items():
        text = each[0].fitted
        if text.startswith("nothing"):
            continue
        if text.startswith(ALONE):
            assert all(variant.parameters["alone"] > 0 for variant in each), name
            continue
        listed = [
            constants_behind(variant.case, variant, choice=choice) for variant in each for choice in (False, True)
        ]
        assert any(listed), f"{name}: {text}"


def test_what_a_case_of_collectives_calls_fitted_is_listed():
    fitted = {case for case, setup in cases_known().items() if setup.get("fitted")}
    assert fitted
    assert {case for case in cases_known() if constants_behind(case)} == fitted


def test_overlap_that_is_switched_off_is_a_choice_wherever_a_scenario_has_it(variants):
    switched = [
        variant for each in variants.values() for variant in each if key_of(variant.data, "program.overlap") is False
    ]
    assert len(switched) > 1
    for variant in switched:
        assert "overlap = false" in constants_behind(variant.case, variant, choice=True), variant
        assert constants_behind(variant.case, variant) == ()


def test_a_number_that_was_read_off_one_ratio_leaves_the_others_predicted():
    case, name = "primus-llama2-7b-mi300-1f1b-interleaved-vpp2", "micro-batches of Primus"
    assert constants_behind(case, quantity="throughput ratio") == (name,)
    assert constants_behind(case, quantity="memory ratio") == ()
    assert "Primus' model and batch" in constants_behind(case, quantity="memory ratio", choice=True)
