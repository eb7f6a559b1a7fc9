"""The list of fitted constants holds what the files have, and every constant that a scenario calls fitted."""

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


@pytest.mark.parametrize("one", CONSTANTS, ids=lambda one: f"{one.file} {one.key}")
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
        assert getattr(import_module(module), name) == one.value
    else:
        data = read_toml(files("simperf").joinpath(one.file)).data
        assert one.value is None or key_of(data, one.key) == one.value


def test_every_constant_has_a_source_and_its_figures_are_there(variants):
    known = {*variants, *cases_known(), *(one.case for each in variants.values() for one in each)}
    for one in CONSTANTS:
        assert one.source, one
        if one.in_scenarios:
            assert any(one.covers(v.case, name, v.name) for name, each in variants.items() for v in each), one
        assert all("*" in pattern or pattern in known for pattern in one.cases), one


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
        assert constants_behind(variant.case, variant, choice=True) == ("overlap = false",), variant
        assert constants_behind(variant.case, variant) == ()
