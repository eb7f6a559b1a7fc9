"""The class of a figure follows from what was given and measured, and baselines are closed forms."""

import math

import pytest

from simperf.accuracy.baselines import RingLinks, ScalingBaselines, ring_links, scaling_baselines
from simperf.accuracy.figure_class import FigureBasis, figure_class
from simperf.accuracy.validation import validation_table
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.run import run
from simperf.scenario import load_scenario

TRAINED = """
[scenario]
title = "Four GPUs"
[machine]
use = "dgx-1v"
[program]
use = "train"
model = "resnet50"
batch_per_gpu = 32
alone = "320 1/s"
[[compare]]
name = "one"
set = { "program.gpus" = 1 }
measured = { "metrics.samples per second" = "250 1/s" }
[[compare]]
name = "nearly linear"
set = { "program.gpus" = 4 }
measured = { "metrics.samples per second" = "1242 1/s", "metrics.time per step" = "0.103 s" }
[[compare]]
name = "predicted"
set = { "program.gpus" = 4 }
measured = { "metrics.samples per second" = "1241 1/s", "metrics.time per step" = "0.1031 s" }
"""


@pytest.mark.parametrize(
    ("basis", "expected"),
    [
        (FigureBasis(1.0, 1.0), "predicted"),
        (FigureBasis(1.0, 1.0, workers=1, linear=2.0), "fitted"),
        (FigureBasis(1.0, 1.0, constants=("loop",)), "fitted"),
        (FigureBasis(97.0, 97.0, linear=100.0, workers=2), "nearly linear"),
        (FigureBasis(96.9, 96.9, linear=100.0, workers=2), "predicted"),
        (FigureBasis(103.1, 103.1, linear=100.0, workers=2), "predicted"),
        (FigureBasis(96.0, 99.0, linear=100.0, workers=2), "predicted"),
        (FigureBasis(0.0, 0.0, linear=1.0, workers=2), "predicted"),
    ],
)
def test_the_class_has_three_rules_in_order(basis, expected):
    assert figure_class(basis) == expected


@pytest.mark.parametrize("linear", [0.0, -1.0])
def test_a_linear_baseline_of_nothing_is_refused(linear):
    with pytest.raises(InputError, match="linear scaling gives a quantity above 0"):
        FigureBasis(1.0, 1.0, linear=linear, workers=2)


def test_a_measured_scenario_says_the_class_of_each_figure(tmp_path):
    path = tmp_path / "four.toml"
    path.write_text(TRAINED)
    rows = validation_table([str(path)])
    assert {(row.variant, row.kind) for row in rows} == {
        ("one", "fitted"),
        ("nearly linear", "nearly linear"),
        ("predicted", "predicted"),
    }
    # by hand: 4 GPUs x 320 a second, and a step of 32 samples on each in 0.1 s
    four = {row.quantity: row for row in rows if row.variant == "predicted"}
    assert four["metrics.samples per second"].linear == pytest.approx(1280.0)
    assert four["metrics.time per step"].linear == pytest.approx(0.1)
    # four V100 are joined by two rings of 20 GB/s, both ways; 25,557,032 numbers of fp32; 6 hops of 0.3 us
    added = 6 * (0.3e-6 + 25_557_032 * 4 / 4 / 80e9)
    assert four["metrics.time per step"].ring == pytest.approx(0.1 + added, rel=1e-6)
    assert four["metrics.samples per second"].ring == pytest.approx(128 / (0.1 + added), rel=1e-6)


def test_the_prediction_has_no_part_in_the_class(tmp_path):
    path = tmp_path / "slow.toml"
    path.write_text(TRAINED.replace('alone = "320 1/s"', 'alone = "320 1/s"\nslowdown = 1.5\noverlap = true'))
    assert [row.kind for row in validation_table([str(path)])] == [
        *("fitted", "nearly linear", "nearly linear", "predicted", "predicted")
    ]


def test_each_quantity_of_scaling_has_its_baselines():
    speed = ScalingBaselines(4, 100.0, 200.0, 3e9, RingLinks(0.0, 9e9), dataset=1000.0)
    # one step: 200 / 400 = 0.5 s, and 2 * 3 / 4 * 3 GB / (9 GB/s) = 0.5 s of all-reduce
    assert speed.linear("metrics.time per step") == pytest.approx(0.5)
    assert speed.ring("metrics.time per step") == pytest.approx(1.0)
    assert speed.ring("metrics.samples per second") == pytest.approx(200.0)
    assert speed.linear("metrics.time per epoch") == pytest.approx(2.5)
    assert speed.ring("metrics.time per epoch") == pytest.approx(5.0)
    assert speed.linear("metrics.ring: scaling efficiency") == pytest.approx(1.0)
    assert speed.ring("metrics.scaling efficiency") == pytest.approx(0.5)
    assert math.isnan(speed.linear("metrics.speed-up of servers"))
    assert math.isnan(ScalingBaselines(4, 100.0, 200.0).ring("metrics.time per step"))
    assert ScalingBaselines(1, 100.0, 50.0).ring("metrics.time per step") == pytest.approx(0.5)


def test_a_ring_has_the_bandwidth_of_its_slowest_link():
    catalog = Catalog.load()
    mesh = catalog.machine("dgx-1v")
    assert ring_links(mesh, mesh.gpus[:1]) is None
    # one NVLink 2 of 20 GB/s joins the first two; behind an NVSwitch 12 links of 20 GB/s serve either way at once
    assert ring_links(mesh, mesh.gpus[:2]).bandwidth == pytest.approx(20e9)
    switched = catalog.machine("dgx-a100")
    assert ring_links(switched, switched.gpus).bandwidth == pytest.approx(240e9)


def test_no_speed_of_one_gpu_gives_no_baseline():
    scenario = load_scenario("measured/two-gpus-v100", variant="both, asynchronous")
    assert scaling_baselines(scenario, run(scenario, record=False)) is None
