"""Rows of the stored table of large models, played again."""

import random

import pytest

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_grades import GAIN
from simperf.accuracy.large_jobs import case_time
from simperf.accuracy.large_table import large_rows, stored_grades
from tests.truth.large_store import limited
from tests.truth.ratchet import MARGIN

#: families whose cases take a second each
QUICK = ("internevo", "llm_foundry_mpt", "simumax_b200", "torchtitan", "vtrain_a100")


def test_every_case_that_can_be_expressed_is_in_the_table(truth):
    cases, _ = read_large_cases(truth / "llm")
    there = {(row.family, row.case, row.digest) for row in stored_grades()}
    graded = {(one.family, one.name, one.digest) for one in cases if one.time is not None}
    assert graded <= there


def replayed(truth, families, count):
    """Rows of times, and their errors now [points]."""
    cases = {(one.family, one.name): one for one in read_large_cases(truth / "llm")[0]}
    rows = [row for row in stored_grades() if row.family in families and row.quantity == "time" and not row.failure]
    for row in random.Random(1).sample(rows, count):
        case = cases[row.family, row.case]
        yield row, 100 * (case_time(case) / case.time - 1)


def test_rows_that_are_played_again_have_the_error_that_is_stored(truth):
    for row, now in replayed(truth, QUICK, 4):
        assert now == pytest.approx(100 * row.error, abs=MARGIN), row


@pytest.mark.long
def test_many_rows_that_are_played_again_have_the_error_that_is_stored(truth):
    for row, now in replayed(truth, {row.family for row in stored_grades()} - {"mlperf_training"}, 40):
        assert now == pytest.approx(100 * row.error, abs=MARGIN), row


def test_the_folder_of_the_table_needs_no_playing(truth):
    with limited(60):
        rows, _ = large_rows(truth / "llm")
    assert len(rows) == sum(bool(row.digest) and row.quantity != GAIN for row in stored_grades())
