"""Tiles and waves of matrix products (simperf.cost.tiles)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.cost import Roofline, tiling
from simperf.cost.tiles import library_tile, loading, tile_speed
from simperf.hardware import Catalog
from simperf.workload import Gemm
from simperf.workload.kinds import bmm

sizes = st.integers(1, 20000)


def test_one_wave_of_the_largest_tiles_wastes_only_the_pipeline():
    found = tiling(Gemm(1, 256 * 8, 128 * 10, 4096), 80)
    assert (found.tiles, found.waves) == (80, 1)
    assert found.efficiency == pytest.approx(4096 / (4096 + 32))


def test_one_row_more_than_full_waves_costs():
    full, over = (tiling(Gemm(1, 256 * 8 + extra, 128 * 10, 4096), 80) for extra in (0, 1))
    assert over.efficiency < full.efficiency


def test_a_product_smaller_than_the_device_leaves_it_idle():
    assert tiling(Gemm(1, 64, 64, 128), 80).efficiency < 0.1


def test_a_long_inner_dimension_is_split():
    short, long = tiling(Gemm(1, 128, 128, 255), 80), tiling(Gemm(1, 128, 128, 65536), 80)
    assert long.tiles > short.tiles
    assert long.efficiency > 2 * short.efficiency


def test_many_small_products_fill_the_device_together():
    assert tiling(Gemm(512, 128, 128, 512), 80).efficiency > 3 * tiling(Gemm(1, 128, 128, 512), 80).efficiency


@given(st.integers(1, 300), sizes, sizes, sizes, st.integers(1, 200))
def test_efficiency_is_a_share_and_waves_hold_all_tiles(batch, m, n, k, sms):
    found = tiling(Gemm(batch, m, n, k), sms)
    assert 0 < found.efficiency <= 1
    assert (found.waves - 1) * sms < found.tiles <= found.waves * sms


@given(sizes, sizes, sizes)
def test_transposing_the_result_changes_nothing(m, n, k):
    assert tiling(Gemm(1, m, n, k), 108).efficiency == tiling(Gemm(1, n, m, k), 108).efficiency


def test_the_only_tile_is_taken_whatever_it_wastes():
    """Half of a tile of 128 rows is wasted on 64, and k is never split."""
    flat, full = (tiling(Gemm(80, m, 128, 4096), 80, least=(128, 128), only=True) for m in (64, 128))
    assert (flat.tiles, flat.waves) == (full.tiles, full.waves) == (80, 1)
    assert flat.efficiency == pytest.approx(0.5 * full.efficiency)
    assert full.efficiency == pytest.approx(4096 / 4104)


def test_batches_run_on_the_tile_of_their_library():
    """A P100's batches of flat products: one tile of 64 rows, half of it empty; in half precision any tile."""
    p100 = Catalog.load().gpu("p100-pcie-16gb")
    assert library_tile(bmm(64, 32, n=1024, k=1024), p100) == (64, 128)
    assert library_tile(bmm(64, 32, n=1024, k=1024, dtype="fp16"), p100) is None
    flat, high = (Roofline(p100).cost(bmm(64, m, n=1024, k=1024)).compute_time for m in (32, 64))
    assert flat == pytest.approx(high)


def test_matrix_units_need_larger_tiles():
    """Small tiles of half precision load for longer than they multiply: a product that needs them loses more."""
    a100 = Catalog.load().gpu("a100-sxm4-80gb")
    small, large = Gemm(1, 1024, 1024, 1024), Gemm(1, 16384, 16384, 16384)
    plain, units = (
        [tiling(gemm, 108, half=loading(a100, dtype)) for gemm in (small, large)] for dtype in ("fp32", "fp16")
    )
    assert units[1].efficiency == pytest.approx(plain[1].efficiency, rel=0.02)
    assert units[0].efficiency < 0.8 * plain[0].efficiency
    assert loading(a100, "int4") == loading(a100, "fp32")


def test_a_library_without_large_tiles_is_slower():
    assert tile_speed(128, 32) < tile_speed(64, 128) < tile_speed(128, 128) < tile_speed(256, 128) == 1.0
    assert tile_speed(64, 64, half=96.0) < 0.7 * tile_speed(64, 64)
