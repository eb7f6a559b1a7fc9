"""What cases do not print, and ratios of schedules."""

import json
from dataclasses import replace

import pytest

from simperf.accuracy.large_cases import LargeCase, read_large_cases
from simperf.accuracy.large_grades import LargeGrade
from simperf.accuracy.large_ratios import schedule_ratios
from simperf.accuracy.large_unprinted import completed
from tests.accuracy.test_large_cases import CASE


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
