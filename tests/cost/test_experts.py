"""Times of experts by tiles, traffic and fixed time, on GPUs of the catalogue (simperf.cost.experts)."""

import itertools
import math
from dataclasses import replace

import pytest

from simperf.cost import Roofline
from simperf.cost.experts import BLOCK_UNITS, ELSEWHERE, EXPERTS
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.workload.expert_loads import EXPERT_PRECISIONS
from simperf.workload.kinds import matmul, moe

H100, B200 = (Catalog.load().gpu(name) for name in ("h100-sxm5-80gb", "b200-sxm-180gb"))


def cost(gpu=H100, tokens=4096, **change):
    shape = {"hidden": 4096, "intermediate": 1536, "experts": 128, "top_k": 8} | change
    hidden = shape.pop("hidden")
    return Roofline(gpu).cost(moe(tokens, hidden, **shape))


@pytest.mark.parametrize("load", ["balanced", "power-law-1.2"])
@pytest.mark.parametrize("precision", EXPERT_PRECISIONS)
def test_more_tokens_never_take_less(precision, load):
    tokens = [2**i for i in range(15)] if load == "balanced" else [2**i for i in range(6, 15)]
    gpu = B200 if precision in BLOCK_UNITS else H100
    times = [cost(gpu, tokens=count, expert_parallel=4, dtype=precision, load=load).time for count in tokens]
    # another number of tokens has other experts by a power law, which the draw's noise allows
    slack = 1.0 if load == "balanced" else 0.97
    assert all(after >= before * slack for before, after in itertools.pairwise(times))


def test_a_row_beyond_a_tile_costs_a_tile_and_one_within_it_nothing_but_its_traffic():
    # one expert, whose width fills every multiprocessor many times over
    def time(rows):
        found = cost(tokens=rows, hidden=8192, intermediate=16384, experts=1, top_k=1)
        return found.compute_time

    assert time(256) == time(250)
    assert time(257) > 1.04 * time(256)


def test_experts_with_few_rows_pay_for_whole_tiles():
    few, many = (cost(tokens=8192, experts=count, top_k=1) for count in (8, 512))
    assert few.flops == many.flops
    assert many.compute_time > few.compute_time


def test_one_expert_is_the_plain_product_but_for_the_kernels_around_it():
    op = moe(8192, 8192, intermediate=8192, experts=1, top_k=1, gated=False)
    plain = 2 * Roofline(H100).cost(matmul(8192, 8192, k=8192, dtype="bf16")).time
    assert 0.75 < Roofline(H100).cost(op).compute_time / plain < 1.25


def test_limited_matrix_units_reach_a_larger_share_of_their_peak_in_experts_and_none_more_than_it():
    op = moe(8192, 8192, intermediate=8192, experts=1, top_k=1, gated=False)
    shares = []
    for fraction in (1.0, 0.5, 0.25, 0.1):
        held = replace(H100, matrix_fraction=fraction, peak={**H100.peak, "bf16": fraction * H100.peak["bf16"]})
        shares.append(op.flops / Roofline(held).cost(op).time / held.peak["bf16"])
    assert shares == sorted(shares)
    assert shares[1] > 1.1 * shares[0]
    assert shares[-1] <= 1.0


def test_few_tokens_take_what_their_experts_weights_take_to_read():
    found = cost(tokens=256, experts=256, hidden=6144, intermediate=2048, expert_parallel=4)
    weights = 2.0 * 64 * 3 * 6144 * 2048
    share = H100.experts["memory"] * H100.memory_bandwidth
    assert found.regime == "memory"
    assert 1.0 < (found.time - found.overhead) / (weights / share) < 1.1


def test_a_loop_over_a_small_layer_reads_it_from_the_l2_and_a_run_does_not():
    gpu = Catalog.load().gpu("l40s")
    op = moe(16, 2048, intermediate=768, experts=128, top_k=8, expert_parallel=16)
    warm, cold = (Roofline(gpu).cost(replace(op, reuse=reuse)).time for reuse in (op.nbytes, math.inf))
    assert op.nbytes < gpu.l2
    assert cold > 2 * warm
    assert cold - gpu.experts["fixed"] > op.nbytes / gpu.memory_bandwidth
    large = moe(4096, 6144, intermediate=2048, experts=128, top_k=8)
    times = [Roofline(gpu).cost(replace(large, reuse=reuse)).time for reuse in (large.nbytes, math.inf)]
    assert times[0] == pytest.approx(times[1], rel=1e-6)


def test_a_rank_without_rows_waits_for_the_kernels_around():
    op = moe(1, 4096, intermediate=1024, experts=8, top_k=1)
    empty = replace(op, experts=replace(op.experts, rows=()), flops=0.0, nbytes_read=0.0)
    assert H100.experts["fixed"] < Roofline(H100).cost(empty).time < 1.2 * H100.experts["fixed"]


def test_an_architecture_without_constants_has_those_of_all():
    volta = Catalog.load().gpu("v100-sxm2-16gb")
    assert not volta.experts
    found = Roofline(volta).cost(moe(4096, 4096, intermediate=1536, experts=8, top_k=2, dtype="fp16"))
    assert found.overhead == ELSEWHERE["fixed"]
    assert found.flops / found.time < ELSEWHERE["bf16"] * volta.peak["fp16"]


def test_a_gpu_without_the_precision_is_refused():
    with pytest.raises(InputError, match="no fp8 arithmetic"):
        cost(Catalog.load().gpu("a100-sxm4-80gb"), dtype="fp8")


def test_fixed_time_depends_on_the_kernels():
    plain, block, mixed = (cost(dtype=name).overhead for name in ("fp8", "fp8-block", "mxfp4-bf16"))
    assert block == pytest.approx(plain * EXPERTS["block"])
    assert mixed == pytest.approx(plain * EXPERTS["mixed"])


def test_the_textbook_roofline_stays_one():
    op = moe(4096, 4096, intermediate=1536, experts=128, top_k=8)
    found = Roofline.sharp(H100).cost(op)
    assert found.time == max(op.flops / H100.peak["bf16"], op.nbytes / H100.memory_bandwidth)


@pytest.mark.parametrize("gpu", ["h100-sxm5-80gb", "l40s"])
def test_factors_of_blocks_on_both_sides_need_units_that_apply_them(gpu):
    part = Catalog.load().gpu(gpu)
    with pytest.raises(InputError, match=f"{gpu} has no matrix units .*mxfp4-mxfp8(.|\n)*b200-sxm-180gb"):
        cost(part, dtype="mxfp4-mxfp8")
    assert cost(part, dtype="mxfp4-bf16").time > cost(B200, dtype="mxfp4-mxfp8").time
