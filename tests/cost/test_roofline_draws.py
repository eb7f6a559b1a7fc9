"""GPUs that nobody measured: what their kernels share and what each has, and that chance is the draw's alone."""

from statistics import NormalDist, correlation, quantiles, stdev

import numpy as np
import pytest

from simperf.cost import Miss, Roofline, Unseen, UnseenRoofline, sort_of
from simperf.cost.roofline_draws import step_sort
from simperf.hardware import Catalog
from simperf.workload.kinds import layernorm, matmul, softmax, unary

GPU = Catalog.load().gpu("rtx-3090")
MISSES = {"product": Miss(0.4, 0.2), "rows": Miss(0.3, 0.0), "stream": Miss(0.15, 0.0)}
PRODUCT, OTHER = matmul(4096, 4096, k=4096), matmul(2048, 4096, k=4096)
STREAM, ROWS = unary("relu", 10**7), softmax(4096, 1024)


def logs(op, count=400, gpu="t4", **changed):
    given = {"misses": MISSES, **changed}
    return [float(np.log(Unseen(draw=draw, **given).longer(op, gpu))) for draw in range(count)]


def test_sorts():
    assert [sort_of(op) for op in (PRODUCT, STREAM, ROWS, layernorm(8, 8))] == ["product", "stream", "rows", "rows"]


def test_what_is_drawn_has_the_size_that_is_given():
    assert stdev(logs(ROWS)) == pytest.approx(0.3, rel=0.05)
    assert stdev(logs(PRODUCT)) == pytest.approx(np.hypot(0.4, 0.2), rel=0.08)


def test_kernels_of_a_sort_share_and_those_of_two_sorts_do_not():
    assert logs(ROWS, 20) == logs(layernorm(64, 512), 20)
    assert correlation(logs(PRODUCT), logs(OTHER)) == pytest.approx(0.8, abs=0.06)
    assert abs(correlation(logs(ROWS), logs(STREAM))) < 0.12
    assert correlation(logs(ROWS, alike=0.6), logs(STREAM, alike=0.6)) == pytest.approx(0.6, abs=0.1)
    assert logs(ROWS, 20, alike=1.0) == pytest.approx([2.0 * each for each in logs(STREAM, 20, alike=1.0)])


def test_two_gpus_have_nothing_in_common():
    assert abs(correlation(logs(ROWS), logs(ROWS, gpu="l4"))) < 0.12


def test_twenty_draws_reach_all_of_the_distribution():
    normal = NormalDist(0.0, 0.3)
    for start in (0, 20, 40):
        drawn = sorted(np.log(Unseen(draw=start + i, misses=MISSES).longer(ROWS, "t4")) for i in range(20))
        assert [int(20 * normal.cdf(each)) for each in drawn] == list(range(20))


def test_a_shape_is_one_kernel_and_a_name_is_none():
    one = Unseen(draw=7, misses=MISSES)
    assert one.longer(matmul(64, 64, k=64), "t4") == one.longer(matmul(64, 64, k=64), "t4")
    assert one.longer(PRODUCT, "t4") != one.longer(OTHER, "t4")


def test_efficiencies_that_were_stated_are_believed():
    for said in (("gemm",), ("gemm-fp32",)):
        one = Unseen(draw=3, misses=MISSES, said=said)
        assert one.longer(PRODUCT, "t4") == 1.0 != one.longer(STREAM, "t4")
    assert Unseen(draw=3, misses={}).longer(PRODUCT, "t4") == 1.0


@pytest.mark.parametrize("op", [PRODUCT, STREAM, ROWS, unary("relu", 10)])
def test_no_kernel_beats_its_floor_and_the_middle_stays(op):
    plain = Roofline(GPU)
    times = [UnseenRoofline(plain, Unseen(draw=draw, misses=MISSES)).cost(op).time for draw in range(200)]
    assert min(times) >= plain.floor(op)
    assert max(times) > plain.cost(op).time
    assert quantiles(times, n=2)[0] == pytest.approx(plain.cost(op).time, rel=0.08)


def test_what_a_kernel_spends_its_time_on_scales_with_it():
    plain, drawn = Roofline(GPU), UnseenRoofline(Roofline(GPU), Unseen(draw=4, misses=MISSES))
    for op in (PRODUCT, STREAM):
        before, after = plain.cost(op), drawn.cost(op)
        assert after.compute_time * before.time == pytest.approx(before.compute_time * after.time)
        assert after.memory_time * before.time == pytest.approx(before.memory_time * after.time)
        assert (after.regime, after.flops, after.demand) == (before.regime, before.flops, before.demand)


STEPS = {"fp32": Miss(0.3, 0.2, -0.4), "half": Miss(0.3, 0.0)}


def steps(model="resnet50", precision="fp32", gpu="t4", count=400, **changed):
    given = {"misses": MISSES, "steps": STEPS, **changed}
    return [float(np.log(Unseen(draw=draw, **given).step(model, precision, gpu))) for draw in range(count)]


def test_sorts_of_steps():
    found = [step_sort(name) for name in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8")]
    assert found == ["fp32", "fp32", "tf32", "half", "half", "half"]


def test_steps_have_the_middle_and_the_size_that_are_given():
    assert quantiles(steps(), n=2)[0] == pytest.approx(-0.4, abs=0.04)
    assert stdev(steps()) == pytest.approx(np.hypot(0.3, 0.2), rel=0.08)
    assert steps(precision="tf32", count=20) == [0.0] * 20


def test_steps_of_one_gpu_share_and_models_have_their_own():
    assert correlation(steps(), steps("vgg16")) == pytest.approx(0.3**2 / (0.3**2 + 0.2**2), abs=0.08)
    assert steps(precision="fp16", count=20) == steps("vgg16", "bf16", count=20)
    assert abs(correlation(steps(), steps(gpu="l4"))) < 0.12
    assert abs(correlation(steps(), logs(PRODUCT))) < 0.12
    assert logs(PRODUCT, 20, steps=STEPS) == logs(PRODUCT, 20)
