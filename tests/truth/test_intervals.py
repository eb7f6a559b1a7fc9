"""Intervals of left-out figures: each question's hold nine of ten, and the errors of the package are those of today."""

import pytest

from simperf.accuracy.coverage import pooled
from simperf.accuracy.error_rows import ERRORS
from simperf.analysis.questions import COLLECTIVES, KERNELS, LARGE
from tests.truth.intervals import grades, moved

#: by how much of their width the ends of intervals may move before the errors are made anew [1]
MOST = 0.1
AGAIN = "python -m tests.truth.intervals --write --truth FOLDER"


def test_intervals_hold_nine_of_ten_figures_whose_family_was_left_out():
    found = grades()
    assert 0.85 <= pooled(found).share <= 0.95
    for one in found:
        assert one.chance > 0.05, f"{one.question}: {one.share:.1%}"


def test_intervals_are_better_than_one_width_a_question():
    found = grades()
    assert pooled(found).score < 0.8 * pooled(found).constant
    for one in found:
        assert one.score < 1.01 * one.constant, one.question


@pytest.mark.truth
@pytest.mark.parametrize("question", [COLLECTIVES, KERNELS, LARGE])
def test_errors_are_those_of_today(question, truth):
    assert moved(question, list(ERRORS[question](truth))) < MOST, f"{AGAIN} makes the errors anew"
