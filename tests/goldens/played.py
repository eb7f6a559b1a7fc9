"""Shipped scenarios, each played once for the tests of its fixture and of its expectations."""

from functools import cache
from typing import NamedTuple

from simperf.analysis.ranking import Ranking, rank_results
from simperf.run import run_variants
from simperf.scenario import check_comparison, check_error, check_expectations, load_scenario, shipped_scenarios
from tests.goldens.summary import summarise
from tests.truth.runs import attempts


class Played(NamedTuple):
    """What a scenario's runs gave: summaries and checks of expectations by variant, and the ranking of all variants.

    Timelines are not kept; measured scenarios and large ones are played without them.
    """

    summaries: dict
    checks: dict
    ranking: Ranking
    recorded: bool


@cache
def played(name):
    """Play all variants of a shipped scenario."""
    scenario = load_scenario(shipped_scenarios()[name])
    recorded = not name.startswith(("measured/", "large/"))
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
    return Played(summaries, checks, rank_results(list(results.values())), recorded)
