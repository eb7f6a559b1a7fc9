"""Ratios of two batches' times on one GPU: planning takes the largest error among published pairs."""

from simperf.study.planning.spread import BATCHES_OFF
from tests.truth.batches import batch_pairs


def test_the_largest_error_of_a_pair_is_what_planning_takes(truth):
    errors = [abs(error) for error in batch_pairs(truth).values()]
    assert len(errors) >= 12
    assert max(errors) <= BATCHES_OFF < 1.1 * max(errors)
