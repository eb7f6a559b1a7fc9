"""What tensors hold over time, and a pool of bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import DeviceMemoryError
from simperf.memory import KINDS, MemoryPool, Tensor, held

COUNT = 12
TENSORS = st.builds(
    Tensor,
    st.sampled_from(KINDS),
    st.integers(0, 1000).map(float),
    st.integers(0, COUNT - 1),
    st.integers(0, COUNT + 3),
)


@given(st.lists(TENSORS, max_size=20))
def test_held_is_the_sum_of_what_is_alive(tensors):
    series = held(tensors, COUNT)
    assert set(series) == {one.kind for one in tensors}
    for kind, values in series.items():
        for at in range(COUNT):
            alive = [one for one in tensors if one.kind == kind and one.born <= at < max(one.dies, one.born + 1)]
            assert values[at] == sum(one.nbytes for one in alive)


@given(st.lists(st.floats(0, 40), max_size=10))
def test_a_pool_holds_no_more_than_there_is(sizes):
    pool, taken = MemoryPool("gpu0", 100.0), []
    for size in sizes:
        try:
            pool.hold(size, "layer")
        except DeviceMemoryError:
            assert pool.held + size > 100.0
        else:
            taken.append(size)
        assert pool.held == pytest.approx(sum(taken))
        assert pool.held <= pool.peak <= 100.0
    for size in taken:
        pool.free(size)
    assert pool.held == pytest.approx(0.0, abs=1e-9)
    assert pool.left == pytest.approx(100.0)
