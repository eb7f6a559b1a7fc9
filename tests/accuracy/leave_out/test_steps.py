"""What whole steps miss beside their kernels: on invented boards whose variances are known."""

import numpy as np
import pytest

from simperf.accuracy.leave_out.profile import step_models
from simperf.accuracy.leave_out.steps import StepMiss, step_figures

pytest.importorskip("scipy")

REPETITIONS = 200
#: twenty draws of a normal distribution, one in each of its twentieths
EVEN = np.array([-1.96, -1.44, -1.15, -0.93, -0.76, -0.6, -0.45, -0.32, -0.19, -0.06])
EVEN = np.concatenate([EVEN, -EVEN[::-1]])
EVEN /= EVEN.std()
#: architectures with the precisions that were measured of each, as the published steps have them
CELLS = [("a", "fp32"), ("b", "fp32"), ("b", "half"), ("c", "half"), ("c", "tf32"), ("d", "tf32"), ("e", "tf32")]
CELLS += [("f", "tf32")]


def invented(rng, cells, *, middle, common, own, kernels=0.0, points=7):
    """Steps of each cell: a sort's median, what an architecture has beside it, its kernels' part, and a step's own."""
    middles = {sort: middle * rng.standard_normal() for sort in ("fp32", "half", "tf32")}
    found = []
    for architecture, sort in cells:
        shared = middles[sort] + common * rng.standard_normal() + kernels * rng.standard_normal()
        for miss in shared + own * rng.standard_normal(points):
            found.append(StepMiss(architecture, sort, float(miss), kernels * EVEN))
    return middles, found


def test_variances_come_back():
    rng = np.random.default_rng(1)
    cells = [(f"a{number}", sort) for number in range(150) for sort in ("fp32", "half", "tf32")]
    middles, steps = invented(rng, cells, middle=0.4, common=0.3, own=0.2, kernels=0.25)
    for sort, found in step_figures(steps).items():
        assert found.middle == pytest.approx(middles[sort], abs=0.1)
        assert found.own == pytest.approx(0.2, rel=0.05)
        assert found.common == pytest.approx(0.3, rel=0.1)


def test_what_kernels_tell_is_not_told_twice():
    rng = np.random.default_rng(2)
    cells = [(f"a{number}", "tf32") for number in range(2000)]
    _, steps = invented(rng, cells, middle=0.0, common=0.0, own=0.2, kernels=0.3, points=3)
    assert step_figures(steps)["tf32"].common < 0.1
    apart = [StepMiss(one.architecture, one.sort, one.missed, np.zeros(20)) for one in steps]
    assert step_figures(apart)["tf32"].common == pytest.approx(0.3, rel=0.05)


def test_draws_that_are_slower_in_the_mean_move_the_middle():
    steps = [StepMiss(name, "tf32", 0.5, np.full(20, 0.2)) for name in "abc" for _ in range(2)]
    assert step_figures(steps)["tf32"].middle == pytest.approx(0.75 * 0.3)


def test_one_architecture_moves_the_middle_by_half_and_four_by_more():
    steps = [StepMiss(name, sort, 0.5, np.zeros(20)) for name, sort in CELLS]
    found = {sort: one.middle for sort, one in step_figures(steps).items()}
    assert found == pytest.approx({"fp32": 0.5 * 2 / 3, "half": 0.5 * 2 / 3, "tf32": 0.5 * 4 / 5})
    assert step_figures(steps[1:])["fp32"].middle == pytest.approx(0.25)


def test_architectures_of_no_two_of_a_sort_say_nothing():
    assert step_figures([]) == {}
    assert step_figures([StepMiss("a", "fp32", 0.5, np.zeros(20)), StepMiss("b", "half", 0.1, np.zeros(20))]) == {}


@pytest.mark.parametrize(("common", "kernels"), [(0.25, 0.0), (0.0, 0.25), (0.2, 0.2), (0.3, 0.1)])
def test_nine_of_ten_steps_of_an_architecture_that_was_left_out_are_held(common, kernels):
    """Over invented measurements, of as few architectures as were published: each left out in turn."""
    rng = np.random.default_rng(7)
    held = []
    for _ in range(REPETITIONS):
        _, steps = invented(rng, CELLS, middle=0.35, common=common, own=0.25, kernels=kernels)
        for name in "abcdef":
            figures = step_figures([one for one in steps if one.architecture != name])
            for sort in dict.fromkeys(one.sort for one in steps if one.architecture == name):
                these = np.array([one.missed for one in steps if (one.architecture, one.sort) == (name, sort)])
                found = figures[sort]
                half = 1.645 * np.sqrt(found.common**2 + found.own**2 + kernels**2)
                held.append(np.mean(np.abs(these - found.middle) < half))
    assert 0.85 < np.mean(held) < 0.95


def test_a_profile_has_them_with_standard_errors():
    rng = np.random.default_rng(4)
    _, steps = invented(rng, CELLS, middle=0.4, common=0.3, own=0.2)
    found = step_models(steps)
    assert list(found) == ["unseen.step-fp32", "unseen.step-half", "unseen.step-tf32"]
    figures = step_figures(steps)
    for sort in ("fp32", "half", "tf32"):
        model = found[f"unseen.step-{sort}"]
        assert model.at() == {"middle": figures[sort].middle, "common": figures[sort].common, "own": figures[sort].own}
        assert model.constant["middle"].low < model.constant["middle"].value < model.constant["middle"].high
        assert model.constant["common"].low >= 0.0
    assert found["unseen.step-tf32"].series == "c, d, e, f"
    assert sum(model.points for model in found.values()) == len(steps)
