"""Time over a count, beside what it would ideally be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.analysis.scaling import from_rates, rate_of, scaling
from simperf.results import Metric, Result


def result(count, step, *, batch=32, **more):
    metrics = {"samples per second": Metric(batch * count / step, "1/s"), "time per step": Metric(step, "s")}
    return Result(f"{count}", 3 * step, metrics=metrics, **more)


def test_weak_scaling_is_ideal_where_a_step_takes_as_long():
    line = scaling({k: result(k, 0.1 if k < 8 else 0.125) for k in (8, 1, 4)}, key="gpus")
    assert [point.count for point in line.points] == [1, 4, 8]
    assert [point.efficiency for point in line.points] == pytest.approx([1.0, 1.0, 0.8])
    assert [point.ideal for point in line.points] == pytest.approx([0.1] * 3)
    assert line.what == "time per step"


def test_strong_scaling_is_ideal_where_time_falls_with_the_count():
    rows = {k: (1.0 / k + 0.1 * (k > 1), {"samples per second": 256 / (1.0 / k + 0.1 * (k > 1))}) for k in (1, 2, 4)}
    line = from_rates(rows, key="gpus")
    assert [point.ideal for point in line.points] == pytest.approx([1.0, 0.5, 0.25])
    assert line.points[2].efficiency == pytest.approx(0.25 / 0.35)


def test_a_bandwidth_a_rank_ideally_stays():
    line = from_rates({2: (1.0, {"busbw": 50e9}), 8: (2.5, {"busbw": 40e9})}, key="ranks")
    assert line.points[1].efficiency == pytest.approx(0.8)
    assert line.points[1].ideal == pytest.approx(2.0)
    assert "kept" in line.ideal


def test_without_a_rate_or_with_one_count_there_is_no_line():
    assert scaling({1: Result("a", 1.0), 2: Result("b", 2.0)}, key="gpus") is None
    assert scaling({4: result(4, 0.1)}, key="gpus") is None
    assert rate_of({"samples per second": 0.0, "busbw": 1.0}) == "busbw"


def test_intervals_are_those_of_the_time_and_of_nothing_else():
    rows = {k: (1.0, {"samples per second": float(k)}) for k in (1, 2)}
    ends = {2: (0.9, 1.1)}
    assert from_rates(rows, key="gpus", intervals=ends).points[1].interval == (0.9, 1.1)
    stepped = {k: (1.0, {"samples per second": float(k), "time per step": 0.1}) for k in (1, 2)}
    assert from_rates(stepped, key="gpus", intervals=ends).points[1].interval is None


@given(st.dictionaries(st.integers(1, 64), st.floats(0.01, 100), min_size=2), st.floats(0.1, 10))
def test_what_takes_twice_as_long_everywhere_scales_alike(steps, factor):
    one = scaling({k: result(k, time) for k, time in steps.items()}, key="gpus")
    two = scaling({k: result(k, time * factor) for k, time in steps.items()}, key="gpus")
    assert [p.efficiency for p in two.points] == pytest.approx([p.efficiency for p in one.points])
    assert one.points[0].efficiency == pytest.approx(1.0)
