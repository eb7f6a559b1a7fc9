"""Kernels on whole rows: how they are launched, and when a row no longer comes from a cache (simperf.cost.rows)."""

from dataclasses import replace

import pytest

from simperf.cost import FittedRoofline, pressure, row_launch, row_time
from simperf.hardware import Catalog
from simperf.workload import Op
from simperf.workload.kinds import layernorm, softmax, unary

CATALOG = Catalog.load()
V100, T4 = CATALOG.gpu("v100-pcie-32gb"), CATALOG.gpu("t4")


def test_short_rows_of_softmax_stay_in_registers():
    for columns, size in ((32, 4), (1024, 4), (1024, 2)):
        assert row_launch("softmax", columns, size).again == 0.0
    assert row_launch("softmax", 1025, 4).again == 1.0
    assert row_launch("softmax", 768, 8).again == 1.0  # 6 KiB are too long in double precision


@pytest.mark.parametrize(
    ("columns", "threads", "tail"), [(2048, 256, 0.0), (3072, 512, 1 / 3), (5120, 512, 0.2), (8192, 512, 0.0)]
)
def test_blocks_of_softmax_and_what_their_vector_loads_leave(columns, threads, tail):
    launch = row_launch("softmax", columns, 4)
    assert launch.threads == threads
    assert launch.tail == pytest.approx(tail)


def test_pressure_is_bytes_under_way_over_bytes_of_cache():
    op = softmax(10**6, 8192)
    rows = 80 * 2048 // 512
    assert pressure(op, V100) == pytest.approx(rows * 8192 * 4 / (6 * 2**20 + 80 * 128 * 1024))
    assert pressure(softmax(10, 8192), V100) == pytest.approx(pressure(op, V100) * 10 / rows)
    assert pressure(softmax(10**6, 512), V100) == 0.0
    assert pressure(replace(op, row=0.0), V100) == 0.0
    assert pressure(unary("relu", 10**6), V100) == 0.0


def test_a_multiprocessor_of_fewer_threads_holds_fewer_rows():
    op = layernorm(10**6, 4096)
    assert pressure(op, T4) == pytest.approx(40 * 8 * 4096 * 4 / (4 * 2**20 + 40 * 64 * 1024))


def test_a_device_that_says_nothing_of_its_caches_has_usual_ones():
    assert pressure(softmax(10**6, 8192), replace(V100, l1=None, threads=None)) == pressure(softmax(10**6, 8192), V100)


def test_rows_are_read_again_when_they_no_longer_fit():
    times = [row_time(1e9, p, 1.0, overhead=0.0, rate=1e12, kept=0.4) for p in (0.0, 0.1, 0.4, 10.0)]
    assert times == sorted(times)
    assert times[0] == pytest.approx(1e-3)
    assert times[2] == pytest.approx(1.5e-3)
    assert times[3] == pytest.approx(2e-3, rel=1e-3)
    assert row_time(1e9, 10.0, 0.5, overhead=0.0, rate=1e12, kept=0.4) == pytest.approx(1.5e-3, rel=1e-3)
    assert row_time(1e9, 0.0, 1.0, 0.25, overhead=0.0, rate=1e12, loose=0.4) == pytest.approx(1.1e-3)


def test_what_was_fitted_is_what_is_played():
    constants = {"overhead": 1e-6, "rate": 700e9, "kept": 0.4, "loose": 0.5}
    model = FittedRoofline(V100, {"normalization-fp32:softmax": constants})
    op = softmax(8192, 3072)
    launch = row_launch("softmax", 3072, 4)
    expected = row_time(op.nbytes, pressure(op, V100), launch.again, launch.tail, **constants)
    assert model.cost(op).time == pytest.approx(float(expected))
    assert model.cost(softmax(8192, 12288)).time > 4.5 * model.cost(softmax(8192, 4096)).time
    unknown = Op("y", "softmax", nbytes_read=5e7, nbytes_written=5e7, family="normalization", elements=1.25e7)
    assert model.cost(unknown).time == pytest.approx(1e-6 + 1e8 / 700e9)
