"""Pictures of fits and validations: every axis says what it is and in which unit."""

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import fit_dataset
from simperf.calibrate.validate import Checked, Validation
from simperf.report.calibration import draw_fit, draw_validation
from tests.calibrate.synthetic import gpu_dataset

pytest.importorskip("scipy")


def line(series, word, **more):
    """Points of a line over a condition, two of which are held out."""
    sizes = (1, 3, 10, 30, 100, 300)
    return [Measurement(series, {word: n, **more}, (1e-5 + 2e-6 * n,) * 3) for n in sizes]


@pytest.fixture(scope="module")
def fits():
    whole = gpu_dataset()
    points = [*whole.select("copy/h2d-pinned"), *whole.select("queue/depth"), *whole.select("queue/launch")]
    points += [*whole.select("op/elementwise"), *whole.select("op/gemm"), *line("graph/replay", "nodes", mode="replay")]
    points += line("frontend/optimizer", "parameters", optimizer="adamw", device="cuda", **{"pass": "plain"})
    return fit_dataset(Dataset("some", measurements=tuple(points)), hold_out=3, draws=8)


@pytest.mark.parametrize(
    ("name", "across", "up"),
    [
        ("copy.h2d-pinned", "size [B]", "time [s]"),
        ("kernel.elementwise-fp32", "bytes read and written [B]", "time [s]"),
        ("kernel.gemm-fp32", "work [FLOP]", "time [s]"),
        ("graph.replay", "nodes", "time [s]"),
        ("update.adamw", "parameter tensors", "time [s]"),
        ("frontend.launch", "reading, in order", "time [s]"),
        ("frontend.depth", "reading, in order", "depth [1]"),
    ],
)
def test_axes_of_a_fit(fits, name, across, up):
    top, bottom = draw_fit(fits[name]).axes
    assert (top.get_ylabel(), bottom.get_ylabel(), bottom.get_xlabel()) == (up, "error [%]", across)


def test_held_out_points_are_told_apart_by_shape_too(fits):
    (top, _) = draw_fit(fits["copy.h2d-pinned"]).axes
    marks = {line.get_label(): line.get_marker() for line in top.lines}
    assert marks["measured, fitted"] != marks["measured, held out"]


def test_a_validation_names_the_units_of_its_readings():
    def point(series, unit, *, fitted):
        return Checked("k", series, "m", 2.0, 2.2, 1.0, 3.0, fitted, unit)

    found = Validation((point("a", "s", fitted=True), point("b", "launches", fitted=False)), {})
    (axes,) = draw_validation(found).axes
    assert axes.get_xlabel() == "measured [s, launches]"
    assert len({line.get_marker() for line in axes.lines[:2]}) == 2


def test_memory_counts_in_a_row_of_its_own():
    time = Checked("k", "step/train", "m", 2.0, 2.2, 1.0, 3.0, fitted=False)
    memory = Checked("k", "step/memory", "m", 2.0, 3.0, 1.0, 3.0, fitted=False, unit="B")
    rows = {one.name: one.points for one in Validation((time, memory), {}).summaries()}
    assert rows == {"step/train": 1, "step/memory": 1, "all": 1}
    assert Validation((time, memory), {}).held_out.mape == pytest.approx(0.1)
    assert Validation((memory,), {}).held_out.mape == pytest.approx(0.5), "there is nothing else"


def test_one_point_that_is_far_off_leaves_the_others_room():
    rows = [Checked(str(i), "a", "m", 1.0, 1.0 + error, 0.5, 2.0, fitted=True) for i, error in enumerate((0.1, 21.0))]
    (axes,) = draw_validation(Validation(tuple(rows), {})).axes
    assert axes.get_yscale() == "symlog"
    assert [label.get_text() for label in axes.get_yticklabels()] == (
        ["-100", "-50", "0", "50", "100", "200", "500", "1000", "2000"]
    )
    (axes,) = draw_validation(Validation(tuple(rows[:1]), {})).axes
    assert axes.get_yscale() == "linear"


def test_a_point_that_is_off_by_twice_is_read_off_a_linear_axis():
    rows = [Checked(str(i), "a", "m", 1.0, 1.0 + error, 0.5, 2.0, fitted=True) for i, error in enumerate((0.1, 1.8))]
    (axes,) = draw_validation(Validation(tuple(rows), {})).axes
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[1] > 180
