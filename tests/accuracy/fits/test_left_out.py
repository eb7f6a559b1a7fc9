"""A GPU that was left out: what its interval is made of, on invented tables."""

import numpy as np
import pytest

from simperf.accuracy.fits import left_out as module
from simperf.accuracy.fits.kernel_data import kernel_data
from simperf.accuracy.fits.left_out import left_out_rows
from simperf.accuracy.kernel_tables import added_time, by_operation
from simperf.hardware import Catalog
from simperf.workload.kinds import binary, linear, matmul, unary

pytest.importorskip("scipy")

CATALOG = Catalog.load()
NAMES = {
    "P100-PCIE": "p100-pcie-16gb",
    "V100-PCIe-32GB": "v100-pcie-32gb",
    "T4": "t4",
    "A100-PCIE-40GB": "a100-pcie-40gb",
    "L4": "l4",
}
CASE = {"id": "roof-elementwise-x", "source": {"repo": "nobody/nothing"}}


def table(gpu, apart, scatter=0.01):
    """Two operations at 0.8 of a GPU's memory, all of its times longer by as much, each by its own."""
    part, rng, rows = CATALOG.gpu(NAMES[gpu]), np.random.default_rng(len(gpu)), []
    for number in range(8):
        for op in (unary("relu", 4_000_000 * 2**number), binary("add", 4_000_000 * 2**number)):
            time = op.nbytes / (0.8 * part.memory_bandwidth) * np.exp(apart + scatter * rng.standard_normal())
            rows.append(("", op, time + part.kernel_floor))
    return CASE, gpu, rows


def rows_of(monkeypatch, apart):
    monkeypatch.setattr(module, "kernel_cases", iter)
    found = left_out_rows([table(gpu, each) for gpu, each in zip(NAMES, apart, strict=True)])
    return {row.name: row for row in found}


def test_its_own_readings_have_no_part_in_its_interval(monkeypatch):
    before = rows_of(monkeypatch, (0.05, -0.03, 0.02, -0.08, 0.04))
    after = rows_of(monkeypatch, (0.05, -0.03, 0.40, -0.08, 0.04))
    own, other = "relu fp32, T4", "relu fp32, L4"
    assert after[own].width == pytest.approx(before[own].width, rel=1e-6)
    assert after[own].coverage == 0.0 < before[own].coverage
    assert after[other].width > 2.0 * before[other].width


def test_boards_that_are_apart_widen_the_interval_and_not_the_prediction(monkeypatch):
    near = rows_of(monkeypatch, (0.01, -0.01, 0.0, -0.005, 0.005))
    apart = rows_of(monkeypatch, (0.1, -0.1, 0.0, -0.05, 0.05))
    for name, row in apart.items():
        assert row.width > 3.0 * near[name].width
        assert row.coverage == 1.0
    assert near["relu fp32, T4"].width < 0.05
    assert apart["relu fp32, T4"].outside < 0.03


def test_an_operation_of_two_gpus_is_no_row(monkeypatch):
    monkeypatch.setattr(module, "kernel_cases", iter)
    assert list(left_out_rows([table("T4", 0.0), table("L4", 0.0)])) == []


def test_operations_are_counted_in_times_that_the_peaks_take():
    part = CATALOG.gpu("t4")
    op = matmul(1024, 1024, k=1024)
    plain, scaled = (kernel_data([("", op, 1e-3)], part, scaled=each, added=2e-4 * each) for each in (False, True))
    assert plain.columns["nbytes"][0] == op.nbytes
    assert scaled.columns["nbytes"][0] / 1e12 == pytest.approx(op.nbytes / part.memory_bandwidth)
    assert scaled.columns["flops"][0] / 1e12 == pytest.approx(op.flops / part.peak["fp32"])
    assert (plain.measured[0], scaled.measured[0]) == pytest.approx((1e-3, 8e-4))


def test_products_are_one_group_and_every_other_kind_its_own():
    rows = [("", op, 1e-3) for op in (matmul(8, 8, k=8), linear(8, 8, fan_out=8), unary("relu", 8), unary("tanh", 8))]
    assert {name: len(group) for name, group in by_operation(rows).items()} == {"product": 2, "relu": 1, "tanh": 1}


def test_the_time_that_a_program_adds_is_its_own():
    op = matmul(8, 8, k=8)
    assert added_time(CASE, op) == 0.0
    assert added_time({"source": {"repo": "sitar-lab/NeuSight"}}, op) == 16e-6
    assert added_time({"source": {"repo": "PrincetonUniversity/LLMCompass"}}, op) == 28e-6
