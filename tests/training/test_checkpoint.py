"""What a checkpoint costs, by hand."""

import math

import pytest

from simperf.training.failures.checkpoint import Checkpoint, daly, young


def test_one_store_for_all_or_one_for_each():
    shared = Checkpoint(100.0, nbytes=80e9, bandwidth=2e9, latency=1.0)
    assert (shared.pause(8), shared.write(8), shared.load(8)) == (41.0, 0.0, 40.0)
    own = Checkpoint(100.0, nbytes=80e9, bandwidth=2e9, per_node=True, load_bandwidth=4e9)
    assert (own.pause(8), own.load(8)) == (5.0, 2.5)


def test_beside_training_only_the_copy_stops_it():
    one = Checkpoint(30.0, nbytes=80e9, bandwidth=2e9, asynchronous=True, host_bandwidth=10e9)
    assert (one.pause(8), one.write(8), one.spacing(8)) == (1.0, 40.0, 40.0)


def test_nothing_to_save_takes_nothing():
    assert Checkpoint(10.0).pause(1) == Checkpoint(10.0).load(1) == 0.0


@pytest.mark.parametrize("mtbf", [1e3, 1e5])
def test_dalys_formula_is_youngs_for_cheap_checkpoints(mtbf):
    assert daly(1e-9 * mtbf, mtbf) == pytest.approx(young(1e-9 * mtbf, mtbf), rel=1e-4)
    assert daly(0.5 * mtbf, mtbf) < young(0.5 * mtbf, mtbf) == math.sqrt(1.0) * mtbf
