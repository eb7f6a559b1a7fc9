"""Scenario files: their schema, loading with all problems at once, overrides, and checking results."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.scenario.checking import WordCheck, check_comparison, check_error, check_expectations
    from simperf.scenario.expectation import Expectation
    from simperf.scenario.load import load_scenario, make_scenario
    from simperf.scenario.settings import CostSettings, Scenario
    from simperf.scenario.shipped import copy_scenario, find_scenario, shipped_scenarios
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "checking": ("WordCheck", "check_comparison", "check_error", "check_expectations"),
            "expectation": ("Expectation",),
            "load": ("load_scenario", "make_scenario"),
            "settings": ("CostSettings", "Scenario"),
            "shipped": ("copy_scenario", "find_scenario", "shipped_scenarios"),
        },
    )

__all__ = [
    "CostSettings",
    "Expectation",
    "Scenario",
    "WordCheck",
    "check_comparison",
    "check_error",
    "check_expectations",
    "copy_scenario",
    "find_scenario",
    "load_scenario",
    "make_scenario",
    "shipped_scenarios",
]
