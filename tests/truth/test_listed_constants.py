"""Every pattern of the list of fitted constants matches a published case, and values in measured data are there."""

import json
from fnmatch import fnmatchcase

import pytest

from simperf.accuracy.fitted_constants import fitted_constants
from simperf.accuracy.nccl_cases import cases_known
from simperf.scenario import load_scenario, shipped_scenarios
from tests.accuracy.test_fitted_constants import assert_listed


@pytest.fixture(scope="module")
def known(truth):
    """Names of scenarios and ids of published cases."""
    names = [name for name in shipped_scenarios() if name.startswith("measured/")]
    loaded = [load_scenario(name) for name in names]
    found = {*names, *cases_known(), *(one.case for each in loaded for one in (each, *each.variants))}
    for path in (truth / "cases.json", *sorted((truth / "llm").glob("*.json"))):
        data = json.loads(path.read_text("utf-8"))
        found |= {case["id"] for case in (data["cases"] if isinstance(data, dict) else data)}
    return found


def test_every_pattern_matches_a_figure(known):
    lost = {
        (one.name, pattern)
        for one in fitted_constants()
        for pattern in one.cases
        if not any(fnmatchcase(name, pattern) for name in known)
    }
    assert lost == set()


def test_values_in_measured_data_are_there(truth):
    listed = [one for one in fitted_constants() if one.in_measured_data]
    assert listed
    for one in listed:
        assert_listed(one, json.loads((truth / one.file).read_text("utf-8")))
