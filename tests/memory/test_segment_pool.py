"""Segments of fixed sizes: what they hold, what is taken, and what never is one block again."""

import random
from itertools import pairwise

import pytest

from simperf.memory.allocator import allocated, segment_size
from simperf.memory.growing_pool import GrowingPool
from simperf.memory.lifetimes import ALLOCATORS, LayerTensors, TensorEvent, taken
from simperf.memory.segment_pool import SegmentPool

M = 2.0**20


def filled(**sizes):
    pool = SegmentPool()
    for name, nbytes in sizes.items():
        pool.hold(name, nbytes)
    return pool


@pytest.mark.parametrize("nbytes", [1, 512, 513, M, M + 1, 9 * M, 10 * M, 10 * M + 1, 19.5 * M, 64 * M])
def test_a_tensor_alone_takes_a_segment_and_counts_as_allocated(nbytes):
    pool = filled(one=nbytes)
    assert pool.held == pool.peak == allocated(nbytes)
    assert pool.reserved == segment_size(-(-nbytes // 512) * 512)
    pool.free("one")
    assert (pool.held, pool.reserved) == (0.0, segment_size(-(-nbytes // 512) * 512))


def test_tensors_in_one_segment_are_one_block_again():
    pool = filled(first=6 * M, second=6 * M, third=6 * M)
    assert pool.reserved == 20 * M
    for name in ("first", "third", "second"):
        pool.free(name)
    pool.hold("all", 18 * M)
    assert pool.reserved == 20 * M


def test_tensors_in_segments_of_their_own_are_never_one_block_again():
    pool = filled(first=30 * M, second=30 * M)
    pool.free("first")
    pool.free("second")
    pool.hold("both", 60 * M)
    assert (pool.peak, pool.reserved) == (60 * M, 120 * M)


def test_the_smallest_block_that_holds_it_is_taken_and_small_tensors_have_segments_of_their_own():
    pool = filled(large=40 * M, middle=24 * M)
    pool.free("large")
    pool.free("middle")
    pool.hold("new", 20 * M)
    pool.hold("other", 40 * M)
    assert pool.reserved == 64 * M
    pool.hold("small", 1.0)
    assert pool.reserved == 66 * M, "3 MiB are free in a segment of large ones"


@pytest.mark.parametrize("seed", range(4))
def test_blocks_never_overlap_and_all_is_free_at_the_end(seed):
    """At any time: tensors of a segment are apart, and what is held and what is free is what was taken."""
    rng, pool, live = random.Random(seed), SegmentPool(), []
    for name in range(200):
        if live and rng.random() < 0.45:
            pool.free(live.pop(rng.randrange(len(live))))
        else:
            pool.hold(name, rng.choice((0, 1, 511, 70000, 2 * M, 9 * M, 11 * M, 33 * M)))
            live.append(name)
        blocks = sorted((one.segment, one.start, one.end) for one in (pool._blocks[each] for each in live) if one)
        assert all(one[0] < two[0] or one[2] <= two[1] for one, two in pairwise(blocks))
        assert sum(one.size for one in pool._free) + pool.held == pool.reserved >= pool.peak
    for name in live:
        pool.free(name)
    assert pool.held == 0
    assert len(pool._free) == len(pool._small), "each segment is one block"


@pytest.mark.parametrize("seed", range(4))
def test_every_allocator_takes_what_tensors_hold_at_least(seed):
    """Of multiples of 2 MiB, which all take as they are, one segment that grows takes no more than many do."""
    rng, events, sizes, held, most = random.Random(seed), [], {}, 0.0, 0.0
    for number in range(60):
        if sizes and rng.random() < 0.4:
            gone = rng.choice(sorted(sizes))
            held -= sizes.pop(gone)
            events.append(TensorEvent(gone, None))
        else:
            sizes[number] = 2 * M * rng.randint(10, 40)
            held += sizes[number]
            events.append(TensorEvent(number, sizes[number]))
        most = max(most, held)
    tensors = LayerTensors(tuple(events), ())
    found = {name: taken(tensors, name).forward for name in ALLOCATORS}
    assert found["none"] == 0.0
    assert most <= found["expandable-segments"]
    assert most <= found["fixed-segments"]
    assert {type(one().reserved) for one in (GrowingPool, SegmentPool)} == {float}
