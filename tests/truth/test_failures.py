"""The failures that the scenario of the 54-day run quotes are those that were counted."""

import pytest

from simperf.scenario import load_scenario, shipped_scenarios


@pytest.mark.truth
def test_the_counts_are_those_of_the_published_table(cases):
    scenario = load_scenario(shipped_scenarios()["training/fail-llama3"])
    case = cases[scenario.case]
    counted, given = case["measured"]["value"], dict(scenario.variants[0].parameters["counts"])
    assert given.pop("planned") == counted["planned"]
    assert given == counted["by_cause"]
    assert sum(given.values()) == counted["unexpected"]
    assert scenario.variants[0].parameters["nodes"] == case["hardware"]["n_nodes"]


@pytest.mark.truth
def test_the_checkpoints_lie_in_the_published_range(cases):
    value = cases["fail-llama3-checkpoint"]["measured"]["value"]
    scenario = load_scenario(shipped_scenarios()["training/fail-llama3"])
    gpus = cases[scenario.case]["hardware"]["n_gpus"]
    for variant in scenario.variants:
        assert value["storage_TBps_sustained"] * 1e12 == variant.parameters["storage"]
        assert 1e6 <= variant.parameters["size"] / gpus <= 4e9
