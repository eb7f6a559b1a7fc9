"""Precision of a plan's candidates: given, or assumed by the GPU and told."""

import csv
import io

import pytest

from simperf.hardware import Catalog
from simperf.report.html import plan_report
from simperf.report.plans import format_candidate, format_plan, plan_output
from simperf.study.planning import TrainingPlan, make_request, plan
from simperf.study.planning.candidates import bound_of, choices
from simperf.study.planning.precision import ASSUMED, GIVEN, precision_of

CATALOG = Catalog.load()


def asked(**head):
    head = {"model": "resnet18", "samples": 1_281_167, "deadline": "20 h", **head}
    candidates = {"instances": ["p3-16xlarge", "p4d-24xlarge"], "nodes": 1, "batch_per_gpu": 64}
    return make_request({"plan": head, "candidates": candidates})


@pytest.fixture(scope="module")
def assumed():
    return plan(asked(), cache=False)


def test_products_of_fp32_tensors_are_in_tf32_from_ampere_on_and_of_no_other_maker():
    found = {name: precision_of("auto", CATALOG.gpu(name)) for name in CATALOG.names("gpu")}
    new = {name for name in found if CATALOG.gpu(name).architecture in ("ampere", "ada", "hopper", "blackwell")}
    assert {name for name, precision in found.items() if precision == "tf32"} == new
    assert all("tf32" in CATALOG.gpu(name).peak for name in new)
    assert found["mi300x"] == found["v100-sxm2-32gb"] == "fp32"


def test_each_candidate_says_its_precision_and_that_it_was_assumed(assumed):
    by_instance = {one.choice.instance: one.choice.precision for one in assumed.ranked}
    assert by_instance == {"p3-16xlarge": "fp32", "p4d-24xlarge": "tf32"}
    assert [assumed.scenario(one.number).data["program"]["precision"] for one in assumed.ranked] == [
        one.choice.precision for one in assumed.ranked
    ]
    rows = assumed.to_dict()["ranked"]
    assert {row["precision_source"] for row in rows} == {ASSUMED}
    line = "tf32 on a100-sxm4-40gb"
    assert line in format_plan(assumed)
    assert line in plan_report(assumed)
    assert f"({ASSUMED})" in format_candidate(assumed, 1, "")
    table = list(csv.DictReader(io.StringIO(plan_output(assumed, "csv"))))
    assert [row["precision"] for row in table] == [row["precision"] for row in rows]


def test_what_is_given_holds_for_all_and_nothing_is_assumed():
    found = plan(asked(precision="fp16"), cache=False)
    assert {one.choice.precision for one in found.ranked} == {"fp16"}
    assert found.precision_line() == ""
    assert "precision" not in found.rows()[0]
    assert {row["precision_source"] for row in found.to_dict()["ranked"]} == {GIVEN}


def test_memory_and_bounds_follow_the_precision():
    half, tf32, fp32 = (
        {one.instance: bound_of(request, one) for one in choices(request)}
        for request in (asked(precision="fp16"), asked(), asked(precision="fp32"))
    )
    for name in half:
        assert half[name].memory < tf32[name].memory == fp32[name].memory
    assert tf32["p4d-24xlarge"].time < fp32["p4d-24xlarge"].time
    assert tf32["p3-16xlarge"] == fp32["p3-16xlarge"]


def test_a_file_of_before_has_the_precision_of_its_plan(assumed, tmp_path):
    import json

    for precision, expected in ((None, "fp32"), ("bf16", "bf16")):
        document = assumed.to_dict()
        document["request"]["plan"] = {**document["request"]["plan"], **({"precision": precision} if precision else {})}
        for row in (*document["ranked"], *document["pruned"]):
            del row["precision"], row["precision_source"]
        (tmp_path / "old.json").write_text(json.dumps(document))
        again = TrainingPlan.load(tmp_path / "old.json")
        assert {one.choice.precision for one in again.ranked} == {expected}
