"""Intervals from errors of left-out figures: what they hold of invented families, and what makes them wider."""

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from simperf.analysis.left_out import (
    LeftOutError,
    difficulty_of,
    launch_difficulty,
    read_errors,
    spread,
    spread_of_errors,
)
from simperf.analysis.questions import (
    COLLECTIVES,
    KERNEL_GROUPS,
    KERNELS,
    LARGE,
    ONE_GPU,
    ONE_GPU_GROUPS,
    PLANS,
    SCALING,
    SIZE_CLASSES,
)

QUESTIONS = (ONE_GPU, SCALING, PLANS, COLLECTIVES, KERNELS, LARGE)


def figures(values, *, families=20, difficulty=0.0):
    return [
        LeftOutError("", f"family {index % families}", f"source {index % 5}", "", difficulty, value)
        for index, value in enumerate(values)
    ]


def test_ends_are_the_outer_twentieths_of_errors_that_families_do_not_share():
    found = spread(COLLECTIVES, figures([value / 1000 for value in range(1, 1001)]))
    assert found.low == pytest.approx(0.05, abs=0.005)
    assert found.high == pytest.approx(0.95, abs=0.005)
    assert (found.figures, found.families, found.sources) == (1000, 20, 5)


def test_nothing_is_said_beyond_the_most_difficult_figure_and_the_most_gpus():
    values = [value / 1000 for value in range(1, 101)]
    found = spread(SCALING, [replace(one, gpus=4) for one in figures(values, difficulty=0.5)])
    assert (found.hardest, found.most_gpus) == (0.5, 4)
    assert found.beyond(0.5, gpus=4) == ""
    assert "difficulty is 0.6, and theirs is at most 0.5" in found.beyond(0.6, gpus=4)
    assert "at most 4 GPUs, and it has 8" in found.beyond(0.1, gpus=8)


def test_no_time_is_shorter_than_the_share_of_what_can_be_reached():
    found = spread(KERNELS, figures([value / 1000 for value in range(1, 1001)]))
    low, high = found.factors()
    assert found.factors(used=0.1) == (low, high)
    assert found.factors(used=0.7) == (0.7, high)
    assert found.factors(used=1.3) == (1.0, high)


def test_where_bias_is_not_shared_both_ends_are_as_far_away():
    found = spread(KERNELS, figures([value / 1000 for value in range(1, 1001)]))
    assert found.high == -found.low == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("question", [COLLECTIVES, KERNELS])
@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_nine_of_ten_figures_of_new_families_are_held(question, shared):
    rng = random.Random(7)

    def family(name, count=15):
        common = shared * rng.gauss(0, 0.2)
        return [LeftOutError("", name, "s", "", 0.0, common + rng.gauss(0, 0.2)) for _ in range(count)]

    held = points = 0
    for trial in range(30):
        found = spread(question, [one for index in range(30) for one in family(f"{trial} {index}")])
        new = [one for index in range(30) for one in family(f"new {index}")]
        held += sum(found.low <= one.error <= found.high for one in new)
        points += len(new)
    assert 0.88 <= held / points <= 0.93


def test_families_that_are_alike_within_widen_the_interval():
    rng = random.Random(1)
    each = [rng.gauss(0, 1) for _ in range(40)]
    alone = spread(KERNELS, figures(each, families=40))
    together = spread(KERNELS, figures([each[index % 20] for index in range(40)], families=20))
    assert together.high >= sorted(map(abs, each[:20]))[17] - 1e-12
    assert alone.families == 40
    assert spread(KERNELS, figures([each[index % 8] for index in range(40)], families=8)) is None, "seven of eight"


def test_an_interval_widens_with_difficulty_and_is_narrowest_without_communication():
    found = spread(SCALING, figures([value / 100 for value in range(-50, 150)]))
    ends = [found.factors(share / 10) for share in range(10)]
    assert all(a[0] > b[0] and a[1] < b[1] for a, b in pairwise(ends))
    assert ends[0] == (math.exp(found.low), math.exp(found.high))


def test_errors_that_grow_as_difficulty_does_have_one_spread():
    rng = random.Random(3)
    rows = []
    for index in range(400):
        loss = rng.random()
        rows.append(LeftOutError("", f"f{index % 40}", "s", "", loss, rng.uniform(-0.02, 0.04) * (1 + loss / 0.1)))
    found = spread(SCALING, rows)
    assert (found.low, found.high) == pytest.approx((-0.017, 0.037), abs=0.004)


def test_too_few_figures_or_families_give_no_interval():
    assert spread(KERNELS, figures([0.1] * 19)) is None
    assert spread(KERNELS, figures([0.1] * 40, families=4)) is None


def test_difficulty_is_what_is_lost_against_linear_scaling_and_how_short_a_layer_is():
    assert difficulty_of(SCALING, {"scaling efficiency": 1.0}) == 0
    assert difficulty_of(SCALING, {"scaling efficiency": 1.02}) == 0
    assert difficulty_of(SCALING, {"scaling efficiency": 0.5}) == pytest.approx(math.log(2))
    assert difficulty_of(ONE_GPU, {"scaling efficiency": 0.5}) == 0
    assert difficulty_of(ONE_GPU, {"launch thread busy, max over ranks": 0.25}) == 0.25
    assert difficulty_of(PLANS, {"scaling efficiency": 0.5}) == pytest.approx(math.log(2))
    assert difficulty_of(SCALING, {"scaling efficiency": 0.0}) == math.inf
    assert launch_difficulty(2e-3) == 2 * launch_difficulty(4e-3)


@pytest.mark.parametrize("question", QUESTIONS)
def test_shipped_errors_support_each_question(question):
    groups = {COLLECTIVES: SIZE_CLASSES, KERNELS: KERNEL_GROUPS, ONE_GPU: ONE_GPU_GROUPS}.get(question, ("",))
    assert {one.group for one in read_errors(question)} == set(groups)
    for group in groups:
        found = spread_of_errors(question, group)
        assert found.low < 0 < found.high
        assert all(math.isfinite(one.error) and one.difficulty >= 0 for one in read_errors(question))


def test_a_case_has_no_part_in_its_own_interval():
    case = read_errors(SCALING)[0].family
    own = sum(one.family == case for one in read_errors(SCALING))
    assert spread_of_errors(SCALING, without=case).figures == spread_of_errors(SCALING).figures - own


def test_families_that_are_too_unlike_have_no_interval():
    errors = [
        LeftOutError("", f"family {place}", "", "", 0.0, place + 0.001 * step)
        for place in range(-2, 3)
        for step in range(4)
    ]
    assert spread(SCALING, errors) is None


#: a question, and a published case of it as scenarios name it
CASES = (
    (ONE_GPU, "lambda-a100sxm480gb-fp32"),
    (ONE_GPU, "neusight-e2e-l4"),
    (SCALING, "ddp-dgx1-resnet50"),
    (PLANS, "ddp-dgx1-resnet50"),
    (COLLECTIVES, "nccl-a100x8-allreduce-superbench"),
    (KERNELS, "roof-elementwise-l4"),
    (LARGE, "internevo"),
)


@pytest.mark.parametrize(("question", "case"), CASES)
def test_a_published_case_has_no_part_in_its_own_interval(question, case):
    errors = read_errors(question)
    own = [one for one in errors if one.family.split(" ")[0] == case]
    assert own
    for group in {one.group for one in own}:
        rest = [one for one in errors if one.group == group and one not in own]
        assert spread_of_errors(question, group, without=case) == spread(question, rest)
        assert spread_of_errors(question, group, without=case).figures < spread_of_errors(question, group).figures


def test_a_case_whose_name_begins_as_that_of_another_stays():
    for case in ("roof-elementwise", "roof-elementwise-l", ""):
        for group in KERNEL_GROUPS:
            assert spread_of_errors(KERNELS, group, without=case) == spread_of_errors(KERNELS, group)


def test_where_an_interval_rests_on_one_source_it_says_so():
    steps, passes = (spread_of_errors(ONE_GPU, group) for group in ONE_GPU_GROUPS)
    assert steps.sources > 1
    assert steps.origin.endswith(f"from {steps.sources} sources")
    assert passes.sources == 1
    assert passes.origin.endswith("from one source alone")
