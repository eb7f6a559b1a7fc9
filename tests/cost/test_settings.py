"""What calls of a training step take on a CPU beside their operations, in closed form."""

import pytest

from simperf.cost.settings import ProcessorCalls

CALLS = ProcessorCalls(forward=1e-6, backward=3e-6, update={"sgd": (2e-4, 5e-6)}, late=1e-4, late_at=2e7)


def test_autograd_adds_to_calls_of_its_passes_alone():
    assert [CALLS.added(within) for within in ("forward", "backward", "update")] == [1e-6, 3e-6, 0.0]


def test_the_python_of_an_update_is_paid_once_and_for_each_tensor():
    assert CALLS.python("sgd", tensors=10, touched=0.0) == pytest.approx(2e-4 + 10 * 5e-6)
    assert CALLS.python("sgd", tensors=20, touched=0.0) - CALLS.python("sgd", tensors=10, touched=0.0) == pytest.approx(
        10 * 5e-6
    )


def test_it_takes_longer_the_more_the_step_has_touched():
    longer = [CALLS.python("sgd", tensors=1, touched=touched) - 2.05e-4 for touched in (0.0, 2e7, 1e12)]
    assert longer == pytest.approx([0.0, 0.5e-4, 1e-4], rel=1e-3, abs=1e-12)


def test_an_optimizer_that_was_not_measured_adds_nothing():
    assert CALLS.python("adamw", tensors=100, touched=1e12) == 0.0
    assert ProcessorCalls().python("sgd", tensors=100, touched=1e12) == 0.0
