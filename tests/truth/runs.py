"""Measured scenarios, each played once for all tests that look at it."""

from functools import cache

from simperf.run import run_variants
from simperf.scenario import load_scenario

#: variants whose figure is shown but not put in order: it is not the rate of a step (the notes of their files), or it
#: falls at the largest batch that fits, as cuDNN finds less memory for its algorithms then, which is not simulated
UNORDERED = {("measured/lambda-rtx6000ada-tacotron2", "4 GPUs"), ("measured/mxnet-k80", "alexnet, 512")}


@cache
def attempts(name):
    """Runs of all variants of a shipped scenario."""
    return list(run_variants(load_scenario(name), record=False))
