"""Constants of a boxed cluster: what is put in comes out again, and nothing else than sends is looked at."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.calibrate.cluster.accuracy import conditions, hold_against, summaries
from simperf.calibrate.cluster.experiments import MODEL, points
from simperf.calibrate.cluster.fitting import CELL, _Simulated, fit_constants
from simperf.calibrate.cluster.profile import hold_recording
from simperf.calibrate.cluster.scenarios import Compute, predict, shape_of
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.errors import InputError

pytest.importorskip("scipy")

RATE = 25e6
TRUTH = {
    "wake": 70e-6,
    "message": 9e-6,
    "call": 15e-6,
    "cold": 6e-5,
    "operation": 1.5e-4,
    "byte_rate": 1 / 3e-9,
    "bulk_rate": 1 / 1.2e-9,
    "add_rate": 1e10,
}
COMPUTE = {"mlp-8x512": Compute.of(MODEL["mlp-8x512"], 0.05, 0.1, 0.001)}


def synthesise(noise=0.01, seed=1, truth=TRUTH):
    """A data set that the simulator itself has made, with noise of the readings."""
    rng = np.random.default_rng(seed)

    def made(series, at, value, unit="s"):
        return Measurement(series, at, tuple(value * np.exp(noise * rng.standard_normal(7))), unit)

    found = []
    for point in points(3, Shape(RATE), rates=(4 * RATE,), only=("send", "all-reduce", "ddp"), quick=True):
        at = point.conditions
        measurement = Measurement(point.series, at, (1.0,))
        if point.series == "add":
            found.append(made("add", at, 5e-6 + at["nbytes"] / truth["add_rate"]))
            continue
        if point.series == "send-flood":
            found.append(made("cpu/send-flood", at, 3e-4 + at["nbytes"] / truth["bulk_rate"]))
            continue
        value = predict(measurement, truth, COMPUTE).value
        found.append(made(point.series, at, value))
        if point.series == "send":
            nbytes = at["nbytes"]
            found.append(made("cpu/send", at, 3e-4 + nbytes / truth["byte_rate"]))
        if point.series == "round-trip":
            once = 3e-4 + at["nbytes"] / truth["byte_rate"] + at["nbytes"] / truth["bulk_rate"]
            more = 2 * truth["call"] + 3 * truth["message"] + truth["cold"]
            found.append(made("cpu/round-trip", at, once + more))
        if point.series == "send-train":
            each = 2 * truth["call"]
            rest = 2 * truth["operation"]
            found.append(made("cpu/call", at, rest + each * at["messages"]))
            found.append(made("cpu/send-train", at, rest + (each + 3 * truth["message"]) * at["messages"]))
    for ranks, slower in ((1, 1.0), (2, 1.0)):
        for part, value in (("forward", 0.05), ("backward", 0.1), ("update", 0.001)):
            found.append(made(f"step/{part}", {"model": "mlp-8x512", "ranks": ranks}, value * slower))
    return Dataset("made", measurements=tuple(found))


@pytest.fixture(scope="module")
def data():
    return synthesise()


@pytest.fixture(scope="module")
def fitted(data):
    return fit_constants(data)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("wake", 0.4),
        ("message", 0.15),
        ("call", 0.1),
        ("cold", 0.15),
        ("operation", 0.3),
        ("byte_rate", 0.05),
        ("bulk_rate", 0.05),
        ("add_rate", 0.1),
    ],
)
def test_what_was_put_in_comes_out(fitted, name, tolerance):
    assert fitted.stack[name] == pytest.approx(TRUTH[name], rel=tolerance)
    assert "CPU a byte" in fitted.report()


def test_predictions_of_what_was_not_fitted_are_right(data, fitted):
    rows = hold_against(data, fitted.stack)
    groups = {one.group: one for one in summaries(rows)}
    assert groups["gloo"].mape < 0.02
    assert groups["ring"].mape < 0.02
    assert groups["ddp"].mape < 0.03
    assert {row.point.at["rate"] for row in rows if row.fitted} == {RATE}
    assert all(row.point.series in ("send", "round-trip", "send-train") for row in rows if row.fitted)


def test_small_sends_are_straight_between_simulations(data):
    """The simulation has steps, so that a derivative over less than one would say that it is known exactly."""
    points = [point for point in data.select("send") if point.number("nbytes") <= 16384]
    between = _Simulated(TRUTH, points)
    corners = [np.array([predict(point, {**TRUTH, "wake": i * CELL}).value for point in points]) for i in (2, 3)]
    assert between(2 * CELL) == pytest.approx(corners[0], rel=1e-12)
    assert between(2.5 * CELL) == pytest.approx(sum(corners) / 2, rel=1e-12)


def test_the_wake_up_of_noisy_readings_lies_around_what_was_put_in():
    """Its joint draws are such fits; the standard error of one fit takes the other constants as known."""
    found = [fit_constants(synthesise(noise=0.08, seed=seed)).stack["wake"] for seed in range(2, 8)]
    assert np.mean(found) == pytest.approx(TRUTH["wake"], rel=0.15)
    assert np.std(found) < 0.5 * TRUTH["wake"]


def test_collectives_are_not_looked_at(data, fitted):
    """Readings of everything that is predicted may be anything: the constants stay the same."""
    wrong = [
        replace(point, samples=(1.0,)) if point.series.startswith(("all-reduce/", "ddp")) else point for point in data
    ]
    assert fit_constants(replace(data, measurements=tuple(wrong))).stack == fitted.stack


def test_a_data_set_without_sends_says_so(data):
    few = replace(data, measurements=tuple(point for point in data if point.series == "add"))
    with pytest.raises(InputError, match="too few sends"):
        fit_constants(few)
    with pytest.raises(InputError, match="'add'"):
        fit_constants(Dataset("empty"))


def test_conditions_in_short():
    at = {"ranks": 4, "nbytes": 262144, "rate": 25e6, "rate_of_1": 6.25e6, "burst": 32768.0, "queue": 1.0, "threads": 1}
    assert conditions(Measurement("x", at, (1.0,))) == "ranks=4 nbytes=256KiB rate=200Mbit/s rate_of_1=50Mbit/s"
    assert shape_of(at).of(1) == 6.25e6


def test_a_recording_is_predicted_from_its_own_sends_with_intervals_of_another_one():
    data = synthesise()
    few = replace(data, measurements=tuple(point for point in data if point.series != "ddp"))
    found, rows = hold_recording(few, others=[few])
    assert found.stack == fit_constants(few).stack
    assert [row.predicted for row in rows] == [row.predicted for row in hold_against(few, found.stack)]
    assert all(row.interval is not None and row.interval[0] < row.predicted < row.interval[1] for row in rows)
