"""Grades of training steps on one GPU: errors of logarithms, and ratios of two GPUs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from simperf.accuracy.leave_out.measured_steps import measured_steps
from simperf.accuracy.leave_out.step_grades import GROUPS, GradedStep, family_of, grade, ratios, share_of_peak


def _steps() -> list[GradedStep]:
    """BERT on two GPUs, predicted 1.5 and 3 times too fast."""
    steps = [step for start in ("lambda-v100-bert", "lambda-a100-bert") for step in measured_steps([start])]
    steps = [step for step in steps if step.model == "bert-large-384"]
    return [GradedStep(step, step.measured * (1.5 * (index + 1)), 1.0, 1.0) for index, step in enumerate(steps)]


def test_a_prediction_at_twice_and_at_half_the_measured_rate_is_off_by_100_and_by_50_percent() -> None:
    count, middle, p90, bias = grade([math.log(2.0), -math.log(2.0), 0.0])
    assert (count, p90) == (3, pytest.approx(1.0))
    assert middle == pytest.approx(0.5)
    assert bias == 0.0


def test_the_faster_gpu_of_a_pair_is_first_and_a_common_error_cancels() -> None:
    first, second = _steps()
    (one,) = ratios([first, second])
    assert one[0].startswith("a100-sxm4-80gb / v100-sxm2-16gb")
    assert one[1] == pytest.approx(math.log(second.step.measured / first.step.measured))
    assert one[2] - one[1] == pytest.approx(math.log(2.0))
    same = [first, replace(second, predicted=1.5 * second.step.measured)]
    assert ratios(same)[0][1] == pytest.approx(ratios(same)[0][2])


def test_groups_are_the_architecture_the_publication_and_the_family_of_the_model() -> None:
    step = _steps()[0].step
    found = {name: group(step) for name, group in GROUPS.items()}
    assert found == {"gpu": "volta", "source": "lambdal/deeplearning-benchmark", "family": family_of(step)}
    assert family_of(step) == "transformer"


def test_a_step_whose_stack_is_unknown_has_none() -> None:
    (step,) = (one for one in measured_steps(["lambda-a100-bert"], stack=False) if one.model == "bert-large-384")
    assert not step.scenario.parameters["stack"]


def test_the_share_of_the_peak_comes_from_other_architectures_alone() -> None:
    volta, ampere = _steps()
    volta, ampere = replace(volta, flops=2.0, peak=10.0), replace(ampere, flops=2.0, peak=30.0)
    share = volta.step.measured * 2.0 / 10.0
    assert share_of_peak([volta, ampere], ampere) == pytest.approx(share * 30.0 / 2.0)
    assert math.isnan(share_of_peak([ampere, ampere], ampere))


def test_beside_a_prediction_with_its_architecture_the_share_has_other_gpus_of_it() -> None:
    _, ampere = _steps()
    ampere = replace(ampere, flops=2.0, peak=30.0)
    other = replace(ampere, peak=15.0, step=replace(ampere.step, part=replace(ampere.step.part, name="another")))
    assert share_of_peak([ampere, other], ampere, "part") == pytest.approx(2.0 * ampere.step.measured)
    assert math.isnan(share_of_peak([ampere, ampere], ampere, "part"))
