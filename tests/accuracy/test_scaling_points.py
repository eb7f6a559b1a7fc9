"""Points of published scaling: efficiencies, lost throughput and pairs of servers, on points that are made up."""

import math

import pytest

from simperf.accuracy.baselines import ScalingBaselines
from simperf.accuracy.scaling_points import (
    ScalingPoint,
    interconnect_of,
    scaling_points,
    server_pairs,
    summarize_losses,
)
from simperf.accuracy.validation import ValidationRow
from simperf.hardware import Catalog
from tests.truth.scaling import lines


def point(measured, predicted, *, server="one", ring=math.nan, source="somebody"):
    """Four GPUs of 100 samples a second each."""
    rates = [400 * share for share in (measured, measured, predicted)]
    row = ValidationRow("title", "4 GPUs", "metrics.samples per second", "1/s", *rates, linear=400.0, ring=400 * ring)
    return ScalingPoint(row, ScalingBaselines(4, 100.0, 40.0), source, "net", "fp32", server, "PCIe", "ddp")


def test_a_rate_and_the_time_of_its_step_have_one_efficiency():
    rate = point(0.8, 0.9)
    row = ValidationRow("title", "4", "metrics.time per step", "s", 0.125, 0.125, 0.1 / 0.9, linear=0.1)
    time = ScalingPoint(row, rate.speed, "somebody", "net", "fp32", "one", "PCIe", "ddp")
    assert (time.measured, time.predicted) == pytest.approx((rate.measured, rate.predicted)) == (0.8, 0.9)
    assert time.step == pytest.approx(0.1)


def test_lost_throughput_is_explained_by_its_sum_and_small_losses_by_their_bias():
    points = [point(0.8, 0.9), point(0.6, 0.8), point(0.97, 0.96), point(0.93, 0.5)]
    found = summarize_losses(points)
    assert (found.much, found.little) == (2, 1)
    assert found.explained == pytest.approx(0.3 / 0.6)
    assert found.bias == pytest.approx(-0.01)
    assert math.isnan(summarize_losses(points, "ring").explained), "no ring is defined"


def test_pairs_are_of_one_publisher_and_differ_by_more_than_the_margin():
    points = [point(0.8, 0.9), point(0.9, 0.8, server="two"), point(0.84, 0.8, server="three")]
    points.append(point(0.2, 0.2, server="four", source="another"))
    ((first, second),) = [(pair.first, pair.second) for pair in server_pairs(points[:2])]
    assert (first.server, second.server) == ("two", "one")
    assert [pair.right() for pair in server_pairs(points)] == [False, False]


@pytest.mark.parametrize(("gpus", "kind"), [(8, "NVLink"), (16, "network")])
def test_gpus_of_one_server_and_of_two_are_joined_otherwise(gpus, kind):
    machine = Catalog.load().machine("dgx-1v-x4")
    assert interconnect_of(machine, machine.gpus[:gpus]) == kind


def test_a_measured_scenario_has_a_point_a_figure_and_a_line_a_group():
    points = list(scaling_points(["measured/lambda-rtx3090-bert"]))
    ((server, joined, workers),) = {(one.server, one.interconnect, one.workers) for one in points}
    assert (server, joined, workers) == ("rtx-3090", "host memory", 2)
    text = "\n".join(lines(points))
    assert "| source: Lambda | 1 |" in text
    assert "without source" not in text
