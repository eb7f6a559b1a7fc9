"""Measured scenarios, each played once for all tests that look at it."""

from functools import cache

from simperf.run import run_variants
from simperf.scenario import load_scenario


@cache
def attempts(name):
    """Runs of all variants of a shipped scenario."""
    return list(run_variants(load_scenario(name), record=False))
