"""Intervals of a run: by the question that it answers, of which numbers, and why there are none."""

import math

import pytest

from simperf.analysis.chance import distinguishable
from simperf.analysis.intervals import FIGURES, intervals_by, intervals_of
from simperf.analysis.left_out import spread_of_errors
from simperf.analysis.questions import COLLECTIVES, KERNELS, LARGE, ONE_GPU, PLANS, SCALING, RunQuestion, asked_by
from simperf.analysis.ranking import rank_results
from simperf.report.phrases import interval_words
from simperf.results import Metric, Result
from simperf.run import run
from simperf.scenario import make_scenario

TRAIN = {
    "machine": {"use": "p3-16xlarge"},
    "program": {"use": "train", "model": "resnet18", "batch_per_gpu": 32, "gpus": 2, "steps": 2},
}


@pytest.mark.parametrize(
    ("program", "given", "gpus", "question"),
    [
        ("train", {"model": "resnet50"}, 1, ONE_GPU),
        ("training-step", {"model": "resnet50"}, 1, ONE_GPU),
        ("train", {"model": "resnet50", "gpus": 1}, 8, ONE_GPU),
        ("train", {"model": "resnet50"}, 8, PLANS),
        ("train", {"alone": 100.0}, 8, SCALING),
        ("parameter-server", {"alone": 100.0}, 1, SCALING),
        ("train", {"model": object(), "strategy": "model-parallel"}, 8, LARGE),
        ("all-reduce", {"nbytes": 1e6}, 8, COLLECTIVES),
        ("all-reduce", {"nbytes": 1e6, "gpus": 1}, 8, ""),
        ("all-reduce", {"nbytes": 1e6}, 1, ""),
        ("operations", {}, 1, KERNELS),
        ("operations", {"ops": [{"op": "matmul"}, {"op": "linear"}]}, 1, KERNELS),
        ("operations", {"ops": [{"op": "cos"}, {"op": "add"}]}, 1, KERNELS),
        ("operations", {"ops": [{"op": "matmul"}, {"op": "cos"}]}, 1, ""),
        ("train", {"alone": 100.0, "gpus": 1}, 8, ""),
        ("train", {}, 8, ""),
        ("train", {"model": "resnet50", "failures": {"node_mtbf": 1.0}}, 8, ""),
        ("all-reduce", {"nbytes": 1e6, "algorithm": "ring"}, 8, ""),
        ("all-reduce", {"nbytes": 1e6, "background": 1e9}, 8, ""),
        ("disk-reads", {}, 0, ""),
    ],
)
def test_a_run_answers_one_question_or_says_why_it_answers_none(program, given, gpus, question):
    found = asked_by(program, given, gpus=gpus)
    assert found.question == question
    assert bool(found.question) != bool(found.why_not)
    assert not asked_by(program, given, gpus=gpus, changed="a profile").question


def test_a_time_and_a_rate_are_missed_by_the_same_factor():
    numbers = {"time per step": (0.5, "s"), "samples per second": (64.0, "1/s")}
    ends = intervals_of("train", {"alone": 40.0}, numbers, gpus=2).ends
    low, high = spread_of_errors(SCALING).factors()  # without an efficiency nothing bounds them
    assert ends["time per step"] == pytest.approx((0.5 * low, 0.5 * high))
    assert ends["samples per second"] == pytest.approx((64 / high, 64 / low))


@pytest.mark.parametrize("share", [0.6, 0.9, 0.99, 1.0, 1.02])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"alone": 40.0}, "scaling efficiency"),
        ({"model": object(), "strategy": "model-parallel"}, "model FLOP utilisation"),
        ({"model": object(), "strategy": "model-parallel"}, "hardware FLOP utilisation"),
    ],
)
def test_no_efficiency_and_no_utilisation_reaches_above_one(given, name, share):
    numbers = {"time per step": (2.0, "s"), "samples per second": (64.0, "1/s"), name: (share, "1")}
    ends = intervals_of("train", given, numbers, gpus=8).ends
    assert ends[name][0] < share <= ends[name][1] <= max(1.0, share)
    # time and rates end where the share does: all three are one speed
    assert ends["samples per second"][1] / 64 == pytest.approx(ends[name][1] / share)
    assert 2 / ends["time per step"][0] == pytest.approx(ends[name][1] / share)


def test_what_hardly_communicates_has_a_narrow_interval_and_what_is_dominated_by_it_a_wide_one():
    def width(efficiency):
        numbers = {"time per step": (1.0, "s"), "scaling efficiency": (efficiency, "1")}
        low, high = intervals_of("train", {"alone": 40.0}, numbers, gpus=8).ends["time per step"]
        return math.log(high / low)

    widths = [width(share) for share in (1.0, 0.9, 0.7, 0.55)]
    assert widths == sorted(widths)
    assert widths[-1] > 5 * widths[0]


@pytest.mark.parametrize(
    ("efficiency", "gpus", "told"),
    [
        (0.3, 8, "no published run of this kind is as hard to predict: the logarithm of what is lost"),
        (0.9, 4096, "and it has 4,096"),
        (0.9, 8, ""),
    ],
)
def test_beyond_the_hardest_figure_and_the_most_gpus_there_is_no_interval(efficiency, gpus, told):
    numbers = {"time per step": (1.0, "s"), "scaling efficiency": (efficiency, "1")}
    for given in ({"alone": 40.0}, {"model": "resnet50"}):
        found = intervals_of("train", given, numbers, gpus=gpus)
        assert bool(found.ends) is not bool(told)
        assert told in found.why_not


def test_a_run_tells_its_interval_and_the_same_seed_gives_the_same_bytes():
    one, again = (run(make_scenario(TRAIN)) for _ in range(2))
    low, high = one.intervals["samples per second"]
    rate = one.metrics["samples per second"]
    assert (rate.low, rate.high) == (low, high)
    assert low < rate.value < high
    assert FIGURES in one.interval_sources
    assert not one.no_interval
    assert one.to_bytes() == again.to_bytes()
    assert Result.from_dict(one.to_dict()) == one
    assert "memory: weights" not in one.intervals


def test_a_run_without_figures_says_why_it_has_no_interval():
    found = run("d2l/async")
    assert not found.intervals
    assert interval_words(found) == f"No 90 % interval: {found.no_interval}"
    sharp = run(make_scenario({**TRAIN, "cost": {"corner": "sharp"}}))
    assert not sharp.intervals
    assert "textbooks" in sharp.no_interval


def test_ends_are_told_in_three_digits():
    assert str(Metric(1.23456, "s", low=1.11111, high=2.22222)) == "1.235 s [1.11 s .. 2.22 s]"


def test_what_figures_are_missed_by_makes_no_tie_of_two_runs():
    results = [
        Result(name, time, intervals={"time": (0.5, 2.0)}, interval_sources={FIGURES: "errors"})
        for name, time in (("a", 1.0), ("b", 1.1))
    ]
    assert rank_results(results).best == (0,)
    assert distinguishable(*results) is None


def test_a_utilisation_bounds_products_of_16_bits_alone():
    model = "model FLOP utilisation"
    told = {"time per step": (1.0, "s"), model: (1.1, "1")}
    asked = RunQuestion(LARGE, metrics=("time per step", model))
    assert intervals_by(asked, told).ends["time per step"][0] == 1.0
    assert intervals_by(asked, told, bounded=False).ends["time per step"][0] < 0.95
