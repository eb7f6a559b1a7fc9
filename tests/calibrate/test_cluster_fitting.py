"""Constants of a boxed cluster: what is put in comes out again, and nothing else than sends is looked at."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.calibrate.cluster.accuracy import conditions, hold_against, summaries
from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.experiments import MODEL, points
from simperf.calibrate.cluster.fitting import CELL, _Simulated, fit_constants
from simperf.calibrate.cluster.predict import predict, shape_of
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.cluster.strategies import Compute
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.errors import InputError

pytest.importorskip("lmfit")

RATE = 25e6
TRUTH = Constants(
    efficiency=0.94,
    burst=30e3,
    latency=60e-6,
    traversal=9e-6,
    call=15e-6,
    byte=3e-9,
    batched=1.2e-9,
    cold=6e-5,
    resume=1.5e-4,
    buffer=9e4,
    start=30e-6,
    around=1.5e-4,
    cores=1.8,
)
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
            found.append(made("add", at, 5e-6 + truth.add * at["nbytes"]))
            continue
        if point.series == "send-flood":
            found.append(made("cpu/send-flood", at, 3e-4 + truth.batched * at["nbytes"]))
            continue
        value = predict(measurement, truth, COMPUTE).value
        found.append(made(point.series, at, value))
        if point.series == "send":
            nbytes = at["nbytes"]
            found.append(made("cpu/send", at, 3e-4 + truth.byte * nbytes))
            found.append(made("send/left", at, max(1e-6, value - truth.buffer / (at["rate"] * truth.efficiency))))
        if point.series == "round-trip":
            once = 3e-4 + truth.byte * at["nbytes"] + truth.batched * at["nbytes"]
            more = 2 * truth.call + 3 * truth.traversal + truth.cold
            found.append(made("cpu/round-trip", at, once + more))
        if point.series == "send-train":
            each = 2 * truth.call
            rest = 2 * truth.around
            found.append(made("cpu/call", at, rest + each * at["messages"]))
            found.append(made("cpu/send-train", at, rest + (each + 3 * truth.traversal) * at["messages"]))
    for ranks, slower in ((1, 1.0), (2, 2 / truth.cores)):
        for part, value in (("forward", 0.05), ("backward", 0.1), ("update", 0.001)):
            found.append(made(f"step/{part}", {"model": "mlp-8x512", "ranks": ranks}, value * slower))
    return Dataset("made", measurements=tuple(found))


@pytest.fixture(scope="module")
def data():
    return synthesise()


@pytest.fixture(scope="module")
def fitted(data):
    return fit_constants(data)


def test_what_was_put_in_comes_out(fitted):
    constants = fitted.constants
    for name, tolerance in (("efficiency", 0.01), ("burst", 0.1), ("latency", 0.4), ("traversal", 0.15)):
        assert getattr(constants, name) == pytest.approx(getattr(TRUTH, name), rel=tolerance), name
    assert constants.byte == pytest.approx(TRUTH.byte, rel=0.05)
    assert constants.batched == pytest.approx(TRUTH.batched, rel=0.05)
    assert constants.together == pytest.approx(TRUTH.batched / TRUTH.byte, rel=0.05)
    assert constants.call == pytest.approx(TRUTH.call, rel=0.1)
    assert constants.around == pytest.approx(TRUTH.around, rel=0.3)
    assert constants.cold == pytest.approx(TRUTH.cold, rel=0.15)
    assert constants.buffer == pytest.approx(TRUTH.buffer, rel=0.3)
    assert constants.cores == pytest.approx(TRUTH.cores, rel=0.03)
    assert "efficiency" in fitted.report()


def test_how_long_a_thread_takes_to_go_on_comes_from_round_trips_and_sends():
    made = fit_constants(synthesise(noise=1e-4)).constants
    assert made.resume == pytest.approx(TRUTH.resume, rel=0.2)
    found = fit_constants(synthesise(noise=1e-4, truth=replace(TRUTH, resume=3e-4))).constants
    assert found.resume == pytest.approx(3e-4, rel=0.2)


def test_predictions_of_what_was_not_fitted_are_right(data, fitted):
    rows = hold_against(data, fitted.constants)
    groups = {one.group: one for one in summaries(rows)}
    assert groups["gloo"].mape < 0.02
    assert groups["ring"].mape < 0.02
    assert groups["ddp"].mape < 0.03
    assert {row.point.at["rate"] for row in rows if row.fitted} == {RATE}
    assert all(row.point.series in ("send", "round-trip", "send-train") for row in rows if row.fitted)


def test_small_sends_are_straight_between_simulations(data):
    """The simulation goes in steps, so that a derivative over less than one would say that latency is known exactly."""
    points = [point for point in data.select("send") if point.number("nbytes") <= 16384]
    between = _Simulated(TRUTH, points)
    corners = [
        np.array([predict(point, replace(TRUTH, latency=i * CELL, start=j * CELL)).value for point in points])
        for i, j in ((2, 3), (3, 3), (2, 4), (3, 4))
    ]
    assert between(2 * CELL, 3 * CELL) == pytest.approx(corners[0], rel=1e-12)
    assert between(2.5 * CELL, 3.5 * CELL) == pytest.approx(sum(corners) / 4, rel=1e-12)
    slopes = [(between(at + 1e-12, 3.5 * CELL) - between(at - 1e-12, 3.5 * CELL)) / 2e-12 for at in (45e-6, 47e-6)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-3)
    assert np.all(slopes[0] < 10.0)


def test_the_latency_is_known_as_well_as_readings_drawn_anew_say():
    """Its standard error is that of fits to other readings, within a factor of three."""
    noisy = synthesise(noise=0.08)
    told = next(found for found in fit_constants(noisy).fits if "latency" in found.constants).constants["latency"]
    seeds = range(2, 10)
    found = [fit_constants(synthesise(noise=0.08, seed=seed)).constants.latency for seed in seeds]
    assert 1 / 3 < told.stderr / np.std(found) < 3.0
    assert told.low < TRUTH.latency < told.high


def test_collectives_are_not_looked_at(data, fitted):
    """Readings of everything that is predicted may be anything: the constants stay the same."""
    wrong = [
        replace(point, samples=(1.0,)) if point.series.startswith(("all-reduce/", "ddp")) else point for point in data
    ]
    assert fit_constants(replace(data, measurements=tuple(wrong))).constants == fitted.constants


def test_cores_are_what_the_least_disturbed_model_shows(data):
    """What else runs on the machine can only make two processes slower: the most that was seen is what there is."""
    slow = [
        replace(point, at={**point.at, "model": "mlp-8x256"}, samples=tuple(2.0 * one for one in point.samples))
        for point in data
        if point.series.startswith("step/") and point.at["ranks"] == 2
    ]
    alone = [
        replace(point, at={**point.at, "model": "mlp-8x256"})
        for point in data
        if point.series.startswith("step/") and point.at["ranks"] == 1
    ]
    more = replace(data, measurements=(*data.measurements, *slow, *alone))
    assert fit_constants(more).constants.cores == pytest.approx(TRUTH.cores, rel=0.03)


def test_a_data_set_without_sends_says_so(data):
    few = replace(data, measurements=tuple(point for point in data if point.series == "add"))
    with pytest.raises(InputError, match="too few sends"):
        fit_constants(few)
    with pytest.raises(InputError, match="'add'"):
        fit_constants(Dataset("empty"))


def test_series_without_a_simulation_are_refused():
    at = {"rate": RATE, "burst": 1.0, "queue": 1.0, "ranks": 2, "nbytes": 4}
    with pytest.raises(InputError, match="no simulation"):
        predict(Measurement("gemm", at, (1.0,)), TRUTH)


def test_conditions_in_short():
    at = {"ranks": 4, "nbytes": 262144, "rate": 25e6, "rate_of_1": 6.25e6, "burst": 32768.0, "queue": 1.0, "threads": 1}
    assert conditions(Measurement("x", at, (1.0,))) == "ranks=4 nbytes=256KiB rate=200Mbit/s rate_of_1=50Mbit/s"
    assert shape_of(at).of(1) == 6.25e6
