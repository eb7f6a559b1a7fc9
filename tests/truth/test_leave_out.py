"""GPUs that nobody measured: the shipped profile is what the command makes, and its intervals hold left-out GPUs."""

import pytest

from simperf.accuracy.leave_out.measured_steps import measured_steps
from simperf.accuracy.leave_out.profile import unseen_text
from simperf.hardware import Catalog
from simperf.scenario.calibration import UNSEEN
from tests.truth.left_out_intervals import kernel_coverage, step_coverage
from tests.truth.steps import left_out, predicted

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def steps():
    """All measured steps, each played once."""
    return list(measured_steps())


@pytest.mark.long
@pytest.mark.truth
def test_the_shipped_profile_is_made_of_the_measured_data(cases, steps, tmp_path):
    path = tmp_path / f"{UNSEEN}.toml"
    path.write_text(unseen_text(list(cases.values()), steps))
    made, shipped = (Catalog.load().profile(name) for name in (str(path), UNSEEN))
    assert (made.dataset, made.made) == (shipped.dataset, shipped.made)
    for name, model in made.model.items():
        assert model.at() == pytest.approx(shipped.model[name].at(), rel=1e-5, abs=1e-7)


@pytest.mark.truth
def test_intervals_hold_nine_of_ten_kernels_of_an_architecture_that_was_left_out(cases):
    found = kernel_coverage(list(cases.values()))
    inside, points = sum(one[0] for one in found.values()), sum(one[1] for one in found.values())
    assert points == 467
    assert inside / points >= 0.9
    assert min(one[0] / one[1] for one in found.values()) >= 0.5


@pytest.mark.long
@pytest.mark.truth
def test_intervals_hold_nine_of_ten_steps_of_an_architecture_that_was_left_out(cases, steps):
    """Kernels' draws alone are wider than what whole steps are missed by: more than nine of ten lie inside."""
    found = step_coverage(list(cases.values()), steps)
    assert set(found) == {"ada", "ampere", "blackwell", "hopper", "pascal", "volta"}
    inside, points = sum(one[0] for one in found.values()), sum(one[1] for one in found.values())
    assert points == 101
    assert inside / points > 0.85
    assert min(one[0] / one[1] for one in found.values()) >= 0.5
    assert max(width for *_, width in found.values()) < 0.9


@pytest.mark.long
@pytest.mark.truth
def test_a_simulated_step_that_was_left_out_is_the_one_that_is_counted(cases, truth):
    """Its frontend and its copies are played too, which hardly count."""
    ((step, (best, low, high)),) = left_out(str(truth), ["lambda-b200-resnet50"])
    ((_, (same, *narrow)),) = left_out(str(truth), ["lambda-b200-resnet50"], kernels_only=True)
    assert best == same
    assert (step.part.architecture, step.sort) == ("blackwell", "tf32")
    assert low < step.measured < high
    assert narrow[0] < step.measured < narrow[1]


def test_steps_are_predicted_without_what_was_measured():
    steps = list(measured_steps(["lambda-rtx3090-resnet50", "dle-pytorch-v100"]))
    assert [(step.part.name, step.measured) for step in steps] == [
        ("v100-sxm2-16gb", 367.0),
        ("v100-sxm2-16gb", 1200.0),
        ("rtx-3090", 513.0),
    ]
    assert not any(step.scenario.parameters["alone"] for step in steps)


def test_a_step_lies_in_its_interval_and_the_interval_is_wide():
    (step,) = measured_steps(["lambda-rtx3090-resnet50"])
    best, low, high = predicted(step, samples=20)
    assert low < step.measured < high
    assert low < 0.8 * best < best < high
