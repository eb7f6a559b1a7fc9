"""Runs of shipped scenarios, each made once for the tests of its fixture and of its expectations."""

from functools import cache
from typing import NamedTuple

import pytest

from simperf.analysis.ranking import Ranking, rank_results
from simperf.run import run_variants
from simperf.scenario import check_comparison, check_error, check_expectations, load_scenario, shipped_scenarios
from tests.goldens.summary import summarise
from tests.truth.runs import attempts

#: scenarios whose runs take 6 s of processor time and more, beside others of the same mechanisms
LONG = (
    *("training/byteps-compression-25g", "training/uneven-loaders", "large/messages-of-a-pipeline"),
    *(f"measured/lambda-{gpu}-{name}" for gpu in ("a100", "h100", "b200") for name in ("tacotron2", "waveglow")),
    *(f"measured/lambda-rtx6000ada-{name}" for name in ("tacotron2", "waveglow")),
    *("measured/lambda-h100-bert", "measured/lambda-b200-bert", "measured/dle-bert-pretraining-512-v100"),
)


def marked(names):
    """Names as parameters of a test; `LONG` ones are long tests."""
    return [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in names]


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
