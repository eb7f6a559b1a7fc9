"""Distinct values without sorting: as numpy finds them."""

import numpy as np
import pytest

from simperf.layout.distinct import distinct, renumber


@pytest.mark.parametrize(("size", "most"), [(1000, 3), (1000, 900), (1, 1), (0, 1)])
def test_distinct_values_are_those_of_numpy(size, most):
    values = np.random.default_rng(1).integers(0, most, size).astype(np.uint64)
    for mine, theirs in zip(distinct(values), np.unique(values, return_index=True, return_inverse=True), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_renumbering_keeps_shape_and_order():
    numbers = np.array([[4, 0, 4], [9, 4, 2]])
    found, place = renumber(numbers, 10)
    assert found.tolist() == [0, 2, 4, 9]
    assert found[place].tolist() == numbers.tolist()
