"""Models of matrix products: tiles that a library has, boards of little power, and who may choose among them."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.accuracy.fits.datasheet import efficiency_models
from simperf.accuracy.fits.rows import best_fit
from simperf.calibrate.fit import Data, fit
from simperf.calibrate.fit.products import (
    CUTS,
    Cut,
    limited_model,
    pooled_limited_model,
    power_limited,
    product_columns,
    product_models,
)
from simperf.cost import FittedRoofline
from simperf.hardware import Catalog
from simperf.workload import Gemm
from simperf.workload.kinds import bmm

pytest.importorskip("scipy")

CATALOG = Catalog.load()
A100, T4, L4 = (CATALOG.gpu(name) for name in ("a100-pcie-80gb", "t4", "l4"))
SHAPES = (
    (12, 64, 2048, 2048),
    (40, 64, 3072, 3072),
    (320, 128, 384, 384),
    (96, 1024, 1024, 96),
    (2048, 512, 64, 512),
    (20480, 196, 64, 196),
    (192, 2048, 128, 2048),
    (1024, 512, 512, 256),
    (256, 3072, 3072, 96),
    (16, 1024, 1024, 1024),
)
OPS = [bmm(b, m, n=n, k=k) for b, m, n, k in SHAPES]


def table(part, times=None, **more):
    columns = {
        "flops": np.array([op.flops for op in OPS]),
        "nbytes": np.array([op.nbytes for op in OPS]),
        **product_columns([op.gemm for op in OPS], part),
        **more,
    }
    return Data.table(np.ones(len(OPS)) if times is None else times, **columns)


def test_every_choice_of_tiles_has_its_column():
    columns = product_columns([Gemm(64, 64, 4096, 4096)], A100)
    assert len([name for name in columns if name.startswith("share")]) == len(CUTS)
    assert columns["share 128x64"][0] < 0.6 * columns["share"][0]
    assert product_columns([Gemm(1, 2, 3, 4)], None)["share"] == 1.0


def test_the_tiles_of_a_library_are_found_and_its_rate():
    """A library without tiles of less than 128 rows: flat results tell it."""
    truth = FittedRoofline(A100, {"gemm": {"rate": 18e12, "tiled": 1.0, "tile_m": 128.0, "tile_n": 64.0}})
    rng = np.random.default_rng(0)
    times = np.array([truth.cost(op).time for op in OPS]) * np.exp(0.02 * rng.standard_normal(len(OPS)))
    found = best_fit(product_models("p", "p", A100, overhead=0.0), table(A100, times), strict=True)
    assert found.model.fixed["tile_m"] == 128.0
    assert found.values["rate"] == pytest.approx(18e12, rel=0.03)


def test_no_rate_exceeds_the_data_sheet():
    data = table(A100)
    times = data.columns["flops"] / (2.0 * A100.peak["fp32"])
    found = best_fit(product_models("p", "p", A100, overhead=0.0), table(A100, times), strict=True)
    assert found.values["rate"] <= A100.peak["fp32"]


def test_boards_of_little_power_are_told_by_their_data_sheets():
    limited = [name for name in ("t4", "l4", "a10") if power_limited(CATALOG.gpu(name))]
    assert limited == ["t4", "l4", "a10"]
    assert not any(power_limited(CATALOG.gpu(f"{name}")) for name in ("p100-pcie-16gb", "v100-pcie-32gb"))
    assert not power_limited(A100)
    assert not power_limited(T4, "fp16")
    assert not power_limited(replace(T4, power=None))


def test_energies_come_back_from_boards_that_share_them():
    rng = np.random.default_rng(4)
    energies, byte, lag = (15e-12, 6e-12), 1.2e-10, 2e-3
    parts, tables = (T4, L4), []
    for i, (part, each) in enumerate(zip(parts, energies, strict=True)):
        model = limited_model("p", "p", part, overhead=0.0, byte_energy=byte, lag=lag)
        times = model.predict({"flop_energy": each, "floor": 1e-6}, table(part).columns)
        noise = np.exp(0.02 * rng.standard_normal(len(OPS)))
        tables.append(table(part, times * noise, gpu=np.full(len(OPS), i), fixed=np.zeros(len(OPS))))
    columns = {key: np.concatenate([one.columns[key] for one in tables]) for key in tables[0].columns}
    data = Data(columns, np.concatenate([one.measured for one in tables]))
    found = fit(pooled_limited_model("p", "p", parts, cuts=(Cut(32, 32), Cut(32, 32)), sharpness=2.0), data).values
    assert found["flop_energy_0"] == pytest.approx(energies[0], rel=0.1)
    assert found["flop_energy_1"] == pytest.approx(energies[1], rel=0.1)
    assert found["byte_energy"] == pytest.approx(byte, rel=0.2)
    assert found["lag"] == pytest.approx(lag, rel=0.3)


def test_shares_of_a_data_sheet_come_back():
    model = efficiency_models("p", "p", one=1e12)[0]
    given = {
        name: np.full(len(OPS), value)
        for name, value in (
            ("peak", A100.peak["fp32"]),
            ("bandwidth", A100.memory_bandwidth),
            ("power", 300.0),
            ("known", 1.0),
            ("late", 0.0),
            ("rested", 1.0),
        )
    }
    data = table(A100, **given)
    scaled = {"flops": data.columns["flops"] / given["peak"] * 1e12}
    scaled["nbytes"] = data.columns["nbytes"] / given["bandwidth"] * 1e12
    columns = {**data.columns, **scaled}
    times = model.predict({"rate": 0.9, "memory": 0.8}, columns)
    found = fit(model, Data(columns, times)).values
    assert found["rate"] == pytest.approx(0.9, rel=1e-3)
    slow = np.array([op.flops for op in OPS]) / (0.9 * A100.peak["fp32"])
    assert np.all(times >= 0.99 * slow)
