"""Cases of the folder that are not graded: a broken table, and a row without a time."""

import copy

import pytest

from simperf.accuracy.cases import read_cases
from simperf.accuracy.left_out_cases import left_out_cases
from simperf.accuracy.nccl_cases import KINDS, cases_known, series_of
from tests.accuracy.test_left_out_cases import folder


@pytest.mark.truth
def test_a_broken_row_leaves_its_case_out_and_one_without_a_time_is_counted(tmp_path, truth):
    tables = (one for one in read_cases(truth) if one["id"] in cases_known() and one["kind"] in KINDS)
    case = next(one for one in tables if len(one["measured"].get("table", ())) > 3)
    points = sum(len(series.points) for series, _ in series_of(case))
    before = left_out_cases(folder(tmp_path, case), {case["id"]})
    columns, empty = list(case["measured"]["columns"]), copy.deepcopy(case)
    empty["measured"]["table"][-1] = [
        None if "time" in name or "busbw" in name else value
        for name, value in zip(columns, case["measured"]["table"][-1], strict=True)
    ]
    after = left_out_cases(folder(tmp_path, empty), {case["id"]})
    assert sum(after.values()) == sum(before.values()) + 1
    assert sum(len(series.points) for series, _ in series_of(empty)) < points
    short = copy.deepcopy(case)
    short["measured"]["table"][-1] = []
    ((_, reason),) = left_out_cases(folder(tmp_path, short), set())
    assert reason.startswith(f"{case['id']} cannot be read: ")
