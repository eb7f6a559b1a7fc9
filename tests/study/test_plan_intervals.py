"""Intervals of a plan: what they are made of, which candidates they put together, and when there are none."""

from dataclasses import replace

import pytest

from simperf.report.plans import format_candidate, format_plan
from simperf.study.planning import TrainingPlan, make_request, plan
from simperf.study.planning.lifetime import Lifetime
from simperf.study.planning.ranked import ranked
from simperf.study.planning.spread import FAILURES, candidate_spread

STEPS = {"samples per second": 100.0, "scaling efficiency": 0.9}
STEADY = Lifetime(1000.0, 1000.0, 1000.0)
FAILING = Lifetime(1000.0, 900.0, 1200.0)


def asked(**more):
    candidates = {"instances": ["p3-8xlarge", "p3-16xlarge"], "nodes": 1, "batch_per_gpu": 32}
    head = {"model": "resnet18", "samples": 1_281_167, "epochs": 1, "deadline": "10 h"}
    return make_request({"plan": head, "candidates": candidates, **more})


def test_failures_alone_give_no_interval():
    found = candidate_spread(STEPS, FAILING, gpus=8, calibrated=True, histories=40)
    assert (found.time, found.apart, found.sources) == (None, None, {})
    assert "a profile's constants" in found.why_not


def test_failures_widen_the_interval_of_figures_and_are_named():
    steady = candidate_spread(STEPS, STEADY, gpus=8)
    failing = candidate_spread(STEPS, FAILING, gpus=8, histories=40)
    assert failing.time == pytest.approx((0.9 * steady.time[0], 1.2 * steady.time[1]))
    assert set(failing.sources) - set(steady.sources) == {FAILURES}


def test_draws_of_a_profile_are_an_interval_by_themselves_and_widen_that_of_figures():
    own = candidate_spread(STEPS, STEADY, gpus=8, calibrated=True, drawn=(80.0, 125.0))
    assert own.time == pytest.approx((800.0, 1250.0))
    figures = candidate_spread(STEPS, STEADY, gpus=8)
    both = candidate_spread(STEPS, STEADY, gpus=8, drawn=(99.0, 101.0))
    assert both.time == pytest.approx(figures.time)
    assert candidate_spread(STEPS, STEADY, gpus=8, drawn=(1.0, 1000.0)).time == pytest.approx((100.0, 100_000.0))


def test_what_candidates_of_one_gpu_share_is_not_in_the_interval_that_tells_them_apart():
    found = candidate_spread(STEPS, STEADY, gpus=8)
    assert found.time[0] < found.apart[0] < 1000.0 < found.apart[1] < found.time[1]
    easy = candidate_spread({**STEPS, "scaling efficiency": 1.0}, STEADY, gpus=8)
    assert found.apart[0] < easy.apart[0] < easy.apart[1] < found.apart[1]
    assert candidate_spread(STEPS, STEADY, gpus=1).time is not None


def test_a_plan_groups_what_cannot_be_told_apart_and_says_what_intervals_are_made_of():
    found = plan(asked())
    half, whole = found.ranked
    assert {half.choice.instance, whole.choice.instance} == {"p3-8xlarge", "p3-16xlarge"}
    assert half.group == 1
    assert whole.group == 2  # twice the GPUs of one kind: what both are missed by is no reason to doubt
    text = format_plan(found)
    assert "90 % intervals from published figures: errors of" in text
    assert "failures" not in text.partition("90 % intervals")[2].partition("Prices")[0]
    assert "(90 %)" in format_candidate(found, 1, "")
    alike = replace(whole, choice=half.choice, time=half.time, cost=half.cost, spread=half.spread)
    made = ranked(found.request, [half, replace(alike, time=1.01 * half.time)])
    assert [one.group for one in made] == [1, 1]
    assert "not distinguishable from 1" in made[1].reason


def test_a_plan_is_saved_and_read_with_its_intervals(tmp_path):
    found = plan(asked(failures={"node_mtbf": "2000 h", "checkpoint": "500 MB/s", "restart": "5 min"}))
    assert all(FAILURES in one.spread.sources for one in found.ranked)
    found.save(tmp_path / "plan.json")
    again = TrainingPlan.load(tmp_path / "plan.json")
    assert again.ranked == found.ranked
