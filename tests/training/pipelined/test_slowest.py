"""The rank that is named the slowest: the first of those that take as long, but for rounding."""

from types import SimpleNamespace

import pytest

from simperf.training.pipelined.outcome import _tell_slowest


def named(*kernels):
    """The note on ranks whose kernels take so long in a step of 1 s, the last rank first."""
    ranks = [
        SimpleNamespace(
            rank=rank,
            stage=0,
            device=SimpleNamespace(name=f"gpu{rank}"),
            spent=SimpleNamespace(readings=[SimpleNamespace(kernels=time)]),
        )
        for rank, time in enumerate(kernels)
    ]
    session = SimpleNamespace(notes=[])
    _tell_slowest(session, ranks[::-1], 1.0, 0)
    return session.notes[0].split(" (")[0] if session.notes else ""


@pytest.mark.parametrize(
    ("kernels", "told"),
    [
        ((0.5, 0.7, 0.7 + 1e-13, 0.7), "slowest: rank 1"),
        ((0.5, 0.7, 0.7 + 1e-8, 0.7), "slowest: rank 2"),
        ((0.7, 0.5), "slowest: rank 0"),
        ((0.7, 0.6995), ""),
    ],
)
def test_ties_are_broken_by_the_lowest_rank(kernels, told):
    assert named(*kernels) == told
