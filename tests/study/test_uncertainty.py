"""Predictions with intervals: from the random numbers of a program, and from draws of constants."""

import math
from dataclasses import replace

import pytest

from simperf import load_scenario, make_scenario, predict, run
from simperf.cost import Miss, Unseen
from simperf.errors import InputError
from simperf.results import Result
from simperf.scenario import CostSettings, Scenario
from simperf.study import uncertainty
from simperf.study.compare import compare, differences, variants_of
from simperf.study.uncertainty import drawn

NOISY = {"program": {"use": "async-chain", "n": 20, "t1": "2 us", "t2": "20 us", "jitter": 0.3}}


def test_random_numbers_alone_give_an_interval_around_the_run(tmp_path):
    scenario = make_scenario(NOISY)
    found = predict(scenario, samples=40)
    assert found.time == run(scenario).time
    low, high = found.intervals["time"]
    assert low < sorted(found.draws["time"])[20] < high
    assert found.metrics["operations per second"].low < found.metrics["operations per second"].high
    assert "no [calibration]" in found.notes[-1]
    found.save(tmp_path / "r.json")
    assert Result.load(tmp_path / "r.json") == found


def test_a_profile_of_kernels_by_shape_gives_an_interval_and_says_what_it_has_no_factors_of():
    table = {"use": "operations", "ops": [{"op": "matmul", "m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}]}
    machine, profile = {"use": "dgx-h100"}, "kernels-h100-sxm5-80gb"
    scenario = make_scenario({"machine": machine, "program": table, "calibration": {"use": profile}})
    found = predict(scenario, samples=20)
    low, high = found.intervals["time"]
    assert 0.8 * found.time < low < 0.97 * found.time < 1.03 * found.time < high < 1.25 * found.time
    assert found.notes[-1].startswith("kernels of h100-sxm5-80gb that the profile has no factors of: drawn from")


def test_a_profile_without_draws_is_not_called_absent(monkeypatch):
    monkeypatch.setattr(Scenario, "draws", property(lambda self: 0))
    scenario = load_scenario("d2l/async", profile="cpu-epyc-zen5-2c")
    assert predict(scenario, samples=2, unused="tell").notes[-1].startswith("cpu-epyc-zen5-2c: no draws of constants")


def test_the_same_draws_from_every_engine(own):
    scenario = load_scenario(own, ["program.n=3"])
    assert predict(scenario, samples=4).draws == predict(scenario, samples=4, executor="local:2").draws


def test_draws_of_constants_are_those_of_the_profile(monkeypatch):
    scenario = make_scenario({"program": {"use": "async-chain", "n": 10, "t1": "1 us", "t2": "10 us", "t3": "0 s"}})
    factors = [0.8, 0.9, 1.0, 1.1, 1.2]
    monkeypatch.setattr(Scenario, "draws", property(lambda self: len(factors)))
    monkeypatch.setattr(
        uncertainty, "draw", lambda one, i: replace(one, parameters={**one.parameters, "t2": 10e-6 * factors[i % 5]})
    )
    found = predict(scenario, samples=5)
    assert found.draws["time"] == pytest.approx([1e-6 + 10 * 10e-6 * factor for factor in factors])
    assert drawn(scenario, 3).parameters["t2"] == pytest.approx(11e-6)
    assert not any("no [calibration]" in note for note in found.notes)


def test_too_few_samples():
    with pytest.raises(InputError, match="2 samples"):
        predict(make_scenario(NOISY), samples=1)


def test_variants_of_a_key_are_named_by_their_values():
    made = variants_of(make_scenario(NOISY), {"program.n": [1, 2], "program.t2": ["5 us"]})
    assert [one.name for one in made] == ["n 1, t2 5 us", "n 2, t2 5 us"]
    assert [one.parameters["n"] for one in made] == [1, 2]
    assert {one.seed for one in made} == {0}
    assert differences([one.data for one in made]) == {"program.n": ("1", "2")}


def test_side_by_side_says_what_differs_who_wins_and_why():
    found = compare("d2l/sync-160mb")
    assert list(found.differences) == ["program.algorithm"]
    assert found.winner.name == "a quarter on each GPU"
    header, rows = found.rows()
    assert header[:2] == ["name", "program.algorithm"]
    assert [row[-1] == "best" for row in rows] == [False, False, True]
    assert "4.00x slower; +45.00 ms: communication +45.00 ms (gpu0>hub0 is busiest)" in rows[0][-1]
    assert "<table>" in found._repr_html_()


def test_what_cannot_be_told_apart_is_not(tmp_path):
    scenario = make_scenario({"program": {**NOISY["program"], "n": 50}})
    found = compare(scenario, vary={"program.t2": ["20 us", "20.01 us", "90 us"]}, samples=20)
    texts = [row[-1] for row in found.rows()[1]]
    assert sorted(text.partition(": better in")[0] for text in texts[:2]) == ["tie", "tie: not distinguishable"]
    assert "x slower" in texts[2]
    assert found.winner is None
    assert " ~ " in found.ranking.headline


def test_a_failure_is_a_row():
    found = compare(make_scenario({"program": {"use": "streams", "n": 2}}), vary={"program.demand": [0.5, 2.0]})
    assert [one.error is None for one in found.attempts] == [True, False]
    assert "failed" in found.rows()[1][1]
    with pytest.raises(InputError, match="one scenario"):
        compare("d2l/async", "d2l/sync-160mb", vary={"program.n": [1]})


CATALOGUE = {
    "machine": {"use": "desktop-1gpu"},
    "program": {"use": "operations", "ops": [{"op": "matmul", "m": 4096, "n": 4096, "k": 4096}]},
}


def test_a_gpu_without_a_profile_has_the_interval_of_gpus_that_were_left_out():
    scenario = make_scenario(CATALOGUE)
    found = predict(scenario, samples=20)
    low, high = found.intervals["time"]
    assert low < 0.99 * found.time < found.time < 1.5 * found.time < high
    assert found.time == run(scenario).time
    assert found.draws == predict(scenario, samples=20).draws == predict(replace(scenario, seed=9), samples=20).draws
    (note,) = [one for one in found.notes if "leave-one-architecture-out" in one]
    assert note.startswith(f"kernels of {scenario.machine.nodes['gpu0'].part.name}: ")
    assert not any("leave-one-architecture-out" in one for one in run(scenario).notes)


def test_an_efficiency_that_is_stated_leaves_no_interval_and_the_textbook_has_none():
    for cost in ({"efficiency": {"gemm": 0.8}}, {"corner": "sharp"}):
        found = predict(make_scenario({**CATALOGUE, "cost": cost}), samples=4)
        assert found.intervals["time"] == pytest.approx((found.time, found.time))


def test_two_plans_on_one_gpu_are_held_against_each_other_draw_by_draw():
    ops = CATALOGUE["program"]["ops"]
    rows = [
        predict(make_scenario({**CATALOGUE, "program": {"use": "operations", "ops": ops, "times": n}}), samples=20)
        for n in (100, 101)
    ]
    assert all(one < other for one, other in zip(*(row.draws["time"] for row in rows), strict=True))


def test_constants_that_were_fitted_to_the_gpu_go_before():
    kernels = {"gemm-fp32": {"overhead": 1e-5, "rate": 1e13}}
    own = replace(make_scenario(CATALOGUE), cost=CostSettings(kernels=kernels))
    found = predict(own, samples=4)
    assert found.intervals["time"] == pytest.approx((found.time, found.time))
    assert not any("leave-one-architecture-out" in note for note in found.notes)
    other = predict(replace(own, cost=CostSettings(kernels=kernels, gpu="t4")), samples=4)
    assert other.intervals["time"][0] < other.intervals["time"][1]
    assert any("leave-one-architecture-out" in note for note in other.notes)


TRAINED = {
    "machine": {"use": "p3-16xlarge"},
    "program": {"use": "train", "model": "resnet18", "batch_per_gpu": 32, "gpus": 2, "steps": 2},
}


def only_steps(monkeypatch, longer):
    """Draws in which kernels are what they are, and steps as many times as long."""
    steps = {"fp32": Miss(0.0, 0.0, math.log(longer))}

    def draw(self, index):
        return replace(self, cost=CostSettings(unseen=Unseen(draw=index, misses={}, steps=steps)))

    monkeypatch.setattr(uncertainty, "draw", draw)


def test_a_step_of_a_model_has_what_whole_steps_missed_and_kernels_alone_do_not(monkeypatch):
    assert not any("whole step" in note for note in predict(make_scenario(CATALOGUE), samples=2).notes)
    scenario = make_scenario(TRAINED)
    found = predict(scenario, samples=20)
    assert found.draws == predict(replace(scenario, seed=9), samples=20).draws
    assert found.time == run(scenario).time
    (note,) = [one for one in found.notes if "leave-one-architecture-out" in one]
    assert "101 measured steps of 6 architectures" in note
    told = predict(make_scenario({**TRAINED, "program": {**TRAINED["program"], "alone": "300 1/s"}}), samples=2)
    assert not any("whole step" in one for one in told.notes)
    only_steps(monkeypatch, 2.0)
    kernels = make_scenario(CATALOGUE)
    assert predict(kernels, samples=2).draws["time"] == pytest.approx((run(kernels).time,) * 2)
    assert min(predict(scenario, samples=2).draws["time"]) > 1.5 * found.time


def test_what_a_step_takes_longer_goes_through_the_simulation(monkeypatch):
    """Devices of half the speed, whose gradients travel as fast as before: not the whole time is doubled."""
    half = {**TRAINED, "program": {**TRAINED["program"], "speeds": [0.5, 0.5]}}
    expected = run(make_scenario(half))
    only_steps(monkeypatch, 2.0)
    found = predict(make_scenario(TRAINED), samples=2)
    assert found.draws["time"] == pytest.approx((expected.time, expected.time), rel=1e-9)
    efficiency = found.draws["scaling efficiency"]
    assert efficiency[0] > found.metrics["scaling efficiency"].value
