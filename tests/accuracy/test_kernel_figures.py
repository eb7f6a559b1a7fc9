"""Kernels by shape beside simple models, on invented tables of which the simple models are right."""

import numpy as np
import pytest

from simperf.accuracy.kernel_figures import LEFT_OUT, kernel_figures, left_out_figures, other_shapes
from simperf.accuracy.lattice_profile import product_calls
from simperf.accuracy.product_tables import ProductTable
from simperf.accuracy.simple_kernels import amounts_of, one_rate, three_constants
from simperf.hardware import Catalog
from simperf.workload.kinds import matmul

SIZES = (256, 512, 1024, 2048, 4096, 8192)
H100, A100 = (Catalog.load().gpu(name) for name in ("h100-sxm5-80gb", "a100-sxm4-80gb"))


def amounts(part):
    return amounts_of(part, [matmul(n, n, k=n, dtype="bf16") for n in SIZES])


def table(part, share):
    """Square products that all take `share` of the peak; every second may be fitted."""
    sizes = np.array(SIZES, dtype=float)
    measured = 2 * sizes**3 / (share * part.peak["bf16"])
    return ProductTable(part, "bfloat16", sizes, sizes, sizes, measured, np.arange(len(SIZES)) % 2 == 0, "invented")


def test_one_rate_is_the_median_share_of_the_peak_wherever_it_is_asked():
    of = amounts(H100)
    times = of.flops / (0.5 * of.peak)
    there = amounts(A100)
    assert one_rate(of, times, there) == pytest.approx(there.flops / (0.5 * there.peak))


def test_three_constants_are_found_again():
    of = amounts(H100)
    times = np.maximum(of.flops / (0.6 * of.peak), of.nbytes / (0.8 * of.bandwidth)) + 4e-6
    assert three_constants(of, times, of) == pytest.approx(times, rel=1e-3)


def test_only_shapes_that_nothing_was_fitted_to_are_graded():
    (one,) = other_shapes([product_calls(table(H100, 0.5))])
    assert one.group == "products, other shapes"
    assert len(one.error) == len(SIZES) // 2
    assert one.one_rate == pytest.approx(0.0, abs=1e-9)


def test_a_gpu_that_is_left_out_is_graded_on_all_shapes_by_the_others():
    first, second = left_out_figures([table(H100, 0.5), table(A100, 0.25)])
    assert (first.group, first.gpu, len(first.error)) == (LEFT_OUT, "h100-sxm5-80gb", len(SIZES))
    assert first.one_rate == pytest.approx(1.0)  # twice as long, by the other GPU's share of the peak
    assert second.one_rate == pytest.approx(-0.5)


def test_a_folder_without_tables_of_kernels_has_none(tmp_path):
    assert kernel_figures(tmp_path) == []
