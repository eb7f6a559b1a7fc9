"""Layers whose rows no cache keeps: how long they wait for addresses, and who does not (simperf.cost.longsums)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.cost.longsums import row_seconds, spilled
from simperf.hardware import Catalog
from simperf.workload import Gemm

P100 = Catalog.load().gpu("p100-pcie-16gb")
TILE = (128, 32)


def test_at_worst_each_cluster_takes_one_row_a_clock():
    """Tiles of 128 x 32 take 160 rows in 8 steps, and 640 lanes could have done 1280 operations a clock meanwhile."""
    layer = Gemm(1, 65536, 4096, 2**22)
    rows = 512 * 128 * 160 * 2**22 / 8
    assert row_seconds(layer, TILE, P100) == pytest.approx(rows * 1280 / P100.peak["fp32"], rel=0.01)


def test_short_sums_do_not_wait():
    layer = Gemm(1, 4096, 4096, 512)
    assert row_seconds(layer, TILE, P100) < 0.01 * 2 * 4096 * 4096 * 512 / P100.peak["fp32"]


def test_a_larger_tile_waits_less():
    layer = Gemm(1, 8192, 8192, 65536)
    assert row_seconds(layer, (128, 128), P100) < 0.5 * row_seconds(layer, TILE, P100)


def test_other_architectures_and_parts_without_a_cache_do_not_wait():
    layer = Gemm(1, 4096, 4096, 65536)
    assert row_seconds(layer, TILE, Catalog.load().gpu("t4")) == 0.0
    assert row_seconds(layer, TILE, replace(P100, l2=None)) == 0.0


@given(st.integers(64, 2**17), st.integers(1, 5000))
def test_more_spills_from_longer_rows_more_waves_and_smaller_caches(length, waves):
    share = spilled(length, waves, 4 * 2**20)
    assert 0.0 < share < 1.0
    assert spilled(2 * length, waves, 4 * 2**20) > share
    assert spilled(length, 2 * waves, 4 * 2**20) > share
    assert spilled(length, waves, 2 * 2**20) > share
