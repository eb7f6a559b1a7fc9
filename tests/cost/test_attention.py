"""Attention by shape: blocks, tiles, masks and windows, the regimes of its time, and constants of libraries."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf import make_scenario, run
from simperf.cost import FittedRoofline, Roofline
from simperf.cost.attention import AttentionKernels, attention_shape, backward_constants, library_constants
from simperf.cost.attention_formulas import AttentionRates, AttentionWork, attention_time, decode_time, visible
from simperf.errors import InputError
from simperf.hardware import Catalog, quantity
from simperf.workload import Gemm, Op
from simperf.workload.kinds import attention, latent_attention
from simperf.workload.layer_kernels import ATTENTION_CHOOSERS, ATTENTION_LIBRARIES, LayerKernels
from simperf.workload.loops import timing_loop

RATES = AttentionRates(sms=10, clock=1e9, matrix=10e12, matrix_fp8=20e12, memory=1e12, floor=0.0)
PLAIN = {"matrix": 1.0, "exponential": 0.0, "serial": 0.0, "block": 0.0, "tail": 0.0, "fixed": 0.0}


def kernels(gpu, library="flash-attention"):
    part = Catalog.load().gpu(gpu)
    return AttentionKernels(part, memory=0.87 * part.memory_bandwidth, floor=part.kernel_floor, library=library)


def brute(queries, keys, causal, window):
    """Tiles of each block by looking at every pair of a query and a key."""
    rows, columns = min(128, -(-queries // 16) * 16), min(128, -(-keys // 16) * 16)
    q, k = np.arange(queries)[:, None] + keys - queries, np.arange(keys)[None, :]
    seen = np.ones((queries, keys), bool)
    if causal:
        seen &= k <= q
    if 0 < window < keys:
        seen &= k > q - window
    blocks = [seen[i : i + rows] for i in range(0, queries, rows)]
    return [len({int(j) // columns for j in np.flatnonzero(block.any(axis=0))}) for block in blocks]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 700), st.integers(0, 500), st.integers(0, 400))
def test_tiles_are_those_that_a_mask_leaves(queries, more, window):
    keys = queries + more
    found = brute(queries, keys, True, window)
    assert visible(queries, keys, window=window)[:3] == (len(found), sum(found), max(found))
    full = brute(queries, keys, False, 0)
    assert visible(queries, keys, causal=False)[:3] == (len(full), sum(full), max(full))


def work(instances, queries, keys, **more):
    blocks, tiles, longest, scores = visible(queries, keys, causal=False)
    given = {"width": 128, "products": 2.0, "nbytes": 0.0, **more}
    return AttentionWork(float(instances), blocks, tiles, longest, scores, **given)


def test_full_devices_reach_the_rate_of_the_matrix_units():
    time = attention_time(work(100, 1280, 1280), RATES, PLAIN)[0]
    assert time == pytest.approx(4 * 100 * 1280**2 * 128 / 10e12, rel=1e-9)
    half = attention_time(work(100, 1280, 1280, fp8=True), RATES, PLAIN)[0]
    assert half == pytest.approx(time / 2)


def test_one_block_takes_one_multiprocessor():
    alone = attention_time(work(1, 128, 1280), RATES, PLAIN)[0]
    assert alone == pytest.approx(4 * 128 * 1280 * 128 / 1e12, rel=1e-9), "a tenth of the device"
    assert attention_time(work(10, 128, 1280), RATES, PLAIN)[0] == pytest.approx(alone)


def test_exponentials_are_hidden_as_far_as_the_kernel_overlaps():
    narrow = work(100, 1280, 1280, width=16)
    products = attention_time(narrow, RATES, PLAIN)[0]
    scores = 100 * 1280**2 / (16.0 * 1e9 * 10)
    hidden = attention_time(narrow, RATES, {**PLAIN, "exponential": 1.0})[0]
    added = attention_time(narrow, RATES, {**PLAIN, "exponential": 1.0, "serial": 1.0})[0]
    assert hidden == pytest.approx(max(products, scores))
    assert added == pytest.approx(products + scores)


def test_memory_and_the_cache_of_keys_take_their_time():
    loaded = work(1, 128, 128, nbytes=1e9)
    assert attention_time(loaded, RATES, PLAIN)[0] == pytest.approx(1e-3, rel=1e-3)
    prepared = work(1, 128, 128, nbytes=1e9, prepared=1e9)
    both = attention_time(prepared, RATES, {**PLAIN, "prepare": 100.0})[0]
    assert both == pytest.approx(1e-3 + 1e-3 + 1e9 / (10 * 1e9 * 100), rel=1e-3)
    warm = attention_time(work(1, 128, 128, nbytes=1e6), replace(RATES, l2=1e9), {**PLAIN, "cached": 4.0}, warm=True)
    assert float(warm[2]) == pytest.approx(0.25e-6, rel=1e-3)


def test_decoding_reads_its_cache_once_and_few_runs_draw_less():
    constants = {"decode-memory": 1.0, "decode-matrix": 1.0, "decode-block": 0.0, "decode-fixed": 0.0}
    one = AttentionWork(40.0, 1, 1, 1, 1, 128, 2.0, 1e9)
    assert decode_time(one, RATES, constants, keys=256, group=1)[0] == pytest.approx(1e-3, rel=1e-6)
    few = AttentionWork(1.0, 1, 1, 1, 1, 128, 2.0, 1e9)
    assert decode_time(few, RATES, constants, keys=256, group=1)[0] == pytest.approx(1e-2, rel=1e-6)


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb", "l40s", "rtx-4090", "a10g"])
def test_longer_sequences_reach_more_of_the_peak(gpu):
    model = Roofline(Catalog.load().gpu(gpu))
    ops = [attention(16384 // n, 16, queries=n, head_dim=128, causal=True, dtype="bf16") for n in (512, 2048, 16384)]
    rates = [op.flops / model.cost(op).time / model.device.peak["bf16"] for op in ops]
    assert rates == sorted(rates)
    assert rates[-1] * model.device.matrix_fraction < 0.85
    assert rates[-1] <= 1.0
    backward = Op(
        "g", "attention_backward", 2.5 * ops[2].flops, 2 * ops[2].nbytes, 0.0, "bf16", "attention",
        gemm=Gemm(16, 16384, 128, 5 * 16384),
    )  # fmt: skip
    assert 2.0 < model.cost(backward).time / model.cost(ops[2]).time < 5.0


def test_limited_matrix_units_reach_a_larger_share_of_their_peak_in_attention_and_none_more_than_it():
    whole = Catalog.load().gpu("l40s")
    op = attention(1, 16, queries=16384, head_dim=128, causal=True, dtype="bf16")
    shares = []
    for fraction in (1.0, 0.5, 0.1):
        held = replace(whole, matrix_fraction=fraction, peak={**whole.peak, "bf16": fraction * whole.peak["bf16"]})
        shares.append(op.flops / Roofline(held).cost(op).time / held.peak["bf16"])
    assert shares == sorted(shares)
    assert shares[-1] <= 1.0
    same = replace(whole, peak={**whole.peak, "bf16": 0.5 * whole.peak["bf16"]})  # a slower chip, not a limited one
    assert op.flops / Roofline(same).cost(op).time / same.peak["bf16"] < 0.9 * shares[1]


def test_an_h100_climbs_with_the_sequence_as_its_figures_do():
    """FlashAttention-3, figure 5: 467 to 648 TFLOP/s without a mask, 292 to 616 with one (widths of 128)."""
    model = Roofline(Catalog.load().gpu("h100-sxm5-80gb"))
    for causal, published in ((False, (467, 638)), (True, (292, 579))):
        for queries, value in zip((512, 4096), published, strict=True):
            op = attention(16384 // queries, 16, queries=queries, head_dim=128, causal=causal, dtype="bf16")
            assert op.flops / model.cost(op).time / 1e12 == pytest.approx(value, rel=0.1)


def test_a_given_efficiency_goes_before_the_shape():
    part = Catalog.load().gpu("h100-sxm5-80gb")
    op = attention(8, 16, queries=8192, head_dim=128, dtype="bf16")
    flat = Roofline(part, efficiency={**part.efficiency, "attention": 0.5}).cost(op)
    assert flat.time == pytest.approx(op.flops / (0.5 * 989e12), rel=0.05), "but for its tiles"
    assert Roofline(part).cost(op).time != pytest.approx(flat.time, rel=0.05)
    assert Roofline.sharp(part).cost(op).time == pytest.approx(op.flops / 989e12)


def test_scores_in_memory_and_other_precisions_are_no_flash_kernel():
    part = Catalog.load().gpu("h100-sxm5-80gb")
    naive = attention(8, 16, queries=64, head_dim=64, library="unfused", dtype="bf16")
    assert attention_shape(naive) is None
    assert kernels("h100-sxm5-80gb").cost(naive) is None
    single = attention(8, 16, queries=1024, head_dim=64, dtype="fp32")
    share = part.efficiency["attention-fp32"]
    assert Roofline(part).cost(single).compute_time == pytest.approx(single.flops / (share * 66.9e12), rel=0.15)


def test_a_traced_attention_has_the_shape_of_its_products():
    op = attention(2, 8, queries=512, head_dim=64, causal=True, dtype="bf16")
    found = attention_shape(replace(op, attention=None))
    assert (found.batch * found.heads, found.queries, found.keys, found.head_dim) == (16, 512, 512, 64)
    assert found.causal
    model = Roofline(Catalog.load().gpu("a100-sxm4-80gb"))
    assert model.cost(replace(op, attention=None)).time == pytest.approx(model.cost(op).time)


def test_groups_share_keys_and_a_window_ends_them():
    model = kernels("h100-sxm5-80gb", "tensorrt-llm")
    options = {"queries": 1, "keys": 65536, "head_dim": 128, "dtype": "bf16"}
    many, few = (model.cost(attention(64, 32, kv_heads=kv, **options)).time for kv in (32, 8))
    assert 3.0 < many / few < 4.5
    short = model.cost(attention(64, 32, kv_heads=8, window=4096, **options)).time
    assert short < 0.2 * few
    long, windowed = (
        model.cost(attention(1, 32, queries=16384, head_dim=128, causal=True, window=w, dtype="bf16")).time
        for w in (0, 1024)
    )
    assert windowed < 0.4 * long


def test_a_latent_cache_is_written_once_for_all_heads():
    model = kernels("h100-sxm5-80gb", "tensorrt-llm")
    options = {"queries": 256, "head_dim": 192, "value_dim": 128, "causal": True, "dtype": "bf16"}
    own, shared = (model.cost(latent_attention(64, 128, latent=latent, **options)) for latent in (0, 576))
    assert shared.memory_time < 0.8 * own.memory_time
    assert shared.compute_time == own.compute_time


@pytest.mark.parametrize("library", ["flash-attention", "tensorrt-llm"])
@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm-180gb"])
def test_few_queries_take_one_querys_time_at_least(gpu, library):
    model, options = kernels(gpu, library), {"keys": 4096, "head_dim": 128, "causal": True, "dtype": "bf16"}
    times = [model.cost(attention(8, 32, queries=count, **options)).time for count in (1, 2, 3, 8, 15)]
    assert times == sorted(times)


def test_a_run_says_that_no_table_has_so_few_queries():
    ops = {count: {"op": "attention", "batch": 2, "heads": 16, "queries": count, "keys": 1024} for count in (1, 2, 16)}
    for count, op in ops.items():
        table = {"use": "operations", "ops": [{**op, "head_dim": 128, "dtype": "bf16"}]}
        found = run(make_scenario({"machine": {"use": "dgx-h100"}, "program": table})).assumed
        assert ("attention of 2 to 15 queries" in found) == (count == 2)


def test_libraries_differ_and_unknown_ones_are_refused():
    flash, second = (kernels("h100-sxm5-80gb", name) for name in ("flash-attention", "flash-attention-2"))
    op = attention(1, 16, queries=16384, head_dim=128, dtype="bf16")
    assert 1.5 < second.cost(op).time / flash.cost(op).time < 2.0
    with pytest.raises(InputError, match="flash-attention"):
        kernels("h100-sxm5-80gb", "flash-atention")
    with pytest.raises(InputError, match="no constants"):
        kernels("v100-sxm2-16gb")
    constants = library_constants(Catalog.load().gpu("h100-sxm5-80gb"), "flash-attention")
    assert backward_constants(constants)["block"] == constants["backward-block"]


def test_no_attention_is_faster_than_the_peaks_allow():
    model = Roofline(Catalog.load().gpu("h200-sxm-141gb"))
    for queries in (1, 16, 500, 4000):
        for heads, kv in ((1, 1), (32, 8), (96, 1)):
            op = attention(4, heads, queries=queries, keys=4000, kv_heads=kv, head_dim=128, causal=True, dtype="bf16")
            cost = model.cost(op)
            assert cost.time >= model.floor(op)
            assert 0 < cost.demand <= 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "[attention.flash-atention]\nmatrix = 0.9",
            "there are flash-attention, flash-attention-2, flash-attention-triton, cudnn, tensorrt-llm",
        ),
        ("[attention.flash-attention]\nmatrx = 0.9", "did you mean 'matrix'"),
        ("[attention.flash-attention]\nmatrix = 1.9", "a number from 0 to 1"),
        ("[attention]\nmatrix = 0.9", "no library 'matrix'"),
        ("[attention.flash-attention]\nblock = true", "a number from 0 to"),
    ],
    ids=["library", "constant", "value", "no library", "type"],
)
def test_a_file_of_attention_constants_is_checked(tmp_path, table, message):
    text = (Path(__file__).parents[2] / "simperf/hardware/data/architecture/hopper.toml").read_text("utf-8")
    text = text[: text.index("[attention.")] + table + "\n\n[source]\ndefault = 'a test'\n"
    (tmp_path / "architecture").mkdir()
    (tmp_path / "architecture" / "other.toml").write_text(text, "utf-8")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Catalog.load([tmp_path]).part("architecture", "other")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("[attention")]
    assert [problem.line for problem in caught.value.problems] == lines


def test_constants_that_lack_one_are_refused_by_name():
    part = replace(Catalog.load().gpu("h100-sxm5-80gb"), attention={"flash-attention.matrix": 0.9})
    with pytest.raises(InputError, match="exponential"):
        Roofline(part).cost(attention(1, 16, queries=64, head_dim=64, dtype="bf16"))
    assert ATTENTION_LIBRARIES == quantity.ATTENTION_LIBRARIES
    named = ("auto", *ATTENTION_LIBRARIES, *ATTENTION_CHOOSERS)
    assert named == get_args(get_type_hints(LayerKernels)["attention_library"])


def test_a_library_has_kernels_of_its_own():
    model = Roofline(Catalog.load().gpu("h100-sxm5-80gb"))
    shape = {"queries": 8192, "head_dim": 128, "dtype": "bf16"}
    known = [name for name in ATTENTION_LIBRARIES if name != "flash-attention-triton"]
    times = {name: model.cost(attention(2, 16, library=name, **shape)).time for name in ("", *known)}
    assert times[""] == times["flash-attention"]
    assert len(set(times.values())) == len(known)
    assert times["flash-attention-2"] > 1.5 * times[""], "FlashAttention-3, figure 5: 370 and 646 TFLOP/s"


@pytest.mark.parametrize(
    ("gpu", "library"),
    [
        ("a100-sxm4-80gb", "flash-attention"),
        ("h100-sxm5-80gb", "cudnn"),
        ("b200-sxm-180gb", "cudnn"),
    ],
)
def test_transformer_engine_takes_the_kernels_of_cudnn_from_hopper_on(gpu, library):
    model = Roofline(Catalog.load().gpu(gpu))
    chosen, named = (
        attention(2, 16, queries=8192, head_dim=128, dtype="bf16", causal=True, library=name)
        for name in ("transformer-engine", library)
    )
    assert model.attention_library(chosen) == library
    assert model.cost(chosen) == model.cost(named)


@pytest.mark.parametrize("queries", [2048, 16384])
def test_the_first_generation_in_triton_is_as_much_slower_as_its_successors_paper_says(queries):
    model = Roofline(Catalog.load().gpu("a100-sxm4-80gb"))
    shape = {"queries": queries, "head_dim": 128, "dtype": "bf16", "causal": True}
    first, second = (
        model.cost(attention(4, 16, library=name, **shape)).time for name in ("flash-attention-triton", "")
    )
    assert 1.3 < first / second < 2.5
    assert first / second == pytest.approx((1.3 * 2.5) ** 0.5, rel=0.05)


@pytest.mark.parametrize(
    ("gpu", "change", "words"),
    [
        ("l40s", {"library": "cudnn"}, "has no constants of the attention kernels of cudnn"),
        ("v100-sxm2-16gb", {"library": "cudnn"}, "no library has an effect on"),
        ("h100-sxm5-80gb", {"library": "cudnn", "dtype": "fp32"}, "no library has an effect on"),
        ("h100-sxm5-80gb", {"library": "cuddn"}, "did you mean 'cudnn'"),
    ],
)
def test_a_library_without_effect_is_refused(gpu, change, words):
    with pytest.raises(InputError, match=words):
        Roofline(Catalog.load().gpu(gpu)).cost(
            attention(2, 16, **{"queries": 512, "head_dim": 64, "dtype": "fp16", **change})
        )


def test_a_library_beside_an_efficiency_is_refused():
    part = Catalog.load().gpu("h100-sxm5-80gb")
    op = attention(2, 16, queries=512, head_dim=64, library="cudnn", dtype="bf16")
    for model in (Roofline(part, efficiency={**part.efficiency, "attention": 0.5}), Roofline.sharp(part)):
        with pytest.raises(InputError, match="no library has an effect on"):
            model.cost(op)
    fitted = FittedRoofline(part, {"attention": {"overhead": 1e-6, "rate": 5e14}})
    assert fitted.cost(replace(op, library="")).time > 0
    with pytest.raises(InputError, match="no library has an effect on"):
        fitted.cost(op)


def test_a_timing_loop_reads_what_fits_from_the_l2():
    model = Roofline(Catalog.load().gpu("l40s"))
    op = attention(1, 8, queries=16, keys=8192, head_dim=128, dtype="bf16", library="tensorrt-llm")
    assert model.cost(timing_loop(op, 1)).time < 0.95 * model.cost(op).time
    assert model.accounts(timing_loop(op, 1)) == {"cache"}
