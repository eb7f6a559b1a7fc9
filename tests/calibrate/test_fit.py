"""Fitting a whole data set: which models, which points, and what the report says."""

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import Data, FitConstant, Model, choose, fit, fit_dataset, split
from simperf.calibrate.fit.messages import alpha_beta, piecewise
from simperf.calibrate.uncertainty.bootstrap import leverages
from simperf.errors import InputError
from tests.calibrate.synthetic import LAUNCH, MEMORY, PINNED, RATE, gpu_dataset

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def found():
    return fit_dataset(gpu_dataset(), hold_out=3)


def test_every_series_finds_its_model(found):
    names = [one.fit.model.name for one in found.fits]
    assert {"kernel.gemm-fp32", "kernel.elementwise-fp32", "copy.h2d-pinned"} <= set(names)
    assert {"frontend.depth", "frontend.launch", "nccl.all-reduce.n2", "nccl.all-reduce.n4"} <= set(names)
    assert len(names) == len(set(names))


def test_constants_come_back(found):
    assert found["kernel.gemm-fp32"].fit.values["rate"] == pytest.approx(RATE, rel=0.02)
    assert found["kernel.elementwise-fp32"].fit.values["rate"] == pytest.approx(MEMORY, rel=0.02)
    assert found["copy.h2d-pinned"].fit.values["bandwidth"] == pytest.approx(PINNED, rel=0.02)
    assert found["frontend.launch"].fit.values["launch"] == pytest.approx(LAUNCH, rel=0.02)
    assert found["nccl.all-reduce.n4"].fit.mape() < 5e-3


def test_what_is_not_fitted_is_told(found):
    reasons = {one.series: one.reason for one in found.skipped}
    assert "held out" in reasons["step/lenet"]
    assert "no model reads" in reasons["tea/brewing"]
    report = found.report()
    assert "[[Variables]]" in report
    assert "[[Fit Statistics]]" in report
    assert "tea/brewing: no model reads this series (1 points)" in report


def test_held_out_points_are_not_fitted(found):
    one = found["copy.h2d-pinned"]
    assert one.held_out is not None
    assert len(one.held_out) == 3
    assert not set(one.held_out.keys) & set(one.fit.data.keys)
    assert one.fit.mape(one.held_out) < 0.03


def test_nothing_to_fit_is_an_error():
    empty = Dataset("nothing", measurements=(Measurement("tea/brewing", {}, (1.0,)),))
    with pytest.raises(InputError, match="nothing in this data set can be fitted"):
        fit_dataset(empty)


def test_too_few_points_are_told():
    dataset = Dataset("few", measurements=(Measurement("copy/host", {"nbytes": 8}, (1e-6,)),))
    (choice,) = choose(dataset)
    assert "1 points for the 2 constants" in choice.reason
    with pytest.raises(InputError, match="1 points for the 2 constants"):
        fit_dataset(dataset)


def test_a_constant_at_its_bound_is_doubted():
    size = np.geomspace(1e4, 1e8, 20)
    found = fit(alpha_beta("link", "no latency at all"), Data.table(1e-10 * size, nbytes=size))
    assert "alpha" in " ".join(found.warnings)
    assert "## warning: alpha" in found.report()


def test_outliers_do_not_move_a_fit():
    size = np.geomspace(1e3, 1e9, 30)
    time = 1e-5 + 1e-10 * size
    time[::9] *= 5
    found = fit(alpha_beta("link", "spoiled"), Data.table(time, nbytes=size))
    assert found.values["beta"] == pytest.approx(1e-10, rel=0.02)
    assert found.values["alpha"] == pytest.approx(1e-5, rel=0.02)


def test_intervals_hold_repeated_readings():
    rng = np.random.default_rng(1)
    size = np.geomspace(1e3, 1e9, 30)
    time = 1e-5 + 1e-10 * size
    samples = tuple(one * np.exp(0.05 * rng.standard_normal(9)) for one in time)
    data = Data({"nbytes": size}, np.array([np.median(row) for row in samples]), samples)
    found = fit(alpha_beta("link", "repeated"), data)
    assert 0.01 < found.constants["beta"].stderr / 1e-10 * np.sqrt(15) < 0.2
    low, high = found.interval(data)
    assert np.mean((low <= data.measured) & (data.measured <= high)) > 0.8


def test_too_many_constants_for_the_points():
    with pytest.raises(InputError, match="2 constants"):
        fit(alpha_beta("link", "one point"), Data.table([1.0], nbytes=[1.0]))


def test_readings_must_be_positive():
    with pytest.raises(InputError, match="above 0"):
        fit(alpha_beta("link", "zero"), Data.table([1.0, 0.0, 1.0], nbytes=[1.0, 2.0, 3.0]))


@pytest.mark.parametrize("seed", range(5))
def test_breakpoints_are_found(seed):
    rng = np.random.default_rng(seed)
    size = np.geomspace(1e2, 1e9, 30)
    time = np.where(size < 3e4, 5e-6 + 2e-9 * size, 9e-5 + 1e-10 * size) * np.exp(0.03 * rng.standard_normal(30))
    limits = piecewise(Data.table(time, nbytes=size))
    assert any(1.5e4 < limit < 6e4 for limit in limits), limits


def test_one_regime_has_no_breakpoint():
    size = np.geomspace(1e2, 1e9, 30)
    time = (5e-6 + 1e-10 * size) * np.exp(0.02 * np.random.default_rng(0).standard_normal(30))
    assert piecewise(Data.table(time, nbytes=size)) == ()


def test_split_keeps_enough():
    data = Data({"nbytes": np.arange(4.0)}, np.ones(4), keys=("a", "b", "c", "d"))
    assert split(data, 2, least=3)[1] is None
    known, away = split(data, 2, least=2)
    assert known.keys == ("a", "c")
    assert away is not None
    assert away.keys == ("b", "d")


def test_leverages_add_up_to_the_constants():
    jacobian = np.random.default_rng(0).standard_normal((20, 3))
    assert leverages(jacobian).sum() == pytest.approx(3.0)


def test_the_same_seed_gives_the_same_draws():
    data = gpu_dataset().select("copy/h2d-pinned")
    table = Data.of(data, ("nbytes",))
    model = alpha_beta("link", "twice")
    assert fit(model, table).constants == fit(model, table).constants


def test_models_of_ones_own():
    model = Model(
        "own", "a power", (FitConstant("a", 1.0), FitConstant("p", 1.0)), lambda v, c: v["a"] * c["x"] ** v["p"]
    )
    x = np.linspace(1, 9, 12)
    assert fit(model, Data.table(3 * x**1.5, x=x)).values == pytest.approx({"a": 3.0, "p": 1.5})


def test_a_model_may_call_the_simulator():
    """Latency and bandwidth of a ring's links, from all-reduces that the executor plays."""
    from simperf.collectives import execute, make_plan
    from simperf.hardware import build_topology

    plan = make_plan("all-reduce", "ring", nranks=4)

    def play(values, columns):
        wiring = build_topology("ring", 4, bandwidth=values["bandwidth"], latency=values["latency"])
        return np.array([execute(plan, wiring, nbytes=size).time for size in columns["nbytes"]])

    constants = (FitConstant("bandwidth", 1e10, low=1e6), FitConstant("latency", 1e-5))
    size = np.geomspace(1e3, 1e8, 7)
    truth = play({"bandwidth": 25e9, "latency": 3e-6}, {"nbytes": size})
    found = fit(Model("ring", "played", constants, play), Data.table(truth, nbytes=size))
    assert found.values["bandwidth"] == pytest.approx(25e9, rel=1e-3)
    assert found.values["latency"] == pytest.approx(3e-6, rel=1e-3)


def test_files_and_fused_chains_get_models_of_their_own_by_what_was_done():
    points = []
    for cached, rate in ((False, 1e9), (True, 2e10)):
        for nbytes in (1e5, 1e6, 1e7, 1e8):
            points.append(Measurement("storage/read", {"nbytes": nbytes, "cached": cached}, (1e-4 + nbytes / rate,)))
    for mode, each in (("eager", 2e-9), ("compiled", 5e-10)):
        for count in (100, 10_000, 1_000_000, 10_000_000):
            points.append(Measurement("fused/chain", {"mode": mode, "elements": count}, (1e-5 + each * count,)))
    found = fit_dataset(Dataset("a machine", measurements=tuple(points)))
    assert found["storage.read"].fit.values["bandwidth"] == pytest.approx(1e9, rel=1e-3)
    assert found["storage.read-cached"].fit.values["bandwidth"] == pytest.approx(2e10, rel=1e-3)
    assert found["chain.eager"].fit.values["beta"] == pytest.approx(2e-9, rel=1e-3)
    assert found["chain.compiled"].fit.values["beta"] == pytest.approx(5e-10, rel=1e-3)


def test_a_formula_that_gives_one_number_for_all_points_gives_it_to_each():
    """Where a constant is nothing, whatever stands beside it is gone: some draws are numbers, the others arrays."""

    def late(values, columns):
        return values["base"] + (values["late"] * columns["x"] if values["late"] > 0 else 0.0)

    model = Model("own", "none of it", (FitConstant("base", 1.0), FitConstant("late", 0.1)), late)
    columns = {"x": np.linspace(1.0, 9.0, 9)}
    assert model.predict({"base": 2.0, "late": 0.0}, columns).tolist() == [2.0] * 9
    assert model.predict({"base": 2.0, "late": 0.0}, {"x": 3.0}) == 2.0
    data = Data.table(np.full(9, 2.0) * np.exp(0.02 * np.random.default_rng(1).standard_normal(9)), **columns)
    low, high = fit(model, data).interval(data)
    assert low.shape == high.shape == (9,)


def test_readings_that_are_no_times_are_not_fitted_as_times():
    """A table of bandwidths by size is no table of times: a line through it would give millions of hours."""
    rates = [Measurement("all-reduce/ring", {"nbytes": n}, (1e9 + n,), "B/s") for n in (1e5, 1e6, 1e7, 1e8, 1e9)]
    (choice,) = choose(Dataset("rates", measurements=tuple(rates)))
    assert choice.model is None
    assert choice.reason == "readings in B/s: the models are of times; import a column of times"
    (choice,) = choose(Dataset("trace", measurements=(Measurement("host/op", {"name": "aten::mm"}, (1.0,)),)))
    assert choice.reason == "no model reads this series"
    (choice,) = choose(Dataset("updates", measurements=(Measurement("server/synchronous", {}, (1.0,), "updates/s"),)))
    assert choice.reason == "no model reads this series"
