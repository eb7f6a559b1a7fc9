"""What two constants get beside a validation: a line for each model, a roofline for whole steps."""

import json

import pytest

from simperf.calibrate.baseline import Line, lines_of, roofline_steps, with_baseline, work_of
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.steps import measured_part
from simperf.calibrate.validate import Checked, Validation, validate
from simperf.hardware import Catalog
from simperf.report.calibration import calibration_json, calibration_text
from simperf.report.fits import fits_markdown
from simperf.workload import zoo
from tests.calibrate.synthetic import gpu_dataset, write_profile


def test_the_amount_of_work_of_a_point():
    op = {"nbytes_read": 8.0, "nbytes_written": 4.0, "flops": 99.0}
    assert work_of(Measurement("op/gemm", {**op, "family": "gemm"}, (1.0,))) == 99.0
    assert work_of(Measurement("op/copy", {**op, "family": "copy"}, (1.0,))) == 12.0
    assert work_of(Measurement("graph/replay", {"nodes": 7}, (1.0,))) == 7.0


def test_a_line_goes_through_the_fitted_points_alone():
    at = [{"nbytes": n} for n in (1.0, 10.0, 100.0, 1000.0)]
    points = [Measurement("copy/d2d", one, (2.0 + 0.5 * one["nbytes"],)) for one in at]
    data = Dataset("", measurements=(*points, Measurement("copy/d2d", {"nbytes": 5.0}, (77.0,))))
    rows = [Checked(p.key, p.series, "copy.d2d", p.median, 1.0, 0.0, 9.0, p.median != 77.0) for p in data]
    lines = lines_of(Validation(tuple(rows), {}), data)
    assert (lines["copy.d2d"].fixed, lines["copy.d2d"].slope) == pytest.approx((2.0, 0.5))
    assert lines_of(Validation(tuple(rows[:2]), {}), data) == {}
    held_out = with_baseline(Validation(tuple(rows), {}), data, lines, lambda point: None).points[-1]
    assert held_out.plain == pytest.approx(4.5)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    pytest.importorskip("scipy")
    path = tmp_path_factory.mktemp("plain") / "p.toml"
    data = gpu_dataset()
    write_profile(path, fit_dataset(data, hold_out=4, draws=8))
    return Catalog.load().profile(str(path)), data


def test_it_is_told_in_every_form_beside_the_profile(known):
    profile, data = known
    found = validate(profile, data)
    assert "two constants" not in calibration_text(found)
    found = with_baseline(found, data, lines_of(found, data), roofline_steps(profile))
    rows = {(row.name, row.fitted): row for row in found.summaries()}
    gemm, copies = rows["op/gemm", False], rows["copy/h2d-pinned", False]
    assert gemm.plain > 3 * gemm.mape  # its truth has one constant more than a line
    assert copies.plain < 0.02  # a line is what it is
    assert rows["queue/depth", True].plain is None
    assert rows["all", True].plain is None  # of some points it says nothing
    text = calibration_text(found)
    assert f"{gemm.plain:.1%}" in text
    assert text.splitlines()[-1].startswith("two constants") or "two constants: the MAPE" in text
    (row, *_) = json.loads(calibration_json(found))
    assert row["two_constants"] == found.points[0].plain
    assert f"| {100 * gemm.plain:.1f} % |" in fits_markdown([], {"x": found})


def test_a_step_is_a_roofline_of_two_rates(known):
    profile, _ = known
    device = measured_part(profile)
    step = zoo.load("lenet").at(32, "fp32", optimizer="sgd")
    slowest = [
        max(op.flops / device.peak["fp32"], op.nbytes / device.memory_bandwidth)
        for op in (*step.forward, *step.backward, *step.update)
    ]
    at = {"model": "lenet", "batch": 32, "precision": "fp32", "optimizer": "sgd"}
    steps = roofline_steps(profile)
    assert steps(Measurement("step/lenet", {**at, "part": "step"}, (1.0,))) == pytest.approx(sum(slowest))
    forward = steps(Measurement("step/lenet", {**at, "part": "forward"}, (1.0,)))
    assert 0 < forward < sum(slowest)
    assert steps(Measurement("step/x", {**at, "model": "no-such"}, (1.0,))) is None
    assert Line(1.0, 2.0).at(3.0) == 7.0
