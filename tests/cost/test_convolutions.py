"""Convolutions by their window, images that are converted, and recurrences."""

from dataclasses import replace

import pytest

from simperf.cost import Roofline
from simperf.cost.convolutions import WINOGRAD, WINOGRAD_SHARE
from simperf.hardware import Catalog
from simperf.workload.lowering import unit_window, weights_of
from simperf.workload.op import Gemm, Op
from simperf.workload.zoo import load

A100, GEFORCE = Catalog.load().gpu("a100-sxm4-80gb"), Catalog.load().gpu("rtx-3090")


def conv(window=0, dtype="fp32", converted=0.0):
    m, n, k = 2**18, 512, 9 * 512
    nbytes = 4.0 * (m * 512 + m * n + n * k)
    flops = 2.0 * m * n * k
    gemm = Gemm(1, m, n, k)
    return Op("y", "conv2d", flops, nbytes, 0.0, dtype, "conv", gemm=gemm, window=window, converted=converted)


@pytest.mark.parametrize("side", [3, 5])
def test_a_window_that_moves_by_one_pixel_has_fewer_multiplications_in_fp32_alone(side):
    cost = Roofline(A100).cost(conv(side))
    rate = A100.peak["fp32"] * WINOGRAD[side] * WINOGRAD_SHARE
    assert cost.compute_time == pytest.approx(conv().flops / rate)
    assert Roofline(A100).floor(conv(side)) == pytest.approx(Roofline(A100).floor(conv()) / WINOGRAD[side])
    for dtype in ("tf32", "fp16"):
        assert Roofline(A100).cost(conv(side, dtype)) == Roofline(A100).cost(conv(0, dtype))
    assert Roofline.sharp(A100).cost(conv(side)) == Roofline.sharp(A100).cost(conv()), "the textbook's has none"


def test_a_window_of_one_pixel_is_a_matrix_product():
    one = conv(1)
    product = replace(one, family="gemm", kind="matmul")
    assert Roofline(A100).cost(one).time == pytest.approx(Roofline(A100).cost(product).time)


def test_windows_of_a_model_are_those_of_its_weights():
    model = load("resnet50")
    found = [unit_window(op, weights_of(model)) for op in model.ops if op.family == "conv"]
    # 16 blocks: 13 of their 3 x 3 windows move by one (v1.5 has the stride there), and all 1 x 1 but three shortcuts
    assert found.count(3) == 3 * 13
    assert found.count(1) == 3 * (16 + 16 + 1)


def test_images_are_converted_for_matrix_units_or_read_as_they_lie_whichever_is_faster():
    moved = 1e9
    for part in (A100, GEFORCE):
        roofline = Roofline(part)
        plain, lies = roofline.cost(conv(3, "tf32")).time, roofline.cost(conv(3, "fp32")).time
        copies = moved / part.memory_bandwidth / part.efficiency["copy"]
        assert roofline.cost(conv(3, "tf32", moved)).time == pytest.approx(min(plain + copies, lies))
        assert roofline.floor(conv(3, "tf32", moved)) <= min(roofline.floor(conv(3, of)) for of in ("tf32", "fp32"))
    assert Roofline(GEFORCE).cost(conv(3, "tf32", moved)) == Roofline(GEFORCE).cost(conv(3))


def test_an_lstm_takes_as_many_products_one_after_the_other_as_it_has_steps():
    steps, m, n, k = 25, 128, 4096, 1024
    flops, weights = 2.0 * m * n * k, 4.0 * n * k
    reads, writes = 4.0 * m * k, 4.0 * m * n
    whole = Op(
        *("y", "lstm_steps", steps * flops, weights + steps * reads, steps * writes, "fp32", "gemm"),
        gemm=Gemm(steps, m, n, k),
    )
    one = Op("x", "matmul", flops, weights + reads, writes, "fp32", "gemm", gemm=Gemm(1, m, n, k))
    roofline = Roofline(A100)
    assert roofline.cost(whole).time == pytest.approx(steps * (roofline.cost(one).time + roofline.overhead))
    batched = replace(whole, kind="matmul")
    assert roofline.cost(whole).time > roofline.cost(batched).time, "what can overlap is no slower"
