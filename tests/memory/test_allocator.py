"""Rounding by PyTorch's caching allocator."""

import pytest

from simperf.memory import allocated

MIB = 2**20


@pytest.mark.parametrize(
    ("asked", "counted"),
    [
        (0, 0),
        (1, 512),
        (512, 512),
        (MIB, MIB),
        (MIB + 1, MIB + 512),
        (19.5 * MIB, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10.5 * MIB, 12 * MIB - 1.5 * MIB),  # 1.5 MiB are cut off
        (11 * MIB, 12 * MIB),  # 1 MiB is not
        (33 * MIB + 1, 34 * MIB),
    ],
)
def test_a_request_is_rounded_as_its_segment_is(asked, counted):
    assert allocated(asked) == counted


def test_it_never_takes_less_and_at_most_a_mebibyte_more():
    for size in range(1, 40 * MIB, 37_777):
        assert size <= allocated(size) <= size + MIB + 512
