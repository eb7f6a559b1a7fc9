"""Whole programs and training steps of a GPU, played with a profile: against closed forms, and against measurements."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure.programs import _PROGRAMS
from simperf.calibrate.programs import PROGRAMS
from simperf.calibrate.steps import measured_scenario, point_scenario, step_predictor
from simperf.calibrate.validate import validate
from simperf.hardware import ProfilePart
from simperf.hardware.profile import FittedConstant, FittedModel
from simperf.programs import PROGRAMS as GENERAL
from simperf.run import run

T1, T3, WAIT, DEPTH, KERNEL, RATE, FLOPS = 4e-6, 12e-6, 7e-6, 1000, 2e-6, 1e12, 1e13
#: launches of a loop that one in a pass takes, where no pass was measured
IN_STEP = 2.5
SETUP, PINNED, GRAPH, NODE, GAP = 6e-6, 2e10, 9e-6, 2e-8, -0.5e-6


def fitted(**values):
    constants = {
        key: FittedConstant(value=one, low=one, high=one, stderr=0.01 * one, draws=(0.99, 1.01))
        for key, one in values.items()
    }
    return FittedModel(points=9, error=0.01, scatter=0.01, constant=constants)


def profile(**more):
    models = {
        "kernel.elementwise-fp32": fitted(overhead=KERNEL, rate=RATE),
        "kernel.gemm-fp32": fitted(overhead=KERNEL, rate=FLOPS),
        "kernel.conv-fp32": fitted(overhead=KERNEL, rate=FLOPS),
        "kernel.optimizer-fp32": fitted(overhead=KERNEL, rate=RATE),
        "frontend.launch": fitted(launch=T1),
        "frontend.result": fitted(result=T3),
        "frontend.depth": fitted(depth=float(DEPTH)),
        "wait.round": fitted(round=T1 + KERNEL + 8 / RATE + WAIT),
        "graph.replay": fitted(alpha=2e-5, beta=KERNEL + 8192 / RATE + GAP),
        "graph.replay-host": fitted(alpha=GRAPH, beta=NODE),
        "copy.h2d-pinned": fitted(setup=SETUP, bandwidth=PINNED),
        **more,
    }
    machine = {"gpu": "Imaginary 9000", "sms": 50, "cores": 8}
    return ProfilePart(name="mine", title="", sources={}, machine=machine, model=models)


def whole(name, at, **more):
    found = run(measured_scenario(profile(**more), PROGRAMS[name], at))
    return {"whole": found.time} | {name: metric.value for name, metric in found.metrics.items()}


def step(batch=4, *, part="step", **more):
    given = {"model": "lenet", "batch": batch, "precision": "fp32", "optimizer": "sgd", "part": part}
    return run(measured_scenario(profile(**more), GENERAL["training-step"], given)).time


def test_a_chain_waits_for_a_place_in_the_queue():
    at = {"n": 2500, "elements": 8_000_000}
    kernel = KERNEL + 64e6 / RATE
    found = whole("chain", at)
    assert found["whole"] == pytest.approx(T1 + 2500 * kernel + WAIT, rel=1e-3)
    assert found["issued"] == pytest.approx((2500 - DEPTH) * kernel, rel=2e-3)
    longer = whole("chain", at, **{"frontend.depth": fitted(depth=500.0)})
    assert longer["whole"] == pytest.approx(found["whole"])
    assert longer["issued"] == pytest.approx((2500 - 500) * kernel, rel=2e-3)


def test_looking_takes_a_result_and_waiting_does_not():
    assert whole("item", {"looks": 20, "n": 30})["whole"] == pytest.approx(
        20 * (30 * T1 + KERNEL + 8 / RATE + T3) + WAIT, rel=1e-6
    )
    assert whole("wait", {"looks": 50, "n": 4})["whole"] == pytest.approx(
        50 * (4 * T1 + KERNEL + 8 / RATE + WAIT) + WAIT, rel=1e-6
    )


def test_a_graph_goes_at_the_pace_of_its_nodes():
    node = KERNEL + GAP + 8 * 2**18 / RATE
    found = whole("graph", {"nodes": 120, "n": 20, "elements": 1 << 18})
    assert found["whole"] == pytest.approx(GRAPH + 120 * NODE + 20 * 120 * node + WAIT, rel=1e-4)
    assert found["issued"] == pytest.approx(20 * (GRAPH + 120 * NODE), rel=1e-6)


@pytest.mark.parametrize("n", [1, 40])
def test_batches_hide_the_copies_or_the_kernels(n):
    at = {"batches": 8, "nbytes": 24_000_000, "beside": "memory", "side": 3000, "n": n}
    work, copied = n * (KERNEL + 8 * 3000**2 / RATE), SETUP + 24e6 / PINNED
    found = whole("batches", at)["whole"]
    assert found == pytest.approx((copied + 8 * work) if work > copied else (8 * copied + work), rel=0.02)
    slowed = whole("batches", at, **{"overlap.memory": fitted(copy=1.5, kernel=1.2)})["whole"]
    # what was measured of copies beside kernels is played: in each batch the shorter one is beside the other throughout
    beside = min(1.2 * work, 1.5 * copied)
    lost = 8 * beside * (1 - 1 / 1.5) if work < copied else 7 * beside * (1 - 1 / 1.2)
    assert slowed - found == pytest.approx(lost, rel=0.2)


@pytest.mark.parametrize(("held", "expected"), [(0.1, 1.0), (1.0, 3.0)])
def test_streams_share_the_device_as_far_as_it_was_measured(held, expected):
    at = {"streams": 3, "n": 30, "side": 640}
    constants = {"streams": fitted(overhead=KERNEL, step=1e-8, held=held, limit=64.0)}
    found = whole("streams", at, **constants)["whole"]
    kernel = KERNEL + 2 * 640**3 / FLOPS
    begun = 60 * T1 if expected == 1.0 else 0.0  # when the last stream has its first kernel
    assert found == pytest.approx(begun + 30 * kernel * expected, rel=0.03)


def test_every_measured_program_has_its_counterpart_with_its_parameters():
    assert {name for name, _, _ in _PROGRAMS} == set(PROGRAMS)
    for name, _, at in _PROGRAMS:
        assert whole(name, at)["whole"] > 0


def test_a_step_of_small_kernels_is_bound_by_its_launches():
    parts = [step(part=part) for part in ("forward", "backward", "update")]
    launches = IN_STEP * (13 + 19) + 1
    assert step() == pytest.approx(launches * T1 + KERNEL + WAIT, rel=0.3)
    assert sum(parts) > step(), "waits between the parts cost"


def test_calls_by_type_make_a_step_longer():
    slow = {"call.conv2d.plain": fitted(plain=10 * T1), "update.sgd": fitted(alpha=50 * T1, beta=0.0)}
    # two convolutions forward, two gradients of weights; the bias and the other gradient ride on them
    assert step(**slow) - step() == pytest.approx((IN_STEP * (4 * 9 - 2 - 1 - 1) + 49) * T1, rel=0.15)


def point(series, time, **at):
    return Measurement(series, {"device": "cuda", **at}, (time,))


def test_validation_holds_steps_and_programs_against_what_is_played():
    mine = profile()
    chain = {"n": 2500, "elements": 8_000_000}
    truth = whole("chain", chain)
    words = {"model": "lenet", "batch": 256, "precision": "fp32", "optimizer": "sgd", "part": "backward"}
    dataset = Dataset(
        "another day",
        measurements=(
            point("program/chain", truth["whole"], part="whole", **chain),
            point("program/chain", 1.3 * truth["issued"], part="issued", **chain),
            point("program/tea", 1.0, part="whole"),
            point("step/lenet", step(256, part="backward"), **words),
        ),
    )
    found = validate(mine, dataset, steps=step_predictor(mine))
    errors = [round(row.error, 4) for row in found.points]
    assert errors == [0.0, round(1 / 1.3 - 1, 4), 0.0]
    assert [row.inside for row in found.points] == [True, False, True]
    assert not any(row.fitted for row in found.points)
    assert {row.model for row in found.points} == {"whole program", "whole step"}
    assert "held out" in found.skipped["program/tea"]
    assert all(json.loads(row.key.partition(" ")[2])["device"] == "cuda" for row in found.points)


def test_without_a_launch_time_nothing_of_a_gpu_is_predicted():
    models = {name: model for name, model in profile().model.items() if name != "frontend.launch"}
    predict = step_predictor(replace(profile(), model=models))
    assert predict(point("program/item", 1.0, looks=20, n=30, part="whole")) is None


def test_what_is_validated_is_what_run_plays():
    """A point is a scenario, whose time is the prediction to the last digit."""
    mine, words = profile(), {"model": "lenet", "batch": 64, "precision": "fp32", "optimizer": "adam", "part": "step"}
    for one in (point("step/lenet", 1.0, **words), point("program/item", 1.0, looks=20, n=30, part="whole")):
        best, low, high = step_predictor(mine)(one)
        scenario = point_scenario(mine, one)
        assert run(scenario).time == best
        assert low < best < high
        assert scenario.profiles == (mine,)
