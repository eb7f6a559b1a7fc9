"""Layouts that cannot be distinguished: groups within one search, of one machine."""

from simperf.report.layout_plans import layouts_output
from simperf.study.layouts import plan_layouts
from simperf.study.layouts.ties import TIE
from tests.study.test_layouts import MODEL, asked


def test_layouts_that_cannot_be_told_apart_are_groups():
    """A group has those within the ratio of its first, which is the first that is further from all before."""
    found = plan_layouts(asked(tp=[1, 2], cp=1, microbatch=[1, 2], recompute=["none", "full"], top=1000), cache=False)
    leaders = [one for one in found.ranked if one.group == one.number]
    assert leaders[0] is found.winner
    assert 1 < len(leaders) < len(found.ranked)
    for one in found.ranked:
        leader = found.ranked[one.group - 1]
        assert leader in leaders
        assert one.step <= TIE * leader.step
        before = [each for each in leaders if each.number < one.group]
        assert all(one.step > TIE * each.step for each in before)
        assert ("not distinguishable from" in one.reason) == (one.group != one.number)
    assert [row["group"] for row in found.to_dict()["ranked"]] == [one.group for one in found.ranked]
    assert found.near() == 0, "all were simulated"
    few = plan_layouts(asked(tp=[1, 2], cp=1, microbatch=[1, 2], recompute=["none", "full"]), cache=False)
    left = few.searched[0].left
    assert few.near() == sum(one.bound <= TIE * few.winner.step for one in left) > 0
    assert f"{few.near()} may be as near" in " ".join(layouts_output(few, "table").split())


def test_layouts_on_different_machines_are_no_group():
    """Nor are those that are too late."""
    tables = {"on": ["dgx-a100", "dgx-h100"], "gpus": 8, "batch": 16, "cp": 1, "tp": 1, "pp": 1, "microbatch": 2}
    found = plan_layouts({"model": MODEL, "layouts": {**tables, "recompute": "none"}}, cache=False)
    groups = {one.machine.name: one.group for one in found.ranked if one.group == one.number}
    assert len(groups) == 2
    late = {"model": MODEL, "plan": {"tokens": 1e12, "deadline": "1 h"}, "layouts": tables}
    assert {one.group for one in plan_layouts(late, cache=False).ranked} == {0}
