"""What cases do not print, features that they name, ratios of schedules, and gains of features."""

import json
from dataclasses import replace

import pytest

from simperf.accuracy.large_cases import LargeCase, read_large_cases
from simperf.accuracy.large_grades import GAIN, LargeGrade
from simperf.accuracy.large_ratios import schedule_ratios
from simperf.accuracy.large_unprinted import completed
from simperf.workload.transformers.flops import step_flops
from tests.accuracy.test_large_cases import CASE
from tests.truth.feature_gains import feature_gains


def case(tmp_path, **how):
    shape = {**CASE, "parallelism": {**CASE["parallelism"], **how}}
    (tmp_path / "mine.json").write_text(json.dumps({"family": "mine", "cases": [shape]}), "utf-8")
    cases, left = read_large_cases(tmp_path)
    assert not left
    return cases[0]


def test_schedules_of_one_job_are_held_against_1f1b(tmp_path):
    one = case(tmp_path)
    assert isinstance(one, LargeCase)
    other = replace(one, name="two", layout=replace(one.layout, schedule="zb-h1"))
    larger = replace(other, name="three", layout=replace(other.layout, batch=2 * other.layout.batch))
    first = replace(one, layout=replace(one.layout, schedule="1f1b"))
    grades = [
        LargeGrade(each, "time", -1, measured, 1.0) for each, measured in ((first, 2.0), (other, 1.6), (larger, 9.0))
    ]
    grades += [LargeGrade(each, "memory", -1, 10.0, size) for each, size in ((first, 5.0), (other, 6.0))]
    found = {(each.case.name, each.quantity): (each.measured, each.predicted) for each in schedule_ratios(grades)}
    assert found == {("two", "throughput ratio"): (1.25, 1.0), ("two", "memory ratio"): (1.0, 1.2)}
    assert not list(schedule_ratios(grades[1:2])), "there is no 1F1B"


def test_what_a_source_says_elsewhere_is_told_with_its_source():
    given = {"id": "primus-llama2-7b-mi300-zbv", "model": {"layers": 32, "hidden": 4096}, "parallelism": None}
    assumed = []
    found = completed("amd_primus", given, assumed)
    assert found["model"] == {"layers": 16, "hidden": 4096, "seq": 4096}
    assert found["parallelism"]["micro_batch_count"] == 32
    assert any(text.startswith("model.layers = 16 (235.7 TFLOP/s") for text in assumed)
    assert given["model"]["layers"] == 32
    assert completed("another", given, []) == {**given, "parallelism": {}}


@pytest.mark.parametrize(("printed", "schedule"), [("zbb", "zb-h1"), ("zbv", "zb-v"), ("v-half", "v-half")])
def test_chunks_are_those_of_interleaved_stages(tmp_path, printed, schedule):
    found = case(tmp_path, schedule=printed, vpp=2).layout
    assert (found.schedule, found.chunks) == (schedule, 1)


def test_gains_of_features_are_differences_of_utilisations(tmp_path):
    """Of windows the arithmetic that is left counts."""
    one = replace(case(tmp_path), feature="baseline")
    window = replace(one.model, window=one.model.sequence // 2, window_layers=one.model.layers)
    cases = [one, replace(one, name="two", feature="+x"), replace(one, name="three", feature="+y", model=window)]
    other = replace(one, name="other", feature="", layout=one.layout)
    peak = one.machine.gpu.peak["bf16"]

    def used(each, time):
        return step_flops(each.model) * each.layout.batch / each.gpus / peak / time

    times = [(2.0, 1.6), (1.8, 1.5), (1.7, 1.5)]
    grades = [LargeGrade(each, "time", -1, *both) for each, both in zip(cases, times, strict=True)]
    found = list(feature_gains([*grades, LargeGrade(other, "time", -1, 9.0, 1.0)]))
    assert [each.case.name for each in found] == ["two", "three"]
    for index, each in enumerate(found):
        gain = [
            used(cases[index + 1], times[index + 1][kind]) - used(cases[index], times[index][kind]) for kind in (0, 1)
        ]
        assert (each.measured, each.predicted) == pytest.approx(tuple(gain))
        assert each.error() == pytest.approx(gain[1] - gain[0])
        assert each.quantity == GAIN
    assert found[1].predicted < 0 < found[0].predicted


def test_features_in_words_change_the_model_and_what_runs_beside_passes(tmp_path):
    found = case(
        tmp_path, features="parallel block, sliding window, TP/PP/DP overlap, LAMB", window=16, product_parts=2
    )
    assert (found.model.parallel_block, found.model.window, found.model.window_layers) == (True, 16, found.model.layers)
    how = found.layout
    assert (how.product_parts, how.messages_overlap, how.overlap, how.weights_overlap) == (2, True, True, True)
    assert "Adam in the place of LAMB" in found.assumed
    plain = case(tmp_path, features="Megatron-LM 285068c8")
    assert (plain.model.parallel_block, plain.model.window) == (False, 0)
    how = plain.layout
    assert (how.product_parts, how.messages_overlap, how.overlap) == (0, False, case(tmp_path).layout.overlap)


@pytest.mark.parametrize(("features", "key"), [("sliding window", "window"), ("TP overlap", "product_parts")])
def test_a_feature_whose_size_is_not_printed_is_left_out_with_its_reason(tmp_path, features, key):
    shape = {**CASE, "parallelism": {**CASE["parallelism"], "features": features}}
    (tmp_path / "mine.json").write_text(json.dumps({"family": "mine", "cases": [shape]}), "utf-8")
    cases, left = read_large_cases(tmp_path)
    assert not cases
    assert left[0].reasons == (f"parallelism.{key} is not printed",)


def test_a_utilisation_whose_arithmetic_is_told_gives_a_time(tmp_path):
    shape = {**CASE, "measured": {"metric": "mfu", "unit": "%", "value": 50.0}}
    told = {**shape, "id": "told", "measured": {**shape["measured"], "flops": "attention in full"}}
    (tmp_path / "mine.json").write_text(json.dumps({"family": "mine", "cases": [shape, told]}), "utf-8")
    (one,), left = read_large_cases(tmp_path)
    peak = one.machine.gpu.peak["bf16"]
    assert one.time == pytest.approx(step_flops(one.model) * one.layout.batch / (one.gpus * peak * 0.5))
    assert [each.reasons for each in left] == [("mfu is no time and no memory of a GPU",)]
