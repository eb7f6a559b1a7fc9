"""Measured tables: exact on their points, flagged outside (simperf.cost.table)."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.cost import MeasuredTable, SizeModel
from simperf.errors import InputError, SimperfError

TABLE = MeasuredTable([(1e3, 1e-6), (1e4, 2e-6), (1e6, 1e-4)])
points = st.dictionaries(st.floats(1, 1e12), st.floats(1e-9, 1e3), min_size=2, max_size=8)


def test_power_laws_are_met_exactly():
    table = MeasuredTable([(size, 3e-9 * size**0.7) for size in (1e2, 1e4, 1e9)])
    assert table.time(12345.0) == pytest.approx(3e-9 * 12345.0**0.7)
    assert isinstance(table, SizeModel)


@given(points)
def test_points_are_met_and_nothing_between_leaves_its_neighbours(found):
    table = MeasuredTable(found.items())
    for size, time in found.items():
        assert table.estimate(size).time == pytest.approx(time, rel=1e-6)
        assert not table.estimate(size).extrapolated
    sizes = sorted(found)
    for low, high in pairwise(sizes):
        time = table.time(min(high, max(low, math.sqrt(low * high))))
        assert min(found[low], found[high]) * (1 - 1e-6) <= time <= max(found[low], found[high]) * (1 + 1e-6)


@pytest.mark.parametrize(("size", "time"), [(1e2, 1e-6 * 10 ** -math.log10(2)), (1e8, 1e-4 * 50)])
def test_outside_is_refused_or_flagged(size, time):
    with pytest.raises(SimperfError, match=r"outside the measured sizes 1000 to 1e\+06"):
        TABLE.time(size)
    estimate = TABLE.estimate(size)
    assert estimate.extrapolated
    assert estimate.time == pytest.approx(time)


def test_repeated_sizes_give_their_median():
    assert MeasuredTable([(1, 1.0), (1, 9.0), (1, 2.0), (2, 4.0)]).time(1) == pytest.approx(2)


def test_tables_and_sizes_without_meaning():
    with pytest.raises(InputError) as caught:
        MeasuredTable([(0, 1.0), (1, math.nan)])
    assert [p.key for p in caught.value.problems] == ["points[0]", "points[1]"]
    with pytest.raises(InputError, match="two sizes"):
        MeasuredTable([(1, 1.0), (1, 2.0)])
    with pytest.raises(InputError, match="size"):
        TABLE.estimate(-1)
