"""The bucket rule of DistributedDataParallel."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.training.data.buckets import assign_buckets
from simperf.training.step import Gradient

MIB = 2**20


def gradients(*sizes):
    return [Gradient(f"g{index}", size * MIB, index) for index, size in enumerate(sizes)]


def test_a_bucket_is_closed_by_the_gradient_with_which_it_reaches_its_limit():
    buckets = assign_buckets(gradients(0.5, 0.6, 20, 4, 2, 30, 1))
    assert [bucket.nbytes / MIB for bucket in buckets] == pytest.approx([1.1, 26, 30, 1])
    assert [bucket.ready for bucket in buckets] == [1, 4, 5, 6]


def test_the_first_limit_is_no_larger_than_the_others():
    assert [b.nbytes for b in assign_buckets(gradients(2, 2, 2), 2 * MIB, first=100 * MIB)] == [2 * MIB] * 3


def test_limits_of_nothing_and_of_everything():
    assert len(assign_buckets(gradients(1, 2, 3), 0.0)) == 3
    assert len(assign_buckets(gradients(1, 2, 3), math.inf, first=math.inf)) == 1
    assert assign_buckets([]) == ()


@given(st.lists(st.floats(0.01, 60), max_size=30), st.floats(0, 100), st.floats(0, 100))
def test_every_gradient_is_in_one_bucket_and_in_order(sizes, cap, first):
    buckets = assign_buckets(gradients(*sizes), cap * MIB, first=first * MIB)
    assert [one.name for bucket in buckets for one in bucket.gradients] == [f"g{i}" for i in range(len(sizes))]
    assert sum(bucket.nbytes for bucket in buckets) == pytest.approx(sum(sizes) * MIB)
    assert [bucket.ready for bucket in buckets] == sorted(bucket.ready for bucket in buckets)
    for bucket in buckets[1:-1]:
        assert bucket.nbytes >= cap * MIB > bucket.nbytes - bucket.gradients[-1].nbytes - 1


def test_a_limit_below_nothing_is_refused():
    with pytest.raises(InputError, match="bucket"):
        assign_buckets(gradients(1), -1.0)
