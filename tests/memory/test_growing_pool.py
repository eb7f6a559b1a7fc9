"""A pool that grows: what it holds, what it takes, and what stays free between tensors."""

import random
from itertools import pairwise

import pytest

from simperf.memory.growing_pool import GrowingPool

K = 1024.0


def filled(*names):
    pool = GrowingPool()
    for name in names:
        pool.hold(name, K * len(name))
    return pool


def test_tensors_of_falling_sizes_take_what_they_hold():
    pool = filled("aaaa")
    pool.free("aaaa")
    for name in ("bbb", "c"):
        pool.hold(name, K * len(name))
    assert (pool.held, pool.reserved) == (4 * K, 4 * K)


def test_free_neighbours_are_one_block():
    pool = filled("aa", "b", "kept")
    pool.free("aa")
    pool.free("b")
    pool.hold("new", 3 * K)
    assert pool.reserved == 7 * K


def test_the_smallest_block_that_is_large_enough_is_taken():
    pool = filled("aaa", "x", "bb", "y")
    pool.free("aaa")
    pool.free("bb")
    pool.hold("first", 2 * K)
    pool.hold("second", 3 * K)
    assert pool.reserved == 7 * K


def test_a_free_block_at_the_end_grows_and_is_taken_last():
    pool = filled("aa", "x", "bb")
    pool.free("bb")
    pool.hold("larger", 3 * K)
    assert pool.reserved == 6 * K
    pool.free("aa")
    pool.free("larger")
    pool.hold("fits both", 2 * K)
    pool.hold("end", 3 * K)
    assert pool.reserved == 6 * K


def test_what_is_too_small_stays_free_and_tensors_of_no_bytes_take_none():
    pool = filled("a", "xx")
    pool.free("a")
    pool.hold("bb", 2 * K)
    pool.hold("nothing", 0.0)
    pool.free("nothing")
    assert (pool.peak, pool.reserved) == (4 * K, 5 * K)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_never_overlap_and_all_is_free_at_the_end(seed):
    """At any time: tensors are apart, the segment holds them, and the peak is at most its size."""
    rng, pool, live = random.Random(seed), GrowingPool(), []
    for name in range(200):
        if live and rng.random() < 0.45:
            pool.free(live.pop(rng.randrange(len(live))))
        else:
            pool.hold(name, rng.choice((0, 1, 511, 513, 4096, 70000)))
            live.append(name)
        blocks = sorted(pool._blocks[one] for one in live)
        taken = [one for one in blocks if one[0] < one[1]]
        assert all(one[1] <= two[0] for one, two in pairwise(taken))
        assert sum(end - start for start, end in taken) == pool.held <= pool.peak <= pool.reserved
        assert sum(end - start for start, end in pool._free) + pool.held == pool.reserved
    for name in live:
        pool.free(name)
    assert pool.held == 0
    pool.hold("all", pool.reserved)
    assert pool.held == pool.reserved
