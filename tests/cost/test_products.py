"""Matrix products on matrix units: bounds, trends by shape, caches, clocks, and kernels of scaled products."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.accuracy.fits.lattice import fit_lattice
from simperf.cost import FittedRoofline, Roofline
from simperf.cost.lattice import LATTICE, NODES, corrected, correction, node_names, node_weights
from simperf.cost.products import MatrixUnits, product_time, product_times
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.workload.kinds import block_scaled_matmul, conv2d, matmul, scaled_product
from simperf.workload.loops import timing_loop
from simperf.workload.zoo import load

H100 = Catalog.load().gpu("h100-sxm5-80gb")
UNITS = MatrixUnits(800e12, 132, 2e-6, 1e-6, 0.0, 2.7e12, 3.35e12, 50 * 2**20)
SIDES = st.sampled_from([1, 16, 64, 200, 1000, 4096, 10000])


@given(SIDES, SIDES, SIDES, st.sampled_from(["bf16", "fp8"]))
def test_no_product_beats_peak_and_memory(m, n, k, dtype):
    op = matmul(m, n, k=k, dtype=dtype)
    cost = Roofline(H100).cost(op)
    assert cost.time >= Roofline.sharp(H100).cost(op).time
    assert cost.time >= H100.product["fixed"]
    assert 0 < cost.demand <= 1


@given(SIDES, SIDES, SIDES)
def test_more_work_along_k_takes_no_less_time(m, n, k):
    shorter, longer = (
        product_time(1, m, n, side, nbytes=2.0 * (m * side + side * n + m * n), units=UNITS) for side in (k, 4 * k)
    )
    assert longer.time >= shorter.time


def test_rows_of_fewer_bytes_are_slower_and_in_between_by_powers_of_two():
    op = matmul(8192, 8192, k=8192, dtype="bf16")
    times = [Roofline(H100).cost(replace(op, alignment=one)).compute_time for one in (16, 8, 4, 2)]
    steps = [after / before for before, after in pairwise(times)]
    assert steps == pytest.approx([H100.product["unaligned"] ** (-1 / 3)] * 3, rel=0.02)
    plain = replace(op, dtype="fp32")
    assert Roofline(H100).cost(replace(plain, alignment=4)) == Roofline(H100).cost(plain), "no matrix units"


def test_limited_matrix_units_are_the_bound_sooner():
    catalog = Catalog.load()
    whole, op = catalog.gpu("l40s"), matmul(8192, 8192, k=8192, dtype="bf16")
    rates = []
    for share in (1.0, 0.75, 0.5, 0.25):
        held = replace(whole, matrix_fraction=share, peak={**whole.peak, "bf16": share * whole.peak["bf16"]})
        units = Roofline(held).units(op)
        assert units.rate <= held.peak["bf16"]
        rates.append(units.rate / whole.peak["bf16"])
    reached = whole.product["bf16"] * (whole.power / whole.sms / whole.product["power"]) ** (1 / 3)
    assert rates == pytest.approx([reached, reached, 0.5, 0.25])


@pytest.mark.parametrize(("name", "best"), [("rtx-3090", 78.0e12), ("rtx-4090", 178.5e12), ("a10g", 69.7e12)])
def test_long_products_of_gpus_with_limited_matrix_units_reach_nearly_what_was_published(name, best):
    gpu, op = Catalog.load().gpu(name), matmul(16384, 8192, k=8192, dtype="bf16")
    rate = op.flops / Roofline(gpu).cost(op).time
    assert 0.85 * best < rate <= gpu.peak["bf16"]


@pytest.mark.parametrize(
    ("limited", "whole"),
    [("rtx-3090", "rtx-a6000"), ("rtx-4090", "rtx-6000-ada"), ("a10g", "a10"), ("h20-sxm5-96gb", "h100-sxm5-80gb")],
)
def test_the_limit_is_that_of_the_peaks_of_two_gpus_with_one_chip(limited, whole):
    one, other = (Catalog.load().gpu(name) for name in (limited, whole))
    assert other.matrix_fraction == 1.0
    ratio = one.peak["bf16"] / one.sms / (other.peak["bf16"] / other.sms)
    assert one.matrix_fraction == pytest.approx(ratio, rel=0.13)


def test_fp8_rows_of_one_byte_are_as_slow_as_of_two_and_none_are_of_no_byte():
    op = matmul(8192, 8192, k=8192, dtype="fp8")
    odd, even = (Roofline(H100).cost(replace(op, alignment=one)) for one in (1, 2))
    assert odd == even
    with pytest.raises(InputError, match="alignment"):
        replace(op, alignment=0)


def test_the_head_of_gpt2_is_not_aligned_and_its_other_products_are():
    step = load("gpt2").at(8, "bf16")
    products = [op for op in (*step.forward, *step.backward) if op.gemm and op.family == "gemm"]
    head = [op for op in products if op.alignment < 16]
    assert [(op.alignment, 50257 in (op.gemm.m, op.gemm.n, op.gemm.k)) for op in head] == [(2, True)] * 3
    odd = load("gpt2").at(7, "bf16")  # tokens are no row of any matrix
    assert sum(op.alignment < 16 for op in (*odd.forward, *odd.backward)) == 3


def test_arrays_and_one_product_are_one_formula():
    shape = np.array([[1, 4096, 1024, 1024], [8, 128, 128, 64]], dtype=float)
    nbytes, reuse = np.array([1e7, 1e6]), np.array([np.inf, 1e6])
    times, arithmetic, traffic = product_times(shape, nbytes, reuse, units=UNITS)
    for row in range(2):
        one = product_time(*(int(v) for v in shape[row]), nbytes=nbytes[row], reuse=reuse[row], units=UNITS)
        assert (one.time, one.arithmetic, one.traffic) == (times[row], arithmetic[row], traffic[row])


def test_a_last_wave_costs_a_whole_one_where_each_tile_is_a_block():
    whole = replace(UNITS, waves=1.0)
    tiles = {blocks: product_time(1, 128 * blocks, 256, 8192, nbytes=1.0, units=whole).time for blocks in (132, 133)}
    shared = {blocks: product_time(1, 128 * blocks, 256, 8192, nbytes=1.0, units=UNITS).time for blocks in (132, 133)}
    assert tiles[133] / tiles[132] > shared[133] / shared[132]


def test_small_weights_of_a_timing_loop_come_from_the_l2_and_large_ones_from_memory():
    l40s = Catalog.load().gpu("l40s")
    roofline = Roofline(l40s)
    small, large = (matmul(16, side, k=side, dtype="bf16") for side in (2048, 8192))
    assert roofline.cost(timing_loop(small, 5)).memory_time < 0.5 * roofline.cost(small).memory_time
    assert roofline.cost(timing_loop(large, 5)).memory_time == pytest.approx(roofline.cost(large).memory_time, rel=0.01)


def test_a_board_with_less_power_has_a_lower_clock_in_a_long_run_alone():
    op = matmul(8192, 8192, k=8192, dtype="bf16")
    weak = replace(H100, power=H100.power / 2)
    rates = {part.power: Roofline(part).cost(op).rate for part in (H100, weak)}
    assert rates[weak.power] / rates[H100.power] == pytest.approx(0.5 ** (1 / 3), rel=0.01)
    short = timing_loop(op, 1)
    assert Roofline(weak).cost(short).rate == Roofline(H100).cost(short).rate > rates[H100.power]


def test_a_published_rate_of_long_runs_is_met():
    """stas00/ml-engineering: 794.5 TFLOP/s at most on H100 SXM; the constant of power was set by it, tiles were not."""
    rate = max(Roofline(H100).cost(matmul(side, side, k=side, dtype="bf16")).rate for side in (8192, 12288, 16384))
    assert rate == pytest.approx(794.5e12, rel=0.03)


def test_other_precisions_and_gpus_without_constants_keep_their_form():
    v100 = Catalog.load().gpu("v100-sxm2-16gb")
    assert not v100.product
    assert Roofline(H100).units(matmul(64, 64, k=64)) is None
    assert Roofline(v100).units(matmul(64, 64, k=64, dtype="fp16")) is None
    assert Roofline(H100, quantisation=False).units(matmul(64, 64, k=64, dtype="bf16")) is None


@pytest.mark.parametrize("key", ["gemm", "gemm-bf16"])
def test_an_efficiency_that_is_given_holds(key):
    op = matmul(8192, 8192, k=8192, dtype="bf16")
    given = Roofline(H100, efficiency={**H100.efficiency, key: 0.4})
    assert given.units(op) is None
    bare = Roofline(replace(H100, product={}), efficiency={**H100.efficiency, key: 0.4})
    assert given.cost(op) == bare.cost(op)


def test_a_convolution_reaches_less_than_a_product():
    op = conv2d(64, 256, filters=256, height=56, width=56, padding=1, dtype="bf16")
    assert op.gemm is not None
    product = replace(op, family="gemm")
    roofline = Roofline(H100)
    share = H100.efficiency["conv"] / H100.efficiency["gemm"]
    assert roofline.cost(product).compute_time / roofline.cost(op).compute_time == pytest.approx(share, rel=0.02)


def test_kernels_around_a_scaled_product_take_their_reads_and_writes():
    roofline = Roofline(H100)
    times = {op.kind: roofline.cost(op).time for op in scaled_product(16384, 256, k=8192)}
    read = 2.0 * 16384 * 8192 / H100.memory_bandwidth
    assert times["amax"] > read
    assert times["quantize"] > 1.5 * read
    assert sum(times.values()) > roofline.cost(matmul(16384, 256, k=8192, dtype="bf16")).time
    kinds = [op.kind for op in scaled_product(128, 256, k=512, scaling="block")]
    assert kinds == ["quantize", "block_scaled_matmul"]
    with pytest.raises(InputError, match="no way to scale"):
        scaled_product(1, 1, k=1, scaling="rows")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"scaling": "nvfp4"}, "fp8 is not scaled so"),
        ({"dtype": "fp4", "scaling": "block"}, "mx, nvfp4 for fp4"),
        ({"dtype": "bf16", "scaling": "mx"}, "fp8 or fp4 for mx"),
        ({"scaling": "nvpf4"}, "did you mean 'nvfp4'"),
    ],
)
def test_a_precision_that_is_not_scaled_so_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        scaled_product(128, 128, k=128, **given)
    with pytest.raises(InputError, match="has no blocks"):
        block_scaled_matmul(128, 128, k=128, scaling="tensor")


def test_products_of_four_bits_are_faster_where_the_gpu_has_them_and_refused_where_not():
    b200 = Roofline(Catalog.load().gpu("b200-sxm-180gb"))
    wide, mx, nv = (
        sum(b200.cost(op).time for op in scaled_product(8192, 8192, k=8192, dtype=dtype, scaling=scaling))
        for dtype, scaling in (("fp8", "mx"), ("fp4", "mx"), ("fp4", "nvfp4"))
    )
    assert mx < nv < 0.75 * wide, "NVFP4 finds the tensor's largest value first"
    op = block_scaled_matmul(8192, 8192, k=8192, dtype="fp4", scaling="nvfp4")
    assert 0.55 < op.flops / b200.cost(op).time / 9e15 < 0.65
    with pytest.raises(InputError, match="has no fp4 arithmetic"):
        Roofline(H100).cost(op)


def test_a_timing_loop_has_a_copy_at_least():
    with pytest.raises(InputError, match="copies"):
        timing_loop(matmul(1, 1, k=1), 0)
    assert math.isinf(matmul(1, 1, k=1).reuse)
    with pytest.raises(InputError, match="reuse"):
        replace(matmul(1, 1, k=1), reuse=0.0)


@pytest.mark.parametrize("kind", NODES)
def test_a_lattice_finds_the_factors_that_made_its_points(kind):
    rng = np.random.default_rng(1)
    sizes = np.exp2(np.array([rng.uniform(axis[0], axis[-1], 4000) for axis in NODES[kind]]).T)
    made = {name: 1.0 + 0.02 * number for number, name in enumerate(reversed(node_names(kind)))}
    ratio = corrected(node_weights(sizes, kind), made, kind)
    found = corrected(node_weights(sizes, kind), fit_lattice(sizes, ratio, kind=kind).factors, kind)
    assert np.median(np.abs(found / ratio - 1)) < 0.03
    for shape in (sizes[0], np.full(len(NODES[kind]), 1.0), np.full(len(NODES[kind]), 1e6)):
        row = node_weights(shape[None, :], kind)
        assert row.sum() == pytest.approx(1.0)
        assert correction(shape, made, kind) == pytest.approx(float(corrected(row, made, kind)[0]))


def test_there_is_a_lattice_of_known_kernels_alone():
    with pytest.raises(InputError, match="there is no lattice of these kernels"):
        FittedRoofline(H100, {"softmax-bf16": {LATTICE: 1.0}})


def test_a_lattice_scales_the_catalogues_time_and_is_refused_with_a_node_missing():
    factors = dict.fromkeys(node_names(), 1.25)
    model = FittedRoofline(H100, {"gemm-bf16": {LATTICE: 1.0, **factors}})
    op = matmul(4096, 4096, k=4096, dtype="bf16")
    assert model.cost(op).time == pytest.approx(1.25 * Roofline(H100).cost(op).time)
    with pytest.raises(InputError, match="a node is missing"):
        FittedRoofline(H100, {"gemm-bf16": {LATTICE: 1.0, "node-0-0-0": 1.0}})
    with pytest.raises(InputError, match="no node"):
        FittedRoofline(H100, {"gemm-bf16": {LATTICE: 1.0, **factors, "node-9-9-9": 1.0}})


@pytest.mark.parametrize("reuse", [math.inf, 1e6])
def test_a_lattice_beats_no_peak_and_no_memory(reuse):
    few = dict.fromkeys(node_names(), 1 / 16)
    model = FittedRoofline(H100, {"gemm-bf16": {LATTICE: 1.0, **few}})
    for m, n, k in ((4096, 1, 4096), (8192, 8192, 8192), (1, 65536, 64)):
        op = replace(matmul(m, n, k=k, dtype="bf16"), reuse=reuse)
        least = op.flops / H100.peak["bf16"]
        if math.isinf(reuse):
            least = max(least, op.nbytes / H100.memory_bandwidth)
        assert least <= model.cost(op).time <= Roofline(H100).cost(op).time
