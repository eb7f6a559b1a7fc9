"""Rules of freshness, clocks against a naive minimum, quantiles."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.training.servers.staleness import Clocks, Consistency, Staleness


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60))
def test_the_slowest_clock_is_the_minimum_of_those_who_stay(workers, moves):
    clocks, naive = Clocks(workers), [0.0] * workers
    for number, leaves in moves:
        worker = number % workers
        if leaves:
            clocks.leave(worker)
            naive[worker] = math.inf
        else:
            clocks.tick(worker)
            naive[worker] += 1
        assert clocks.slowest == min(naive)
        assert clocks.done == naive


@given(st.lists(st.integers(0, 50), min_size=1), st.floats(0.01, 1.0))
def test_quantiles_are_those_of_the_sorted_list(ages, share):
    staleness = Staleness()
    for age in ages:
        staleness.note(age)
    ordered = sorted(ages)
    assert staleness.quantile(share) == next(a for i, a in enumerate(ordered) if i + 1 >= share * len(ages))
    assert staleness.mean == pytest.approx(sum(ages) / len(ages))
    assert staleness.highest == ordered[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "async"}, "did you mean 'asynchronous'"),
        ({"mode": "bounded", "bound": -1}, "0 or more"),
        ({"mode": "bounded", "bound": math.nan}, "0 or more"),
        ({"mode": "backup", "backup": -1}, "backup workers are 0 or more"),
        ({"mode": "synchronous", "backup": 1}, "belong to the mode backup"),
    ],
)
def test_rules_without_meaning(options, words):
    with pytest.raises(InputError, match=words):
        Consistency(**options)


def test_someone_must_be_waited_for():
    with pytest.raises(InputError, match="leave no gradient"):
        Consistency("backup", backup=4).needed(4)
    assert Consistency("backup", backup=3).needed(4) == 1
    assert Consistency("asynchronous").needed(4) == 1
