"""Paces of stacks: which rows they are fitted to, and how the share follows from two plays."""

import math

import pytest

from simperf.accuracy.fitted_constants import fitted_constants
from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_stacks import stack_of
from simperf.errors import SimperfError
from simperf.hardware import Catalog
from simperf.programs.stack_file import load_stack
from tests.truth.paces import fitted, generation, owner, share_without_bias


def test_the_share_leaves_the_median_without_bias():
    """Times of t = share ** -power; a case whose hosts set its time has no part."""
    powers, shares = {"a": 1.0, "b": 0.9, "c": 0.8, "host": 0.0}, {"a": 0.7, "b": 0.8, "c": 0.9, "host": 0.1}
    alone = {name: -power * math.log(shares[name]) for name, power in powers.items()}
    guessed = {name: alone[name] + power * math.log(0.75) for name, power in powers.items()}
    assert share_without_bias(alone, guessed, 0.75) == pytest.approx(0.8)


@pytest.mark.truth
def test_rows_that_a_pace_is_fitted_to_are_those_of_its_half(truth):
    listed = {name for one in fitted_constants() if one.key == "pace" for name in one.cases}
    found = set()
    for case in read_large_cases(truth / "llm")[0]:
        try:
            stack = load_stack(stack_of(case))
        except SimperfError:
            continue
        paced = stack.pace(case.machine.gpu.architecture, case.machine.gpu.name).share < 1.0
        if paced and fitted(case) and case.time is not None and not case.machine.why_not:
            found.add(case.name)
    assert listed == found


def test_a_pace_is_of_a_stack_and_a_generation_of_gpus():
    catalog = Catalog.load()
    assert generation(catalog.gpu("h100-sxm5-80gb")) == ("hopper", ())
    assert generation(catalog.gpu("gb200")) == ("blackwell", ())
    assert generation(catalog.gpu("gb300")) == ("blackwell", ("b300-sxm-270gb", "gb300"))
    assert owner("torch-fsdp2-compiled-2025", "hopper", ()) == "torch-fsdp2", "the base has a pace there"
    assert owner("torch-fsdp2-compiled", "ampere", ()) == "torch-fsdp2-compiled", "it has none there"
    assert owner("dgxc-25.04", "hopper", ()) == "dgxc-25.04"
