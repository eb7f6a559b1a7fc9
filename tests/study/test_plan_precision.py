"""Precision of a plan's candidates: given, or assumed by the GPU and told."""

import csv
import io
from importlib.resources import files

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
    new = {
        name
        for name in found
        if CATALOG.gpu(name).architecture in ("ampere", "ada", "hopper", "blackwell", "blackwell-rtx")
    }
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
    assert f"({ASSUMED})" in format_candidate(assumed, 1, "", width=240)
    table = list(csv.DictReader(io.StringIO(plan_output(assumed, "csv"))))
    assert [row["precision"] for row in table] == [row["precision"] for row in rows]


def test_what_is_given_holds_for_all_and_nothing_is_assumed():
    found = plan(asked(precision="fp16"), cache=False)
    assert {one.choice.precision for one in found.ranked} == {"fp16"}
    assert found.precision_line() == ""
    assert "precision" not in found.rows()[0]
    assert {row["precision_source"] for row in found.to_dict()["ranked"]} == {GIVEN}


@pytest.fixture
def own_parts(tmp_path):
    """A folder of parts: a DGX A100 whose GPU, of Ampere, has no peak of TF32 products."""
    shipped = files("simperf").joinpath("hardware/data")
    gpu = shipped.joinpath("gpu/a100-sxm4-80gb.toml").read_text("utf-8")
    server = shipped.joinpath("server/dgx-a100-80gb.toml").read_text("utf-8")
    assert 'tf32 = "156 TFLOP/s"\n' in gpu
    (tmp_path / "mine.toml").write_text(gpu.replace('tf32 = "156 TFLOP/s"\n', ""))
    (tmp_path / "box.toml").write_text(server.replace("a100-sxm4-80gb", "mine"))
    return tmp_path


def test_a_gpu_of_ones_own_without_a_peak_of_tf32_trains_in_fp32(own_parts):
    head = {"model": "resnet18", "samples": 1_281_167}
    candidates = {"instances": ["box", "p4d-24xlarge"], "nodes": 1, "batch_per_gpu": 64, "folder": str(own_parts)}
    found = plan(make_request({"plan": head, "candidates": candidates, "prices": {"own": {"box": "30 USD/h"}}}))
    assert {one.choice.instance: one.choice.precision for one in found.ranked} == {
        "box": "fp32",
        "p4d-24xlarge": "tf32",
    }
    assert found.pruned == ()
    assert "fp32 on mine (no peak of tf32 is given)" in found.precision_line()
    given = plan(make_request({**found.request.toml.data, "plan": {**head, "precision": "fp32"}}))
    assumed, said = (next(one for one in each.ranked if one.choice.instance == "box") for each in (found, given))
    assert assumed.time == said.time


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
