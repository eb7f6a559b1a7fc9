"""Measured scenarios, each played once for all tests that look at it."""

from functools import cache

from simperf.run import run_variants
from simperf.scenario import load_scenario

#: variants whose figure is shown but not put in order, because it is not the rate of a step (the notes of their files)
UNORDERED = {("measured/lambda-rtx6000ada-tacotron2", "4 GPUs")}


@cache
def attempts(name):
    """Runs of all variants of a shipped scenario."""
    return list(run_variants(load_scenario(name), record=False))
