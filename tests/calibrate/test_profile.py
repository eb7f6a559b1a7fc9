"""From a fit to a profile, back into a scenario, and against measurements."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit import Data, FitConstant, Model, fit_dataset
from simperf.calibrate.fit.processor import late_model
from simperf.calibrate.machines import find_gpu
from simperf.calibrate.profile import profile_text
from simperf.calibrate.steps import measured_part, step_predictor
from simperf.calibrate.validate import predictions, validate
from simperf.errors import InputError, UnknownNameError
from simperf.hardware import Catalog, FrontendPart, LinkPart, ProfilePart
from simperf.hardware.profile import FittedConstant, FittedModel
from simperf.report.calibration import (
    calibration_csv,
    calibration_json,
    calibration_text,
    draw_fit,
    draw_validation,
    plot_fits,
)
from simperf.run import run
from simperf.scenario import load_scenario
from simperf.study.uncertainty import draw
from tests.calibrate.synthetic import LAUNCH, PINNED, RATE, gpu_dataset, write_profile

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def found():
    return fit_dataset(gpu_dataset(), hold_out=3)


@pytest.fixture(scope="module")
def path(found, tmp_path_factory):
    file = tmp_path_factory.mktemp("profile") / "mine.toml"
    write_profile(file, found, made={"command": "test", "date": "2026-01-02"})
    return file


@pytest.fixture(scope="module")
def profile(path):
    return Catalog.load().profile(str(path))


def test_a_profile_says_where_it_comes_from(profile):
    assert profile.dataset == "a GPU that never was"
    assert profile.machine["gpu"] == "NVIDIA Imaginary 9000"
    assert profile.versions == {"torch": "2.9"}
    assert profile.made["date"] == "2026-01-02"
    assert profile.made["measured command"] == "by formulas"
    assert profile.made["points"] > 40


def test_constants_come_back_with_intervals_and_draws(profile, found):
    fitted = found["kernel.gemm-fp32"].fit.constants["rate"]
    read = profile.model["kernel.gemm-fp32"].constant["rate"]
    assert (read.value, read.low, read.high) == pytest.approx((fitted.value, fitted.low, fitted.high), rel=1e-6)
    assert profile.draws == 64
    drawn = [read.at(i + 1) for i in range(64)]
    assert drawn == pytest.approx(list(fitted.draws), rel=1e-3)
    assert read.at(0) == read.value


def test_the_same_fit_writes_the_same_bytes(found):
    assert profile_text(found) == profile_text(found)


def test_a_profile_changes_parts(profile):
    catalog = Catalog.load()
    frontend = profile.adjusted(catalog.frontend("pytorch"))
    assert isinstance(frontend, FrontendPart)
    assert frontend.launch == pytest.approx(LAUNCH, rel=0.02)
    assert frontend.depth == 1024
    assert "mine" in frontend.source("launch")
    link = profile.adjusted(catalog.link("pcie3-x16"))
    assert isinstance(link, LinkPart)
    assert link.bandwidth == pytest.approx(PINNED, rel=0.02)
    nvlink = catalog.link("nvlink2")
    assert profile.adjusted(nvlink) is nvlink


SCENARIO = """
[machine]
use = "dgx-1v"
[calibration]
use = "mine.toml"
[frontend]
use = "pytorch"
[program]
use = "{program}"
"""


@pytest.fixture(scope="module")
def scenario(path):
    from simperf.hardware import Catalog

    servers = Catalog.load().names("server")
    machine = (
        "book-1gpu" if "book-1gpu" in servers else next(name for name in servers if "v100" in name or "dgx-1" in name)
    )
    text = SCENARIO.replace("book-1gpu", machine).format(program="async-chain") + "n = 2000\n"
    file = path.parent / "chain.toml"
    file.write_text(text)
    return file


def test_a_scenario_takes_the_fitted_constants(scenario):
    one = load_scenario(scenario)
    assert one.frontend.launch == pytest.approx(LAUNCH, rel=0.02)
    assert one.cost.kernels["gemm-fp32"]["rate"] == pytest.approx(RATE, rel=0.02)
    assert one.draws == 64


def test_draws_differ_and_repeat(scenario):
    one = load_scenario(scenario)
    first, second = draw(one, 0), draw(one, 1)
    assert first.frontend.launch != second.frontend.launch
    assert draw(one, 64).frontend == first.frontend
    assert first.name == one.name
    assert np.std([draw(one, i).frontend.launch for i in range(8)]) < 0.01 * LAUNCH


def test_what_a_scenario_says_goes_before(scenario):
    one = load_scenario(scenario, ["frontend.launch=7 us", "cost.efficiency.gemm=0.5"])
    assert one.frontend.launch == 7e-6
    assert "gemm-fp32" not in one.cost.kernels
    assert "elementwise-fp32" in one.cost.kernels


def test_a_scenario_without_a_profile_differs_by_its_kernels_alone():
    one = load_scenario("d2l/async")
    drawn = draw(one, 3)
    assert replace(drawn, cost=one.cost, variants=one.variants) == one
    assert drawn.cost.unseen.draw == 3
    assert run(drawn).time == run(one).time
    alone = replace(one, machine=None)
    assert draw(alone, 3) == alone


def test_a_drawn_scenario_runs(scenario):
    assert run(draw(load_scenario(scenario), 2)).time > 0


def test_a_profile_that_is_not_there(scenario):
    with pytest.raises(InputError, match="unknown profile 'minne'"):
        load_scenario(scenario, ["calibration.use=minne"])


def test_validation_tells_held_out_points_apart(profile):
    check = validate(profile, gpu_dataset())
    out = check.held_out
    assert out is not None
    assert out.points >= 8
    assert out.mape < 0.08
    assert out.coverage > 0.5
    fitted = {point.key for point in check.points if point.fitted}
    kept = {key for model in profile.model.values() for key in model.held_out}
    assert not fitted & kept
    assert "no model reads" in check.skipped["tea/brewing"]


def test_another_data_set_is_held_out_whole(profile):
    check = validate(profile, gpu_dataset(3, title="measured again"))
    assert not any(point.fitted for point in check.points)


def test_a_profile_that_predicts_nothing_is_refused(profile):
    with pytest.raises(InputError, match="no point"):
        validate(replace(profile, model={}), gpu_dataset())


def test_reports_for_eyes(profile, found, tmp_path):
    check = validate(profile, gpu_dataset())
    text = calibration_text(check, points=True)
    assert "held out" in text
    assert "1024 launches" in text, "a point in its own unit"
    assert "all" in text
    assert calibration_csv(check).splitlines()[0].startswith("series,model,point")
    assert '"predicted"' in calibration_json(check)
    assert draw_validation(check) is not None
    assert draw_fit(found["copy.h2d-pinned"]) is not None
    written = plot_fits(replace(found, fits=found.fits[:2]), tmp_path / "plots")
    assert [file.suffix for file in written] == [".svg", ".svg"]
    assert all(file.stat().st_size > 1000 for file in written)


def test_the_gpu_is_found_by_its_name():
    dataset = replace(gpu_dataset(), machine={"gpu": "NVIDIA A100-SXM4-40GB"})
    part = find_gpu(dataset)
    assert part is not None
    assert part.name == "a100-sxm4-40gb"
    assert find_gpu(gpu_dataset()) is None
    with pytest.raises(UnknownNameError, match="a100"):
        find_gpu(gpu_dataset(), "a100-sxm4-41gb")


def test_steps_are_predicted_on_a_gpu_and_on_a_cpu(profile):
    (point,) = gpu_dataset().select("step/lenet")
    predict = step_predictor(profile)
    best, low, high = predict(point)
    assert 33 * LAUNCH < best < high, "33 kernels, none shorter than a launch"
    assert low < best
    here = replace(point, at={**point.at, "device": "cpu", "part": "forward", "precision": "fp32", "optimizer": "sgd"})
    best, low, high = predict(here)
    assert 0 < low <= best <= high
    assert measured_part(profile).peak["fp32"] == pytest.approx(RATE, rel=0.02)


def test_a_constant_that_is_nothing_in_some_draws_is_held_against_every_point():
    """Draws in which calls do not come late at all, as a short session on a busy machine gives them."""
    points = [Measurement("frontend/mixed", {"touched": touched}, (2e-5,)) for touched in (0.0, 4e6, 8e7)]
    model, data = late_model("call.mixed.forward", points)
    values = {"hot": (2e-5, (0.9, 1.1)), "late": (1e-4, (0.0, 2.0)), "late_at": (1e7, (1.0, 1.0))}
    constant = {
        name: FittedConstant(value=best, low=best, high=best, stderr=0.0, draws=draws)
        for name, (best, draws) in values.items()
    }
    fitted = FittedModel(points=3, error=0.0, scatter=0.0, constant=constant)
    best, low, high = predictions(model, fitted, data)
    assert len(best) == len(low) == len(high) == 3
    assert all(low < best)
    assert all(best < high)


def test_without_draws_an_interval_knows_how_far_sessions_are_apart():
    data = Data.table(np.full(3, 2.0), nbytes=1.0)
    model = Model("own", "a number", (FitConstant("a", 1.0),), lambda values, columns: values["a"] * columns["nbytes"])
    known = {"a": FittedConstant(value=2.0, low=2.0, high=2.0, stderr=0.0)}
    fitted = FittedModel(points=3, error=0.0, scatter=0.03, between=0.04, constant=known)
    best, low, high = predictions(model, fitted, data)
    assert np.log(high / best) == pytest.approx(1.645 * 0.05)
    assert np.log(best / low) == pytest.approx(1.645 * 0.05)


def test_operations_of_a_cpu_take_what_calls_and_runs_cost_in_a_program():
    """Late calls and mean runs are the same for all kinds: each kind's constants have them, those of GPUs do not."""

    def fitted(fixed=None, **values):
        known = {key: FittedConstant(value=one, low=one, high=one, stderr=0.0) for key, one in values.items()}
        return FittedModel(points=3, error=0.0, scatter=0.0, constant=known, fixed=fixed or {})

    models = {
        "kernel.elementwise-fp32": fitted({"processor": 1.0}, overhead=1e-6),
        "kernel.gemm-fp32": fitted(rate=1e12),
        "call.mixed.forward": fitted(hot=1e-6, late=3e-5, late_at=3e7),
        "run.longer": fitted(longer=1.03),
    }
    kernels = ProfilePart(name="mine", title="", sources={}, model=models).kernels()
    more = {"late": 3e-5, "late_at": 3e7, "longer": 1.03}
    assert kernels["elementwise-fp32"] == {"processor": 1.0, "overhead": 1e-6, **more}
    assert kernels["gemm-fp32"] == {"rate": 1e12}
