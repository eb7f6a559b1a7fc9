"""Grades of published cases of large models: the simple model, errors, medians, and what is left out."""

import json
import math

import pytest

from simperf.accuracy.large_cases import LeftOut, read_large_cases
from simperf.accuracy.large_grades import baseline, grade, reasons_counted
from simperf.accuracy.large_jobs import case_tables, case_time, counted_memory
from simperf.errors import InputError
from simperf.scenario import make_scenario
from tests.accuracy.test_large_cases import CASE, with_
from tests.truth.family_summaries import family_summaries


def cases_of(tmp_path, *cases, family="new"):
    """What can be expressed of some cases."""
    (tmp_path / f"{family}.json").write_text(json.dumps({"family": family, "cases": cases}), "utf-8")
    return read_large_cases(tmp_path)[0]


def test_the_simple_model_has_the_rate_of_the_other_cases(tmp_path):
    names = {"a": 2.0, "b": 4.0, "c": 3.0}
    cases = cases_of(tmp_path, *({**CASE, "id": name, "measured": _time(time)} for name, time in names.items()))
    assert baseline(cases) == pytest.approx(
        {"a": 1 / ((1 / 4 + 1 / 3) / 2), "b": 1 / ((1 / 2 + 1 / 3) / 2), "c": 8 / 3}
    )
    alone = cases_of(tmp_path, CASE)
    assert math.isnan(baseline(alone)["one"])


def _time(value):
    return {"metric": "iteration_time", "value": value, "unit": "s"}


def test_errors_and_medians(tmp_path):
    peer = {"iteration_time_s": 2.2}
    cases = cases_of(
        tmp_path, *({**CASE, "id": name, "measured": _time(2.0), "peer_prediction": peer} for name in "abc")
    )
    predicted = {"a": 2.2, "b": 1.9, "c": 2.0}
    rows = list(grade(cases, lambda one: predicted[one.name], None))
    assert [round(one.error(), 3) for one in rows] == [0.1, -0.05, 0.0]
    (found,) = family_summaries(rows)
    assert (found.count, found.median, found.worst) == pytest.approx((3, 0.05, 0.1))
    assert (found.simple, found.peer, found.bias) == pytest.approx((0.0, 0.1, 0.0))


def test_memory_of_each_stage_is_graded_once(tmp_path):
    by_rank = {"0": 100.0, "1": 110.0, "8": 90.0}
    memory = {
        "metric": "peak_allocated_max_over_ranks",
        "value": 0.1,
        "unit": "GiB",
        "per_rank_max_allocated_mb": by_rank,
    }
    cases = cases_of(tmp_path, *({**CASE, "id": name, "measured_memory": memory} for name in "ab"))
    rows = list(grade(cases, None, lambda one: [121 * 2.0**20, 90 * 2.0**20]))
    assert [(one.stage, round(one.error(), 3)) for one in rows] == [(0, 0.1), (1, 0.0)]


def test_verdicts_are_right_or_wrong(tmp_path):
    memory = {"metric": "peak_memory", "unit": "GiB"}
    both = ({"value": 70.0, "oom": False}, {"value": None, "oom": True})
    cases = cases_of(
        tmp_path, *({**CASE, "id": name, "measured": {**memory, **one}} for name, one in zip("ab", both, strict=True))
    )
    rows = list(grade(cases, None, lambda one: [77 * 2.0**30]))
    told = [(one.case.name, one.quantity, round(one.error(), 3)) for one in rows]
    assert told == [("a", "fits", 0.0), ("a", "memory", 0.1), ("b", "fits", 1.0)]
    assert math.isnan(rows[0].error("simple"))


def test_what_a_job_refuses_is_left_out_with_its_reason(tmp_path):
    (one,) = cases_of(tmp_path, with_(parallelism={"ep": 2}))
    (left,) = grade([one], case_time, None)
    assert isinstance(left, LeftOut)
    assert "the model has no experts" in left.reasons[0]
    assert reasons_counted([left, left]) == {("new", left.reasons[0]): 2}


def test_a_case_is_a_scenario_on_its_machine(tmp_path):
    (one,) = cases_of(tmp_path, with_(parallelism={"overlap_dp": False, "sequence_parallel": True}))
    scenario = make_scenario(case_tables(one))
    program = scenario.data["program"]
    assert scenario.data["machine"]["server"] == "dgx-h100"
    assert scenario.data["layout"] | {"format": 1} == {"format": 1, "dp": 4, "tp": 2, "pp": 2, "sharding": "zero-1"}
    assert (program["stack"], program["sequence_parallel"], program["recompute"]) == ("megatron-core", True, "full")
    assert "gradient_bucket" not in program
    assert len(scenario.machine.gpus) == 16


def test_memory_by_counter(tmp_path):
    def measured(metric):
        return {**CASE, "measured_memory": {"metric": metric, "value": 10, "unit": "GiB"}}

    metrics = ("peak_allocated_max_over_ranks", "gpu_memory", "activation_memory_first_stage")
    allocated, device, activations = (counted_memory(one) for one in cases_of(tmp_path, *map(measured, metrics)))
    assert all(more > less for more, less in zip(device, allocated, strict=True))
    assert all(0 < part < whole for part, whole in zip(activations, allocated, strict=True))


def test_a_framework_that_is_not_played_is_told(tmp_path):
    (one,) = cases_of(tmp_path, with_(parallelism={"framework": "MaxText"}))
    with pytest.raises(InputError, match="MaxText is not simulated"):
        make_scenario(case_tables(one))
