"""Goals of families of large models: which rows their figures are of, and reasons of those that are missed."""

import math

import pytest

from simperf.accuracy.goals import grade_goals
from simperf.accuracy.large_goals import GROUPS, family_errors
from simperf.accuracy.large_grades import GAIN
from simperf.accuracy.large_table import StoredGrade, stored_grades


def row(family, case, error, quantity="time"):
    return StoredGrade(family, case, quantity, -1, 1.0, error, math.nan, "", "")


def test_a_figure_is_the_mean_of_the_absolute_errors_of_its_rows():
    rows = [
        row("megatron_bridge", "mbridge-llama3_8b-x", 0.1),
        row("megatron_bridge", "mbridge-llama3_70b-x", -0.3),
        row("megatron_bridge", "mbridge-qwen3-x", 0.5),
        row("megatron_bridge", "mbridge-llama3_8b-y", math.nan),
        row("megatron_bridge", "mbridge-llama3_8b-x", 9.0, "memory"),
    ]
    found = family_errors(rows)
    assert found["Megatron-Bridge: dense"] == pytest.approx(0.2)
    assert found["Megatron-Bridge: experts"] == pytest.approx(0.5)
    assert math.isnan(found["dgxc: time"])


def test_rows_that_a_pace_is_fitted_to_are_no_evidence():
    fitted = row("internevo", "internevo-7b-packed-ckpt0-g128-mb2x4", 0.9)
    other = row("internevo", "internevo-7b-packed-ckpt0-g64-mb2x4", 0.02)
    assert family_errors([fitted, other])["InternEvo: time"] == pytest.approx(0.02)


def test_every_group_has_rows_in_the_table_of_the_package():
    assert [name for name, group in GROUPS.items() if not any(map(group.has, stored_grades()))] == []


def test_a_goal_of_a_family_that_is_missed_has_a_reason_and_one_that_is_met_has_none():
    goals = grade_goals(family_errors())
    assert len(goals) == len(GROUPS)
    assert [one.goal.what for one in goals if bool(one.goal.reason) != (one.missed_by > 0)] == []


def test_of_gains_of_features_the_worst_counts():
    rows = [row("reported_frontier", f"megascale-ablation-{n}", error, GAIN) for n, error in ((1, 0.01), (2, -0.02))]
    assert family_errors(rows)["MegaScale: gain of a feature"] == pytest.approx(0.02)
