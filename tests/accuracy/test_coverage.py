"""Grades of intervals: scores and tests in closed form, and nothing of a figure in its own interval."""

import math
from dataclasses import replace

import pytest

from simperf.accuracy.coverage import binomial_test, drawn_share, grade_intervals, interval_score, pooled
from simperf.analysis.left_out import LeftOutError
from simperf.analysis.questions import COLLECTIVES, KERNELS, LARGE, SCALING


def figure(error, family, *, source="s", gpu="g", group="", **more):
    return LeftOutError(group, family, source, gpu, 0.0, error, **more)


def test_the_exact_test_adds_up_what_is_as_unlikely():
    assert binomial_test(9, 10) == pytest.approx(1.0)
    assert binomial_test(10, 10) == pytest.approx(1 - 0.9**9)  # all but nine of ten, the likeliest
    assert binomial_test(45, 50) > 0.9
    assert binomial_test(61, 101) < 1e-12
    assert math.isnan(binomial_test(0, 0))


def test_families_that_are_drawn_anew_scatter_as_so_many_figures_do_where_each_has_one():
    low, high = drawn_share([(1, 1)] * 900 + [(0, 1)] * 100)
    deviation = math.sqrt(0.9 * 0.1 / 1000)
    assert (0.9 - low, high - 0.9) == (pytest.approx(1.96 * deviation, rel=0.1),) * 2


def test_families_that_are_held_as_a_whole_say_less_than_their_figures():
    low, high = drawn_share([(50, 50)] * 18 + [(0, 50)] * 2)
    assert binomial_test(900, 1000) == pytest.approx(1.0)
    assert high - low == pytest.approx(2 * 1.96 * math.sqrt(0.9 * 0.1 / 20), rel=0.15)
    assert drawn_share([(9, 10)] * 5) == (0.9, 0.9)  # families that are alike leave no doubt
    assert all(map(math.isnan, drawn_share([])))


def test_figures_of_a_grade_are_counted_by_what_was_left_out():
    rows = [figure(0.01 * (index % 9 - 4), f"f{index % 10}", source="ab"[index % 2]) for index in range(100)]
    found = grade_intervals(KERNELS, rows)
    assert sorted(count for _, count in found.clusters.values()) == [10] * 10
    assert sum(held for held, _ in found.clusters.values()) == found.held
    assert found.share_range[0] <= found.share <= found.share_range[1]
    assert len(grade_intervals(KERNELS, rows, by="source").clusters) == 2


def test_figures_of_two_questions_are_drawn_together_where_they_are_of_one_publication():
    def rows(source):
        return [figure(0.01 * (index % 9 - 4), f"f{index % 10}", source=source) for index in range(100)]

    kernels, same, other = (
        grade_intervals(question, rows(source))
        for question, source in ((KERNELS, "a"), (COLLECTIVES, "a"), (COLLECTIVES, "b"))
    )
    together, apart = pooled([kernels, same]), pooled([kernels, other])
    assert sorted(count for _, count in together.clusters.values()) == [20] * 10
    assert sorted(count for _, count in apart.clusters.values()) == [10] * 20, "families of one name, not of one source"
    assert sum(held for held, _ in together.clusters.values()) == together.held


@pytest.mark.parametrize("question", [SCALING, LARGE])
def test_a_figure_faster_than_can_be_is_outside_as_in_the_interval_of_its_run(question):
    """Of runs that lose nothing, or whose arithmetic is at its peak."""
    rows = [figure(0.02 * (index % 9 - 4), f"f{index % 10}", used=1.0) for index in range(100)]
    assert grade_intervals(question, rows).held == sum(one.error > -1e-9 for one in rows)


def test_figures_that_are_more_difficult_than_the_others_or_of_more_gpus_have_no_interval():
    rows = [figure(0.01 * (index % 9 - 4), f"f{index % 10}", gpus=8) for index in range(100)]
    hard = LeftOutError("", "hard", "s", "g", 0.7, 0.0, gpus=8)
    wide = figure(0.0, "wide", gpus=16)
    assert grade_intervals(SCALING, [*rows, hard, wide]).without == 2
    assert grade_intervals(SCALING, [*rows, replace(hard, difficulty=0.0), replace(wide, gpus=8)]).without == 0


def test_the_score_is_the_width_and_twenty_times_what_lies_beyond():
    assert interval_score(-1.0, 1.0, 0.0) == 2.0
    assert interval_score(-1.0, 1.0, 1.25) == pytest.approx(7.0)
    assert interval_score(-1.0, 1.0, -1.25) == pytest.approx(7.0)


def test_a_figure_far_off_is_outside_its_own_interval():
    rows = [figure(0.01 * (index % 7 - 3), f"f{index % 10}") for index in range(200)] + [figure(5.0, "other")]
    found = grade_intervals(KERNELS, rows)
    assert found.points == 201
    assert found.held <= 200
    assert found.width < math.exp(0.1)


def test_what_shares_a_source_is_left_out_with_it():
    rows = [figure(0.01 * (index % 9 - 4), f"f{index % 10}", source="a") for index in range(100)]
    rows += [figure(1.0, f"g{index % 10}", source="b") for index in range(100)]
    assert grade_intervals(KERNELS, rows, by="family").share > 0.85
    apart = grade_intervals(KERNELS, rows, by="source")
    assert apart.held == 100  # those of b with a's width are not, those of a with b's are
    assert apart.without == 0


def test_groups_of_few_figures_have_no_interval_and_are_counted():
    rows = [figure(0.01 * (index % 9), f"f{index % 10}", group="many") for index in range(100)]
    rows += [figure(0.0, f"f{index}", group="few") for index in range(6)]
    found = grade_intervals(COLLECTIVES, rows)
    assert (found.points, found.without) == (100, 6)
    assert pooled([found, found]).points == 200
    assert pooled([found, found]).score == pytest.approx(found.score)
