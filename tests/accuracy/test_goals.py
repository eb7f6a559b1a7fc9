"""Goals of accuracy: what is met and missed, and that every goal has its figure and its page."""

import math
from pathlib import Path

import pytest

from simperf.accuracy import goal_figures as figures
from simperf.accuracy.goals import AccuracyGoal, GradedGoal, accuracy_goals, grade_goals
from simperf.accuracy.overview import OverviewLine, QuestionSummary
from simperf.accuracy.questions import SCALING
from simperf.accuracy.scaling_points import scaling_points
from simperf.report.accuracy_goals import goals_markdown

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


def test_pages_of_goals_exist():
    assert all((DOCS / one.page).is_file() for one in accuracy_goals())


def test_every_goal_has_a_figure(monkeypatch):
    monkeypatch.setattr(figures, "graded", lambda *_, **__: [])
    monkeypatch.setattr(figures, "ratios", lambda _: [])
    monkeypatch.setattr(figures, "order_of", lambda _: (1, 1))
    monkeypatch.setattr(figures, "grade", lambda _: (0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(figures, "server_pairs", lambda _: [])
    line, beside = OverviewLine("all", 1, 0.0, 0.0, 0.0), OverviewLine("one GPU + a ring", 1, 0.0, 0.0, 0.0, 0.5)
    scaling = QuestionSummary(SCALING, line, (beside, OverviewLine("linear", 1, 0.0, 0.0, 0.0, 0.5)), 0, 0, 0)
    points = list(scaling_points(["measured/ddp-resnet50"]))
    found = {
        **figures._of_steps("."),
        **figures._of_scaling([scaling]),
        **figures._of_losses(points),
        **figures._of_intervals(),
        "recordings: worst kind": 0.0,
    }
    assert {one.figure for one in accuracy_goals()} <= found.keys()


def test_a_goal_of_intervals_that_is_missed_has_a_reason_and_one_that_is_met_has_none():
    goals = grade_goals(figures._of_intervals())
    assert len(goals) >= 5
    assert [bool(one.goal.reason) for one in goals] == [one.missed_by > 0 for one in goals]
