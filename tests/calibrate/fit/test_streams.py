"""How many small kernels run side by side, and how copies and kernels slow each other: from points to constants."""

from __future__ import annotations

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import choose, fit_dataset
from simperf.calibrate.fit.device import overlap_points, stream_data
from simperf.cost.tiles import tiling
from simperf.hardware import Catalog
from simperf.workload.op import Gemm
from tests.calibrate.synthetic import write_profile

pytest.importorskip("scipy")

SMS = 60


def concurrent(held, limit, streams=(1, 2, 4, 8, 16)):
    rng = np.random.default_rng(2)
    for side in (64, 128, 256, 512, 1024):
        share = min(1.0, max(1.0 / limit, held * tiling(Gemm(1, side, side, side), SMS).tiles / SMS))
        for count in streams:
            time = 20e-6 * side * max(1.0, count * share) * np.exp(0.01 * rng.standard_normal(5))
            at = {"device": "cuda", "streams": count, "kernels": 20, "side": side}
            yield Measurement("streams/concurrent", at, tuple(map(float, time)))


def beside(copy, kernel, kind):
    """Readings of a copy of 8, 32 and 128 MB at 20 GB/s beside 1.5 ms of kernels."""
    compute = 1.5e-3
    for nbytes in (8e6, 32e6, 128e6):
        alone = nbytes / 20e9
        if copy * alone < kernel * compute:
            ends = copy * alone, copy * alone + compute - copy * alone / kernel
        else:
            ends = kernel * compute + alone - kernel * compute / copy, kernel * compute
        for part, time in {
            "copy": alone,
            "compute": compute,
            "both": max(ends),
            "copy-beside": ends[0],
            "compute-beside": ends[1],
        }.items():
            at = {"device": "cuda", "part": part, "beside": kind, "nbytes": nbytes, "kernels": 20}
            yield Measurement("overlap/copy-compute", at, (time, 1.002 * time, 0.998 * time))


def of(*points, **machine):
    return Dataset("a GPU that never was", {"gpu": "Imaginary 9000", **machine}, measurements=points)


def test_streams_side_by_side_without_a_limit():
    found = fit_dataset(of(*concurrent(0.4, 1e9), sms=SMS))["streams"].fit
    assert found.values["held"] == pytest.approx(0.4, rel=0.03)
    assert "limit" not in found.values, "no more than 16 streams say nothing of a limit beyond"


def test_a_limit_that_the_points_reach():
    found = fit_dataset(of(*concurrent(0.4, 6.0), sms=SMS))["streams"].fit
    assert found.values["limit"] == pytest.approx(6.0, rel=0.05)
    assert found.values["held"] == pytest.approx(0.4, rel=0.05)


def test_without_the_number_of_multiprocessors_nothing_is_fitted():
    (choice,) = choose(of(*concurrent(0.4, 6.0)))
    assert "sms" in choice.reason
    (choice,) = choose(of(*concurrent(0.4, 6.0, streams=(1,)), sms=SMS))
    assert "on several streams" in choice.reason


def test_what_one_stream_takes_is_a_condition_of_the_others():
    data = stream_data(list(concurrent(0.4, 6.0, streams=(1, 2))), SMS)
    assert list(data.columns["streams"]) == [2.0] * 5
    assert data.columns["alone"] == pytest.approx([20e-6 * side for side in (64, 128, 256, 512, 1024)], rel=0.02)


@pytest.mark.parametrize(("copy", "kernel"), [(1.6, 1.25), (1.05, 1.01)])
def test_copies_beside_kernels(copy, kernel):
    found = fit_dataset(of(*beside(copy, kernel, "memory"), *beside(1.1, 1.02, "gemm")))
    assert found["overlap.memory"].fit.values == pytest.approx({"copy": copy, "kernel": kernel}, rel=0.01)
    assert found["overlap.gemm"].fit.values == pytest.approx({"copy": 1.1, "kernel": 1.02}, rel=0.01)


def test_readings_beside_need_those_alone():
    points = [point for point in beside(1.5, 1.2, "gemm") if point.at["part"] != "copy"]
    assert not list(overlap_points(points))
    (choice,) = choose(of(*points))
    assert "each of them alone" in choice.reason


def test_a_profile_gives_both_to_the_simulated_device(tmp_path):
    found = fit_dataset(of(*concurrent(0.4, 6.0), *beside(1.6, 1.25, "memory"), sms=SMS))
    path = tmp_path / "mine.toml"
    write_profile(path, found)
    catalog = Catalog.load()
    part = catalog.profile(str(path)).adjusted(catalog.gpu("v100-sxm2-16gb"))
    assert part.block_share == pytest.approx(0.4, rel=0.05)
    assert part.side_by_side == pytest.approx(6.0, rel=0.05)
    assert part.beside == pytest.approx({"copy.memory": 1.6, "kernel.memory": 1.25}, rel=0.01)
    assert "mine" in part.source("beside")
