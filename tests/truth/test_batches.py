"""Ratios of two batches' times on one GPU: planning takes the largest error among published pairs."""

from simperf.study.planning.spread import BATCHES_APART, BATCHES_OFF
from tests.truth.batches import batch_pairs


def test_the_largest_error_of_a_pair_is_what_planning_takes(truth):
    pairs = batch_pairs(truth)
    errors = [abs(error) for error in pairs.values()]
    assert len(errors) >= 12
    assert max(errors) <= BATCHES_OFF < 1.1 * max(errors)
    assert max(large / small for *_, small, large in pairs) == BATCHES_APART
