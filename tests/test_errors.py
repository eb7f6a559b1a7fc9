"""Errors: the nearest names that they offer, and their way back from another process."""

import pickle

import pytest

from simperf.collectives.plan_bounds import PlanBoundsError
from simperf.errors import DeviceMemoryError, InputError, MachineError, Problem, UnknownNameError, nearest

PROBLEM = Problem("no such thing", file="a.toml", line=3, key="machine.use", value="'x'", expected="a machine")


@pytest.mark.parametrize(
    "error",
    [
        UnknownNameError("gpu", "v10", ["v100", "t4"]),
        UnknownNameError("gpu", "nvlink2", ["v100", "t4"], other="link"),
        InputError([PROBLEM, Problem("another")]),
        InputError(PROBLEM),
        DeviceMemoryError("it does not fit"),
        PlanBoundsError(PROBLEM),
        MachineError("gpu3 is not wired"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_back_from_another_process_as_it_was(error):
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_a_name_of_something_else_is_said():
    assert str(UnknownNameError("gpu", "nvlink2", ["v100"], other="link")) == (
        "unknown gpu 'nvlink2', which is a link; known: v100"
    )


def test_a_common_folder_makes_no_names_alike():
    known = ["d2l/async", "d2l/gpus", "d2l/packets", "training/overlap"]
    assert nearest("d2l/asinc", known) == "; did you mean 'd2l/async'?"
    assert "mean" not in nearest("d2l/nope", known)
    assert nearest("dl2/async", known) == "; did you mean 'd2l/async'?"


def test_names_that_begin_as_what_was_typed_come_first():
    known = ["dgx-h100", "h100-pcie-80gb", "h100-sxm5-80gb"]
    assert nearest("h100", known) == "; did you mean 'h100-pcie-80gb' or 'h100-sxm5-80gb' or 'dgx-h100'?"
