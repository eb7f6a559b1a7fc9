"""Shipped scenarios, each played once for the tests of its fixture and of its expectations."""

from functools import cache
from typing import NamedTuple

from simperf.run import run_variants
from simperf.scenario import check_comparison, check_error, check_expectations, load_scenario, shipped_scenarios
from tests.goldens.summary import summarise
from tests.truth.runs import attempts


class Played(NamedTuple):
    """What a scenario's runs gave: summaries by variant, and the checks of its expectations by variant.

    Timelines are not kept; measured scenarios are played without them.
    """

    summaries: dict
    checks: dict
    recorded: bool


@cache
def played(name):
    """Play all variants of a shipped scenario."""
    scenario = load_scenario(shipped_scenarios()[name])
    recorded = not name.startswith("measured/")
    summaries, checks, results = {}, {}, {}
    for attempt in run_variants(scenario) if recorded else attempts(name):
        summaries[attempt.name] = summarise(attempt)
        if attempt.result is None:
            checks[attempt.name] = check_error(attempt.scenario, attempt.error)
            assert checks[attempt.name], f"{attempt.name}: {attempt.error}"
        else:
            results[attempt.name] = attempt.result
            checks[attempt.name] = check_expectations(attempt.scenario, attempt.result)
    if scenario.variants:
        checks[""] = check_comparison(scenario, results)
    return Played(summaries, checks, recorded)
