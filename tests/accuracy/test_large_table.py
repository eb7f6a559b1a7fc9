"""The stored table of large models stands for the cases that it was made of, and for no others."""

import json
import math
from dataclasses import replace

import pytest

from simperf.accuracy.large_cases import LeftOut, read_large_cases
from simperf.accuracy.large_grades import LargeGrade
from simperf.accuracy.large_table import StoredGrade, large_rows, read_stored, stored_grades, stored_row
from simperf.accuracy.left_out_cases import left_out_cases
from simperf.accuracy.overview import summarize_choices, summarize_families, summarize_questions
from simperf.accuracy.questions import LARGE_MEMORY, LARGE_TIME
from simperf.accuracy.tables import failures_counted, published_tables
from simperf.errors import InputError
from tests.accuracy.test_large_cases import CASE
from tests.truth.large_store import stored_text

#: one layer on one server, so that it is played at once
SMALL = {
    **CASE,
    "hardware": {"gpu": "H100-SXM5-80GB", "n_gpus": 8, "gpus_per_node": 8},
    "model": {**CASE["model"], "layers": 2},
    "parallelism": {**CASE["parallelism"], "tp": 2, "pp": 1, "dp": 4, "global_batch": 8},
}


def folder(path, *cases):
    """A folder of measured data that has one file of large models, of a family that nobody knows."""
    (path / "llm").mkdir()
    (path / "llm" / "mine.json").write_text(json.dumps({"family": "mine", "cases": cases}), "utf-8")
    return path


def stored(case, **changed):
    """A stored row of a case."""
    one = StoredGrade(case.family, case.name, "time", -1, 3.0, 0.5, -0.25, case.digest, "0.1.0 2026-01-01")
    return replace(one, **changed)


def test_a_stored_row_is_read_as_it_was_written(tmp_path):
    (case,), _ = read_large_cases(folder(tmp_path, CASE) / "llm")
    rows = [stored(case), stored(case, predicted=math.nan, error=math.nan, failure='no, "not" this')]
    (tmp_path / "rows.csv").write_text(stored_text(rows), "utf-8")
    assert list(map(repr, read_stored(tmp_path / "rows.csv"))) == list(map(repr, rows))


def test_a_stored_row_has_what_was_measured_and_the_simple_model(tmp_path):
    (case,), _ = read_large_cases(folder(tmp_path, CASE) / "llm")
    (row,), _ = large_rows(tmp_path / "llm", stored=[stored(case)])
    assert (row.low, row.high, row.predicted, row.question) == (2.0, 2.0, 3.0, LARGE_TIME)
    assert row.error == pytest.approx(0.5)
    assert row.error_of(row.simple) == pytest.approx(-0.25)
    assert row.title == "Large models: mine"


def test_a_case_that_the_table_does_not_have_is_played(tmp_path):
    memory = {"metric": "peak_allocated_max_over_ranks", "value": 10, "unit": "GiB"}
    changed = {**SMALL, "id": "two", "measured_memory": memory, "measured": {**SMALL["measured"], "value": 5.0}}
    unknown = {**SMALL, "id": "three", "hardware": {**SMALL["hardware"], "gpu": "TPU-v5p"}}
    (one, two), left = read_large_cases(folder(tmp_path, SMALL, changed, unknown) / "llm")
    # the second was stored when its file had another figure
    rows, told = large_rows(tmp_path / "llm", stored=[stored(one), stored(two, digest="another")])
    assert [(row.case, row.question) for row in rows] == [
        ("one", LARGE_TIME),
        ("two", LARGE_MEMORY),
        ("two", LARGE_TIME),
    ]
    assert rows[0].predicted == 3.0
    assert 0 < rows[2].predicted != 3.0
    assert rows[2].low == pytest.approx(5.0, rel=1e-4)
    assert [one.reasons for one in told] == [one.reasons for one in left]
    assert left_out_cases(tmp_path) == {("mine", left[0].reasons[0]): 1}


def test_a_case_without_a_prediction_is_a_row_that_says_why(tmp_path):
    (case,), _ = read_large_cases(folder(tmp_path, CASE) / "llm")
    one = stored_row(LeftOut(case.family, case.name, ("layout: out of memory",)), case, "now")
    assert (one.quantity, one.failure) == ("time", "layout: out of memory")
    (row,), _ = large_rows(tmp_path / "llm", stored=[one])
    (question,) = summarize_questions([row])
    assert (question.whole.points, question.failed) == (0, 1)
    ((title, reason),) = failures_counted([row])
    assert (title, reason.partition(",")[0]) == ("Large models: mine", "out of memory")


@pytest.mark.parametrize(("verdict", "right"), [(1.0, 1.0), (0.0, 0.0)])
def test_a_verdict_is_one_if_it_is_right(tmp_path, verdict, right):
    (case,), _ = read_large_cases(folder(tmp_path, CASE) / "llm")
    one = stored_row(LargeGrade(case, "fits", -1, 1.0, verdict), case, "now")
    (row,), _ = large_rows(tmp_path / "llm", stored=[one])
    assert (row.predicted, row.low, row.question) == (right, 1.0, "")


def test_a_folder_of_large_models_alone_is_graded(tmp_path):
    sections = published_tables(folder(tmp_path, SMALL))
    assert list(sections) == ["Large models"]
    with pytest.raises(InputError, match=r"no measured data"):
        published_tables(tmp_path / "elsewhere")


def test_families_and_choices_are_told_beside_the_simple_model(tmp_path):
    (case,), _ = read_large_cases(folder(tmp_path, CASE) / "llm")
    primus = replace(stored(case), case="primus-llama2-7b-mi300-zbb", error=0.1, predicted=1.1, simple=math.nan)
    rows = large_rows(stored=[stored(case), primus])[0]
    ((own, simple),) = summarize_families(rows)
    assert (own.name, own.points, own.median) == ("mine", 2, pytest.approx(0.3))
    assert (simple.points, simple.median, simple.nearer) == (1, pytest.approx(0.25), 0.0)
    one = next(line for line in summarize_choices(rows) if line.choice == "Primus' zbb")
    assert (one.points, one.having, one.without) == (1, pytest.approx(0.1), pytest.approx(0.5))


def test_the_package_has_rows_with_their_version():
    rows = stored_grades()
    assert len({row.family for row in rows}) >= 10
    assert all(row.played and row.digest for row in rows)
    assert all(math.isnan(row.error) == bool(row.failure) for row in rows)
