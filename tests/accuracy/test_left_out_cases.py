"""Every case of a folder is graded or listed with its reason, broken ones and unknown kinds too."""

import json

import pytest

from simperf.accuracy.left_out_cases import left_out_cases, sound_cases

CASE = {
    "id": "one",
    "kind": "scaling",
    "hardware": {"gpu": "T4"},
    "workload": {"op": "add"},
    "measured": {"value": 1.0, "unit": "s"},
}
TABLE = {"columns": ["op", "B", "H", "latency_ms"], "table": [["add", 16, 16, 0.1]]}


def folder(tmp_path, *cases):
    (tmp_path / "cases.json").write_text(json.dumps(list(cases)))
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "no scenario that is graded stands for it"),
        ({"kind": "weather"}, "its kind is not known: one of allgather,"),
        ({"id": ""}, "a case has no id"),
        ({"measured": None}, "one has no measured"),
        ({"source": "a page"}, "one cannot be read: source is no object"),
        ({"kind": "allreduce"}, "no machine is set up for it"),
        ({"kind": "roofline"}, "the columns of its table are not known"),
        ({"kind": "roofline", "hardware": {"gpu": "T5"}, "measured": TABLE}, "the catalogue has no T5"),
        ({"kind": "roofline", "hardware": {"gpus": 1}, "measured": TABLE}, "one has no gpu"),
        ({"kind": "roofline", "measured": {**TABLE, "table": [["add", 16]]}}, "one cannot be read: "),
        *(
            ({"kind": "roofline", "measured": {**TABLE, "table": [["add", 16, 16, time]]}}, told)
            for time, told in (
                (-1.0, "one cannot be read: measured.table: row 1 of its table (read: -1.0) expected: a finite number"),
                (0, "one cannot be read: measured.table: row 1 of its table (read: 0)"),
                (float("nan"), "one cannot be read: measured.table: row 1 of its table (read: nan)"),
                (None, "one cannot be read: measured.table: row 1 of its table (read: None)"),
                ("soon", "one cannot be read: its table has words, or nothing, where numbers are expected"),
            )
        ),
    ],
)
def test_a_case_that_is_not_graded_is_listed_with_its_reason(tmp_path, changed, told):
    ((_, reason), count) = next(iter(left_out_cases(folder(tmp_path, {**CASE, **changed})).items()))
    assert reason.startswith(told)
    assert count == 1


def test_a_graded_case_is_not_listed_and_a_second_of_its_name_is(tmp_path):
    there = folder(tmp_path, CASE, CASE)
    assert left_out_cases(there, {"one"}) == {("scaling", "another case is called one"): 1}
    assert sound_cases(there)[0] == [CASE]


def test_a_table_of_all_reduce_that_is_not_read_is_listed(tmp_path):
    (tmp_path / "nccl").mkdir()
    (tmp_path / "nccl" / "mine.csv").write_text("size_B,time_us\n8,1\n")
    assert list(left_out_cases(tmp_path)) == [
        ("nccl/mine.csv", "no server and number of ranks are set up for this table")
    ]
