"""Goals of accuracy: what is met and missed, and that every goal has its figure and its page."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from simperf.accuracy import goal_figures as figures
from simperf.accuracy.coverage import grade_intervals
from simperf.accuracy.goals import AccuracyGoal, GradedGoal, accuracy_goals, grade_goals
from simperf.accuracy.large_goals import family_errors
from simperf.accuracy.overview import OverviewLine, QuestionSummary
from simperf.accuracy.questions import ONE_GPU, SCALING
from simperf.accuracy.scaling_points import scaling_points
from simperf.analysis.left_out import FILES, read_errors
from simperf.report.validation import goals_markdown

DOCS = Path(__file__).parents[2] / "docs"
SHARE = AccuracyGoal("share", "x", 0.6, math.inf, False, "page.md", "a reason")


def test_a_goal_is_missed_by_the_distance_from_its_bound():
    between = AccuracyGoal("between", "x", -0.01, 0.01, False, "page.md", "")
    assert [GradedGoal(SHARE, value).missed_by for value in (0.53, 0.6, 0.7)] == [0.07, 0.0, 0.0]
    assert math.isnan(GradedGoal(SHARE, math.nan).missed_by), "no figure is no goal that is met"
    assert [GradedGoal(between, value).missed_by for value in (-0.03, 0.0, 0.02)] == [0.02, 0.0, 0.01]


def test_a_line_tells_the_bound_what_was_reached_and_why_it_is_missed():
    count = AccuracyGoal("kinds", "y", -math.inf, 0.0, True, "page.md", "few sources")
    between = AccuracyGoal("bias", "z", -0.01, 0.01, False, "page.md", "unused")
    lines = goals_markdown([GradedGoal(SHARE, 0.53), GradedGoal(count, 3.0), GradedGoal(between, 0.001)]).splitlines()
    assert lines[2] == "| [share](page.md) | at least 60 % | 53 % | 7 points | a reason |"
    assert lines[3] == "| [kinds](page.md) | at most 0 | 3 | 3 | few sources |"
    most = AccuracyGoal("error", "e", -math.inf, 0.15, False, "page.md", "")
    assert goals_markdown([GradedGoal(most, 0.127)]).endswith("| at most 15 % | 12.7 % | met |  |")
    assert lines[4] == "| [bias](page.md) | -1 to 1 % | +0.1 % | met |  |"


def test_goals_without_a_figure_are_left_out():
    assert grade_goals({}) == []
    (one,) = grade_goals({"steps: median": 0.2})
    assert one.missed_by == pytest.approx(0.05)


def test_a_goal_whose_figure_could_not_be_made_says_so():
    assert goals_markdown([GradedGoal(SHARE, math.nan)]).endswith("| at least 60 % | none | no figure | a reason |")


def test_a_kind_without_intervals_is_none_that_holds(monkeypatch):
    monkeypatch.setattr(figures, "grade_intervals", lambda question, errors, by: grade_intervals(question, (), by=by))
    found = figures.interval_figures()
    assert found["intervals, family left out: rejected"] == found["intervals, family left out: worse"] == len(FILES)


def test_pages_of_goals_exist():
    assert all((DOCS / one.page).is_file() for one in accuracy_goals())


def test_steps_are_graded_with_their_stack_and_without(monkeypatch):
    def graded(folder, by, *, stack_unknown=False):
        assert (folder, by) == ("folder", "gpu")
        return [SimpleNamespace(missed=math.log(1.5 if stack_unknown else 1.2))] * 3

    pairs = [("right", math.log(2.0), math.log(1.8)), ("wrong", math.log(1.5), math.log(0.9))]
    monkeypatch.setattr(figures, "graded", graded)
    monkeypatch.setattr(figures, "ratios", lambda _: pairs)
    found = figures.step_figures("folder")
    assert found["steps: median"] == found["steps: 90th percentile"] == pytest.approx(0.2)
    assert found["steps, stack unknown: median"] == pytest.approx(0.5)
    assert found["ratios: median"] == pytest.approx((0.1 + 0.4) / 2)
    assert found["ratios: order"] == 0.5


def test_figures_of_scaling_are_those_of_its_summary_alone():
    line = OverviewLine("all", 1, 0.05, 0.1, 0.0)
    parts = (OverviewLine("one GPU + a ring", 1, 0.0, 0.0, 0.0, 0.5), OverviewLine("linear", 1, 0.0, 0.0, 0.0, 0.7))
    own, other = (QuestionSummary(name, line, parts, 0, 0, 0) for name in (SCALING, ONE_GPU))
    assert figures.scaling_figures([other]) == {}
    assert figures.scaling_figures([other, own]) == {
        "scaling: median": 0.05,
        "scaling: 90th percentile": 0.1,
        "scaling: nearer than one GPU + a ring": 0.5,
        "scaling: nearer than linear": 0.7,
    }


def test_the_recorded_kind_that_is_missed_most_counts_and_no_fitted_point():
    def point(series, error, fitted=False):
        return SimpleNamespace(point=SimpleNamespace(series=series), error=error, fitted=fitted)

    points = [point("a", 0.1), point("a", -0.3), point("b", 0.05), point("c", 9.0, True)]
    assert figures.recording_figures([points]) == {"recordings: worst kind": pytest.approx(0.2)}
    assert figures.recording_figures([]) == {}


def test_every_goal_has_a_figure_and_every_figure_of_intervals_a_goal():
    known = {one.figure for one in accuracy_goals()}
    intervals = figures.interval_figures().keys()
    assert {one for one in known if one.startswith("intervals")} == set(intervals)
    losses = figures.loss_figures(list(scaling_points(["measured/ddp-resnet50"])))
    named = ("steps", "ratios", "scaling", "recordings")  # the tests above have all of these
    assert {one for one in known if not one.startswith(named)} <= {*losses, *intervals, *family_errors()}


def test_figures_of_intervals_are_those_of_the_grades():
    found = figures.interval_figures()
    for by in ("family", "source", "gpu"):
        grades = [grade_intervals(one, read_errors(one), by=by) for one in FILES]
        assert found[f"intervals, {by} left out: held"] == sum(g.held for g in grades) / sum(g.points for g in grades)
        assert found[f"intervals, {by} left out: rejected"] == len([one for one in grades if one.chance <= 0.05])
        assert found[f"intervals, {by} left out: worse"] == len([one for one in grades if one.score > one.constant])


def test_a_goal_of_intervals_that_is_missed_has_a_reason_and_one_that_is_met_has_none():
    goals = grade_goals(figures.interval_figures())
    assert len(goals) == 9
    assert [(one.goal.figure, bool(one.goal.reason)) for one in goals] == [
        (one.goal.figure, one.missed_by > 0) for one in goals
    ]
