"""Curves of lessons: what is drawn is what was given."""

import pytest

from simperf.teach.pictures import draw_curves


def test_lines_marks_and_the_readers_choice():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    curves = {"NVLink": [(1, 3.0), (10, 20.0)], "PCIe": [(1, 1.0), (10, 6.0)]}
    (axes,) = draw_curves(curves, x="size (kB)", y="rate (GB/s)", here=(10, 6.0), marks={"Young": 5.0}).axes
    drawn = {line.get_label(): list(line.get_xydata().ravel()) for line in axes.get_lines()}
    assert drawn["NVLink"] == [1, 3.0, 10, 20.0]
    assert drawn["Young"][::2] == [5.0, 5.0]
    assert drawn["the sliders' choice"] == [10, 6.0]
    assert axes.get_xlabel() == "size (kB)"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_a_linear_axis_starts_at_zero():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (axes,) = draw_curves({"goodput": [(1, 80.0), (2, 90.0)]}, x="min", y="%", log="x").axes
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0
