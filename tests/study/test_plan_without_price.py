"""Plans over machines that the catalogue has no dated price of: no cost is named, and the plan says why."""

import json
import math

import pytest

from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.report.html.plan import plan_report
from simperf.report.plans import draw_plan, format_candidate, format_plan, plan_output
from simperf.study.layouts import make_layouts
from simperf.study.planning import TrainingPlan, make_request, plan

PLAN = {
    "plan": {"model": "resnet18", "samples": 1_281_167, "deadline": "20 h"},
    "candidates": {"instances": ["p3-8xlarge", "dgx-1v"], "nodes": [1], "batch_per_gpu": [32]},
}
WHY = "no cost is named: the catalogue has no dated source of a price"


def request(instances=("p3-8xlarge", "dgx-1v"), **changes):
    tables = {name: dict(table) for name, table in PLAN.items()}
    tables["candidates"]["instances"] = list(instances)
    for table, keys in changes.items():
        tables[table] = {**tables.get(table, {}), **keys}
    return make_request(tables)


@pytest.fixture(scope="module")
def found():
    return plan(request(), cache=False)


def test_a_machine_without_a_price_has_no_cost_and_says_why(found):
    assert Catalog.load().machine("dgx-1v").price is None
    costs = {one.choice.instance: one.cost for one in found.ranked}
    assert math.isnan(costs["dgx-1v"])
    assert costs["p3-8xlarge"] > 0
    assert found.request.prices.sources["dgx-1v"] == WHY
    assert "dgx-1v" not in found.request.prices
    rows = {row["instance"]: row for row in found.to_dict()["ranked"]}
    assert (rows["dgx-1v"]["cost"], rows["dgx-1v"]["price"], rows["dgx-1v"]["price_source"]) == (None, None, WHY)
    assert rows["dgx-1v"]["cost_interval"] is None
    assert rows["p3-8xlarge"]["price"] == pytest.approx(12.24)


def test_the_plan_is_by_time_and_stars_only_what_has_a_cost(found):
    assert found.request.objective == "time"
    assert [one.time for one in found.ranked] == sorted(one.time for one in found.ranked)
    assert {one.choice.instance for one in found.ranked if one.best} == {"p3-8xlarge"}
    assert all("nan" not in one.reason for one in found.ranked)


def test_what_is_printed_and_drawn_names_no_cost_of_it(found):
    for text in (format_plan(found), plan_report(found), plan_output(found, "csv"), plan_output(found, "json")):
        assert WHY in " ".join(text.split())
        assert "nan" not in text.lower().replace("finance", "")
    assert "no price" in format_plan(found)
    number = next(one.number for one in found.ranked if one.choice.instance == "dgx-1v")
    detail = format_candidate(found, number, "")
    assert WHY in " ".join(detail.split())
    assert "USD" not in detail
    axes = draw_plan(found).axes[0]
    assert axes.get_ylabel() == "cost [USD]"


def test_a_file_of_it_is_read_again(found, tmp_path):
    found.save(tmp_path / "plan.json")
    again = TrainingPlan.load(tmp_path / "plan.json")
    assert json.dumps(again.to_dict()["ranked"]) == json.dumps(found.to_dict()["ranked"])
    assert repr(again) == repr(found)


def test_without_any_price_the_picture_has_gpus():
    alone = plan(request(["dgx-1v"]), cache=False)
    assert math.isnan(alone.winner.cost)
    assert "USD" not in format_plan(alone)
    assert draw_plan(alone).axes[0].get_ylabel() == "GPUs"


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({"plan": {"budget": "100 USD"}}, "plan.budget"),
        ({"plan": {"objective": "cost"}}, 'plan.objective = "cost"'),
        ({"limits": {"price": "100 USD/h"}}, "limits.price"),
    ],
)
def test_what_cannot_be_without_a_price_is_refused(changes, needs):
    with pytest.raises(InputError) as caught:
        request(**changes)
    (problem,) = caught.value.problems
    assert problem.message == f"there is no price for 'dgx-1v', which {needs} needs"
    assert "own = { dgx-1v" in problem.expected


def test_a_price_of_ones_own_makes_it_a_plan_by_cost():
    own = request(prices={"own": {"dgx-1v": "20 USD/h"}})
    assert own.objective == "cost"
    assert own.prices.told("dgx-1v") == "20.000 USD/h"
    blocks = request(["p5e-48xlarge"], prices={"kind": "capacity_block"})
    assert blocks.prices.of("p5e-48xlarge") == pytest.approx(47.76)
    assert "2026-09-19" in blocks.prices.sources["p5e-48xlarge"]
    assert "p5e-48xlarge" not in request(["p5e-48xlarge"]).prices


@pytest.mark.parametrize("name", ["dgx-h100-x128", "dgx-h200", "dgxh100"])
def test_a_price_of_no_server_of_the_plan_is_refused(name):
    """One of a cluster would count for each of its servers, and one of another server for none."""
    asked = {"model": "llama3-8b", "on": "dgx-h100-x128", "gpus": 16}
    with pytest.raises(InputError, match=rf"prices.own.{name}: a price of no server of the plan.*'dgx-h100'"):
        make_layouts({"layouts": asked, "prices": {"own": {name: "80 USD/h"}}})
    made = make_layouts({"layouts": asked, "prices": {"own": {"dgx-h100": "80 USD/h"}}})
    assert made.machines[0].price == 160.0


def test_a_price_of_no_instance_of_the_plan_is_refused():
    plan = {"plan": {"model": "resnet18", "samples": 1000}, "candidates": {"instances": ["p3-2xlarge"], "nodes": 1}}
    with pytest.raises(InputError, match=r"prices.own.p3-2xlage: a price of no server.*did you mean 'p3-2xlarge'"):
        make_request({**plan, "prices": {"own": {"p3-2xlage": "3 USD/h"}}})
