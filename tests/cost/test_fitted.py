"""Costs from fitted constants, and the formulas behind them."""

import inspect
from dataclasses import fields

import numpy as np
import pytest

from simperf.cost import FittedRoofline, MatrixConstants, Roofline, matrix_time, row_time, stream_time
from simperf.cost.fitted import TILED
from simperf.hardware import Catalog
from simperf.hardware.profile_schema import FORMULAS
from simperf.workload.kinds import bmm, matmul, unary

GPU = Catalog.load().gpu("v100-sxm2-16gb")


def test_the_most_special_constants_hold():
    kernels = {
        "elementwise": {"overhead": 0.0, "rate": 1e11},
        "elementwise-fp32": {"overhead": 0.0, "rate": 2e11},
        "elementwise-fp32:relu": {"overhead": 0.0, "rate": 4e11},
    }
    model = FittedRoofline(GPU, kernels)
    assert model.cost(unary("relu", 10**6)).time == pytest.approx(8e6 / 4e11)
    assert model.cost(unary("tanh", 10**6)).time == pytest.approx(8e6 / 2e11)
    assert model.cost(unary("relu", 10**6, dtype="fp16")).time == pytest.approx(4e6 / 1e11)


def test_what_was_not_fitted_is_costed_by_the_catalogue():
    model = FittedRoofline(GPU, {"elementwise": {"overhead": 0.0, "rate": 1e11}})
    op = matmul(512, 512, k=512)
    assert model.cost(op) == Roofline(GPU).cost(op)


def test_a_product_is_slower_where_a_side_is_short():
    kernels = {"gemm": {"rate": 1e13, "half_k": 100.0, "overhead": 1e-6}}
    model = FittedRoofline(GPU, kernels)
    short, long = model.cost(matmul(1024, 1024, k=100)), model.cost(matmul(1024, 1024, k=10000))
    assert short.time - 1e-6 == pytest.approx(2 * short.flops / 1e13)
    assert long.time - 1e-6 == pytest.approx(1.01 * long.flops / 1e13)
    assert long.regime == "compute"


def test_a_tiny_kernel_is_overhead():
    cost = FittedRoofline(GPU, {"elementwise": {"overhead": 1e-5, "rate": 1e12}}).cost(unary("relu", 10))
    assert cost.regime == "overhead"
    assert cost.memory_time == pytest.approx(8e-11, rel=0.3)


def test_traffic_spills_from_the_cache():
    inside, outside = stream_time(np.array([1e5, 1e9]), overhead=0.0, rate=1e11, cached=1e12, capacity=1e7)
    assert inside == pytest.approx(1e5 / 1e12, rel=0.01)
    assert outside == pytest.approx(1e9 / 1e11, rel=0.01)
    cold = stream_time(1e5, overhead=0.0, rate=1e11, cached=1e12, capacity=1e7, cold=True)
    assert cold == pytest.approx(1e5 / 1e11)


def test_the_corner_of_a_product_is_rounded():
    equal = matrix_time(MatrixConstants(rate=1e12, memory=1e12), 1e9, 1e9, 1e3, 1e3, 1e3)
    assert equal == pytest.approx(1e-3 * 2 ** (1 / 8))


def test_long_sums_lose():
    short = matrix_time(MatrixConstants(rate=1e12, deep=1.0, deep_at=16384.0), 1e12, 0.0, 1e3, 1e5, 1e3)
    long = matrix_time(MatrixConstants(rate=1e12, deep=1.0, deep_at=16384.0), 1e12, 0.0, 1e3, 1e3, 1e5)
    assert short == pytest.approx(1.0, rel=1e-3)
    assert long == pytest.approx(2.0, rel=1e-3)
    strip = matrix_time(MatrixConstants(rate=1e12, deep=1.0, deep_at=16384.0, deep_m=1e3), 1e12, 0.0, 1e3, 1e3, 1e5)
    assert strip == pytest.approx(1.5, rel=1e-3)


def test_a_board_of_little_power_takes_as_long_as_its_energy():
    work = {"rate": 1e13, "memory": 1e12, "flop_energy": 2e-11, "byte_energy": 1e-10, "power": 50.0}
    assert matrix_time(MatrixConstants(**work), 1e13, 1e11, 1e3, 1e3, 1e3) == pytest.approx(
        (200.0 + 10.0) / 50.0, rel=1e-3
    )
    assert matrix_time(MatrixConstants(**work, stored=1e4), 1e13, 1e11, 1e3, 1e3, 1e3) == pytest.approx(1.0, rel=1e-3)
    strong = matrix_time(MatrixConstants(**{**work, "power": 1e4}), 1e13, 1e11, 1e3, 1e3, 1e3)
    assert strong == pytest.approx(1.0, rel=1e-3)
    # what the tiles waste takes energy, too
    assert matrix_time(MatrixConstants(**work), 1e13, 0.0, 1e3, 1e3, 1e3, share=0.5) == pytest.approx(
        400.0 / 50.0, rel=1e-3
    )


def test_no_call_is_shorter_than_the_hosts_part():
    assert matrix_time(MatrixConstants(rate=1e12, floor=2e-5), 1e6, 0.0, 10, 10, 10) == 2e-5
    assert matrix_time(MatrixConstants(rate=1e12, floor=2e-5), 1e9, 0.0, 10, 10, 10) == pytest.approx(1e-3)


def test_steady_work_has_no_energy_in_store_and_the_host_is_simulated():
    constants = {"rate": 1e13, "power": 50.0, "flop_energy": 2e-11, "stored": 1e3, "floor": 1.0}
    op = matmul(1024, 1024, k=1024)
    time = FittedRoofline(GPU, {"gemm": constants}).cost(op).time
    assert time == pytest.approx(
        float(matrix_time(MatrixConstants(rate=1e13, power=50.0, flop_energy=2e-11), op.flops, 0.0, 1, 1, 1))
    )


def test_a_library_without_small_tiles_wastes_what_they_would_save():
    flat = bmm(64, 64, n=4096, k=4096)
    every = {"rate": 1e13, "tiled": 1.0}
    few = {**every, "tile_m": 128.0, "tile_n": 64.0}
    times = [FittedRoofline(GPU, {"gemm": constants}).cost(flat).time for constants in (every, few)]
    assert times[1] > 1.6 * times[0]
    square = bmm(64, 4096, n=4096, k=4096)
    times = [FittedRoofline(GPU, {"gemm": constants}).cost(square).time for constants in (every, few)]
    assert times[1] == times[0]


def test_a_profile_has_the_constants_that_formulas_take():
    def taken(function):
        return {name for name, one in inspect.signature(function).parameters.items() if one.kind is one.KEYWORD_ONLY}

    assert taken(stream_time) - {"cold"} == FORMULAS["stream"]
    assert taken(row_time) == FORMULAS["rows"]
    assert {field.name for field in fields(MatrixConstants)} | set(TILED) == FORMULAS["matrix"]
