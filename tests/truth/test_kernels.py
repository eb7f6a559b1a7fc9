"""Kernels by shape beside measured tables that no constant was fitted to."""

import pytest

from simperf.accuracy.product_tables import product_tables
from simperf.accuracy.products import product_grades


@pytest.fixture(scope="module")
def tables(truth):
    found = product_tables(truth)
    if not found:
        pytest.skip("no tables of kernels")
    return found


def test_products_of_a_gpu_that_was_left_out_beat_two_simple_models_of_its_own_table(tables):
    """The simple models are fitted to the GPU; the constants are not."""
    for one in product_grades(tables, gpus=["h100-sxm5-80gb", "h200-sxm-141gb"]):
        assert one.left_out < one.constant
        if one.layer != "fp8" and one.graded:
            assert one.left_out < one.roofline * 1.05


def test_a_profile_meets_other_shapes_of_its_gpu_better_than_the_catalogue(tables):
    grades = list(product_grades(tables, gpus=["h100-sxm5-80gb"]))
    assert all(one.profile < one.catalogue for one in grades)
    assert all(one.profile < one.roofline for one in grades)
