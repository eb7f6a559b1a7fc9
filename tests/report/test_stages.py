"""The table of a pipeline's stages: rows add up to a step, and what takes nothing has no column."""

import pytest

from simperf.report.stages import stages_of
from simperf.report.terminal import to_text
from simperf.results import Metric

METRICS = {
    "time per step": Metric(2.0, "s"),
    "stage 0: hidden tensor": Metric(0.2, "s"),
    "stage 0: kernels": Metric(1.5, "s"),
    "stage 0: exposed tensor": Metric(0.4996, "s"),
    "stage 0: exposed norm": Metric(0.0004, "s"),
    "stage 0: idle": Metric(0.0, "s"),
    "stage 1: kernels": Metric(1.0, "s"),
    "stage 1: bubble": Metric(1.0, "s"),
    "memory of stage 0": Metric(3e9, "B"),
    "memory": Metric(3e9, "B"),
}


def test_rows_add_up_to_a_step():
    stages = stages_of(METRICS)
    for stage in (0, 1):
        shares = [stages.share(stage, kind) for kind in stages.times[stage] if not kind.startswith("hidden")]
        assert sum(shares) == pytest.approx(1.0)
    assert stages.hidden(0) == pytest.approx(0.1)
    assert stages.names == set(METRICS) - {"time per step", "memory"}


def test_what_takes_nothing_on_any_stage_has_no_column():
    assert stages_of(METRICS).columns == ("kernels", "exposed tensor", "bubble")


def test_a_run_without_stages_has_no_table():
    assert stages_of({"time per step": METRICS["time per step"], "memory": METRICS["memory"]}) is None
    assert stages_of({"stage 0: kernels": METRICS["stage 0: kernels"]}) is None


def test_all_dimensions_of_a_layout_fit_a_narrow_terminal():
    kinds = [
        "kernels",
        "bubble",
        "slowed",
        "exposed tensor",
        "exposed pipeline",
        "exposed data",
        "exposed norm",
        "idle",
    ]
    metrics = {f"stage 15: {kind}": Metric(0.25, "s") for kind in kinds}
    metrics |= {"time per step": Metric(2.0, "s"), "stage 15: hidden tensor": Metric(0.2, "s")}
    metrics |= {"memory of stage 15": Metric(604.2e6, "B")}
    text = to_text(stages_of(metrics).table(), width=78)
    assert "604.2 MB" in text
    assert all(kind.removeprefix("exposed ") in text for kind in kinds)
    assert "exposed" in stages_of(metrics).title
