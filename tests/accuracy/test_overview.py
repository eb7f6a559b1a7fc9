"""The overview counts figures that need a prediction alone, beside baselines on the same figures."""

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from simperf.accuracy.kernel_figures import KernelFigures
from simperf.accuracy.leave_out.measured_steps import measured_steps
from simperf.accuracy.overview import summarize_questions
from simperf.accuracy.questions import COLLECTIVES, KERNELS, ONE_GPU, SCALING, question_of
from simperf.accuracy.single_steps import single_step_table
from simperf.accuracy.validation import ValidationRow, validation_table
from simperf.report.accuracy_output import accuracy_output
from simperf.report.accuracy_overview import expectations_markdown, overview_markdown, overview_text, scaling_counts
from simperf.run import run
from simperf.scenario import load_scenario

RATE = ValidationRow("t", "v", "metrics.samples per second", "1/s", 100.0, 100.0, 110.0, question=SCALING)
TIME = replace(RATE, quantity="metrics.time per step", unit="s", predicted=80.0)


def test_fitted_and_nearly_linear_figures_are_counted_apart():
    rows = [RATE, replace(RATE, kind="fitted", predicted=500.0), replace(RATE, kind="nearly linear", predicted=1.0)]
    (one,) = summarize_questions([*rows, replace(RATE, predicted=math.nan)])
    assert (one.whole.points, one.fitted, one.nearly_linear, one.failed) == (1, 1, 1, 1)
    assert (one.whole.median, one.whole.p90, one.whole.bias) == pytest.approx((0.1, 0.1, -0.1))
    assert one.parts == ()


def test_bias_is_below_0_where_predictions_are_too_fast():
    (one,) = summarize_questions([RATE, TIME])
    # a rate 10 % too high and a time 20 % too short
    assert one.whole.bias == pytest.approx(-0.15)


def test_baselines_are_graded_on_the_points_that_have_both():
    rows = [
        replace(RATE, linear=130.0, ring=105.0),  # off by 30 and 5 %, the prediction by 10 %
        replace(TIME, linear=70.0, ring=71.0),  # by 30 and 29 %, the prediction by 20 %
        replace(RATE, linear=200.0, predicted=150.0),
    ]
    (one,) = summarize_questions(rows)
    same, linear, ring = one.parts
    assert (same.points, linear.points, ring.points) == (2, 2, 2)
    assert (same.median, linear.median, ring.median) == pytest.approx((0.15, 0.3, 0.17))
    assert (linear.nearer, ring.nearer) == (1.0, 0.5)


def test_figures_that_rest_on_a_choice_are_told_apart():
    (one,) = summarize_questions([RATE, replace(RATE, predicted=130.0, rests_on="overlap = false")])
    without, having = one.parts
    assert (without.points, having.points) == (1, 1)
    assert (without.median, having.median) == pytest.approx((0.1, 0.3))


def test_steps_and_passes_of_one_gpu_have_lines_of_their_own():
    step = replace(RATE, question=ONE_GPU, title="Steps of one GPU: a", simple=150.0)
    rows = [step, replace(TIME, question=ONE_GPU, title="Passes on one GPU: b")]
    rows.append(replace(RATE, question=ONE_GPU, quantity="metrics.bandwidth"))
    (one,) = summarize_questions(rows)
    steps, passes, others, same, simple = one.parts
    assert (steps.name, passes.name, others.points) == ("training steps", "passes from an idle device", 1)
    assert (steps.median, passes.median) == pytest.approx((0.1, 0.2))
    assert (same.points, simple.median, simple.nearer) == (1, 0.5, 1.0)
    lines = [line.split(" | ")[0] for line in expectations_markdown([one]).splitlines()[2:5]]
    assert lines == [f"| **{ONE_GPU}**", "| &ensp;training steps", "| &ensp;passes from an idle device"]
    assert summarize_questions([step])[0].parts[0].name == "where a baseline is defined"
    quoted = replace(RATE, question=ONE_GPU, quantity="metrics.samples per second")
    assert summarize_questions([*rows, quoted])[0].parts[0].points == 2


def test_numbers_of_figures_of_scaling_are_distinguished():
    rows = [replace(RATE, linear=130.0, ring=105.0), replace(RATE, linear=130.0), RATE]
    told = scaling_counts([*rows, replace(RATE, kind="nearly linear", linear=110.0)]).replace("\n", " ")
    assert "3 need a prediction. For 2 of them the speed of one GPU is published" in told
    assert "for 1 the baseline of a ring is defined" in told
    assert "nearly linear: 1" in told
    assert scaling_counts([]) == ""


def test_collectives_are_split_by_payload():
    sizes = (1 << 10, 1 << 20, 1 << 26)
    rows = [ValidationRow("c", "ring", "time", "s", 1.0, 1.0, 2.0, question=COLLECTIVES, nbytes=n) for n in sizes]
    (one,) = summarize_questions([*rows, replace(rows[0], nbytes=math.nan)])
    assert [(part.name, part.points) for part in one.parts] == [
        ("8 KiB and below", 1),
        ("8 KiB to 64 MiB", 1),
        ("64 MiB and above", 1),
    ]


def test_every_collective_that_a_scenario_quotes_has_a_payload():
    rows = validation_table(["measured/optcast-ring", "measured/mxnet-kv-dist-1server", "measured/two-gpus-v100"])
    payloads = {row.title: row.nbytes for row in rows if row.question == COLLECTIVES}
    assert list(payloads.values()) == [512 * 2**20, 257_991_328]
    assert all(math.isnan(row.nbytes) for row in rows if row.question != COLLECTIVES)
    (one,) = (one for one in summarize_questions(rows) if one.question == COLLECTIVES)
    assert [part.points for part in one.parts if part.name == "64 MiB and above"] == [one.whole.points]


def test_a_ring_by_data_sheets_stands_beside_collectives():
    row = ValidationRow("c", "8 B, ring", "time", "s", 1.0, 1.0, 1.2, question=COLLECTIVES, simple=0.5)
    (one,) = summarize_questions([row, replace(row, simple=math.nan)])
    where, ring = one.parts[-2:]
    assert (where.points, ring.points, ring.median, ring.bias, ring.nearer) == (1, 1, 0.5, -0.5, 1.0)


def test_kernels_by_shape_are_counted_with_their_baselines():
    errors = [np.array([0.1, -0.3, 0.2]), np.array([1.0, 0.2, 1.0]), np.array([0.05, 0.4, 0.5])]
    shapes = KernelFigures("products, other shapes", "h100", "matrix products", np.ones(3), *errors)
    (one,) = summarize_questions([replace(RATE, question=KERNELS, kind="fitted")], [shapes])
    assert (one.question, one.fitted, one.whole.points) == (KERNELS, 1, 3)
    assert (one.whole.median, one.whole.bias) == pytest.approx((0.2, 0.1))  # times that are too long are too slow
    group, rate, roofline = one.parts
    assert group.name == "products, other shapes"
    assert (rate.nearer, roofline.nearer) == pytest.approx((2 / 3, 2 / 3))


def test_the_overview_fits_a_terminal_and_a_table():
    rows = [replace(RATE, linear=130.0, ring=105.0, rests_on="x"), replace(RATE, question=ONE_GPU, predicted=9e9)]
    found = summarize_questions(rows)
    assert max(map(len, overview_text(found).splitlines())) <= 80
    table = [line for line in overview_markdown(found).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {10}
    lines = [line for line in expectations_markdown(found).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {9}
    assert "| one GPU + a ring | 5.0 % (simperf 10.0 %) | 0 % |" in lines[-1]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("measured/ddp-resnet50", SCALING),
        ("measured/d2l-lenet", SCALING),
        ("measured/byteps-gradcompress-100mbps", SCALING),
        ("measured/mxnet-kv-local-8gpu", COLLECTIVES),
        ("measured/linear-fp32-t4", KERNELS),
        ("measured/decoder-b200", ONE_GPU),
    ],
)
def test_the_question_follows_from_the_program(name, question):
    assert question_of(load_scenario(name), None) == question


def test_a_step_of_one_gpu_is_predicted_without_its_measured_speed():
    step = next(measured_steps(["ddp-resnet50:", "ddp-resnet50"]))
    (row,) = single_step_table([step])
    assert (row.kind, row.question, row.low) == ("predicted", ONE_GPU, step.measured)
    assert row.predicted == run(step.scenario).metrics["samples per second"].value
    assert row.predicted != pytest.approx(step.measured, rel=1e-3)


def test_every_form_of_a_file_has_the_class_of_each_figure():
    name = "measured/d2l-resnet18"
    table = accuracy_output([name], None, "table")
    assert "what to expect" in table.splitlines()[0]
    assert table.count("measured ") >= 2
    kinds = [row["kind"] for row in csv.DictReader(io.StringIO(accuracy_output([name], None, "csv")))]
    assert (
        kinds == [one["kind"] for one in json.loads(accuracy_output([name], None, "json"))] == ["fitted", "predicted"]
    )
    assert accuracy_output([name], None, "markdown").startswith("# How right")
    assert "two GPUs, 512" in accuracy_output([name], None, "data")
