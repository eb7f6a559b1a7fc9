"""Products from data sheets: the clock that a board's power allows, and whose energy goes by process and clock."""

import numpy as np
import pytest

from simperf.accuracy.fits.datasheet import allowed_clock, efficiency_models, energy_scale, held_clock
from simperf.calibrate.fit import Data, fit
from simperf.calibrate.fit.products import product_columns
from simperf.hardware import Catalog
from simperf.workload.kinds import bmm

pytest.importorskip("scipy")

CATALOG = Catalog.load()
A100, L4, P100 = (CATALOG.gpu(name) for name in ("a100-pcie-80gb", "l4", "p100-pcie-16gb"))
OPS = [
    bmm(b, m, n=n, k=k)
    for b, m, n, k in (
        (12, 64, 2048, 2048),
        (320, 128, 384, 384),
        (96, 1024, 96, 1024),
        (2048, 512, 512, 64),
        (192, 2048, 2048, 128),
        (1024, 512, 256, 512),
        (256, 3072, 96, 3072),
        (16, 1024, 1024, 1024),
    )
]


def columns(part):
    """Work in times that the part's peaks take, times 1e12."""
    every = {"peak": part.peak["fp32"], "bandwidth": part.memory_bandwidth, "power": part.power}
    every |= {"known": 1.0, "late": 0.0, "rested": 1.0}
    return {
        "flops": np.array([op.flops for op in OPS]) / part.peak["fp32"] * 1e12,
        "nbytes": np.array([op.nbytes for op in OPS]) / part.memory_bandwidth * 1e12,
        **product_columns([op.gemm for op in OPS], part),
        **{key: np.full(len(OPS), value) for key, value in every.items()},
        "scale": np.full(len(OPS), energy_scale(part)),
    }


def test_the_clock_falls_with_the_power():
    clocks = allowed_clock(np.array([300.0, 200.0, 100.0, 50.0]), 20e12, 15e-12)
    assert clocks[0] == 1.0
    assert np.all(np.diff(clocks) < 0)
    # at the lowest voltage energy does not fall any more: half of the power, half of the clock
    assert allowed_clock(1.0, 20e12, 15e-12) == pytest.approx(0.5 * allowed_clock(2.0, 20e12, 15e-12), rel=1e-3)


def test_a_board_without_a_limit_keeps_its_clock():
    assert allowed_clock(np.inf, 20e12, 15e-12) == 1.0


def test_a_form_tells_which_boards_it_holds_back():
    values = {"rate": 0.9, "memory": 0.8, "energy": 1.5e-11, "lag": 1e-3}
    assert held_clock(values, columns(P100)) == pytest.approx(1.0)
    assert np.all(held_clock(values, columns(L4)) < 0.5)
    assert np.array_equal(held_clock({"rate": 0.9, "memory": 0.8}, columns(L4)), np.ones(len(OPS)))


def test_energy_goes_by_process_and_clock():
    assert energy_scale(A100) == pytest.approx(1.0, rel=0.01)
    assert energy_scale(P100) == pytest.approx(16 / 7 * (1.297 / 1.41) ** 2, rel=0.01)
    assert energy_scale(CATALOG.gpu("mi250x")) == 1.0


def test_a_board_of_little_power_is_predicted_from_others():
    """Energy and rate of two boards, one of them held back, say what a third does that is held back more."""
    model = next(one for one in efficiency_models("p", "p", one=1e12) if "energy" in [c.name for c in one.constants])
    truth = {"rate": 0.9, "memory": 0.8, "energy": 2e-11, "lag": 1e-4}
    parts = [A100, CATALOG.gpu("a100-pcie-40gb"), CATALOG.gpu("t4")]
    tables = [columns(part) for part in parts]
    together = {key: np.concatenate([each[key] for each in tables]) for key in tables[0]}
    noise = np.exp(0.02 * np.random.default_rng(2).standard_normal(len(together["flops"])))
    found = fit(model, Data(together, model.predict(truth, together) * noise)).values
    for key in ("rate", "energy"):
        assert found[key] == pytest.approx(truth[key], rel=0.05)
    away = columns(L4)
    assert np.abs(model.predict(found, away) / model.predict(truth, away) - 1.0).mean() < 0.06
    assert np.median(model.predict(truth, away) / (away["flops"] / 0.9e12)) > 2.0


def test_a_board_that_never_rests_has_no_time_above_its_limit():
    model = next(one for one in efficiency_models("p", "p", one=1e12) if "energy" in [c.name for c in one.constants])
    values = {"rate": 0.9, "memory": 0.8, "energy": 2e-11}
    rested = columns(L4)
    tired = {**rested, "rested": np.zeros(len(OPS))}
    assert np.array_equal(model.predict({**values, "lag": 1e-2}, tired), model.predict({**values, "lag": 0.0}, rested))
    assert model.predict({**values, "lag": 1e-2}, rested)[0] < 0.8 * model.predict({**values, "lag": 0.0}, rested)[0]


def test_what_a_layer_waits_for_comes_on_top():
    model = efficiency_models("p", "p", one=1e12)[0]
    plain = columns(P100)
    late = {**plain, "late": np.full(len(OPS), 3e-3)}
    values = {"rate": 0.9, "memory": 0.8}
    assert model.predict(values, late) - model.predict(values, plain) == pytest.approx(3e-3)


def test_memory_reaches_what_elementwise_kernels_reach():
    bounds = {one.name: one.low for one in efficiency_models("p", "p", one=1e12)[0].constants}
    assert bounds["memory"] == 0.8
