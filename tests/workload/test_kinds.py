"""FLOPs and bytes of every operation type against counts made by hand (simperf.workload.kinds, pointwise etc.)."""

import math

import pytest

from simperf.errors import InputError, UnknownNameError
from simperf.workload import OP_KINDS, PRECISIONS, element_size, make_op
from simperf.workload.kinds import attention, conv2d, latent_attention, linear, softmax, unary

HAND = [
    # table, FLOP, bytes read, bytes written
    ({"op": "matmul", "m": 2, "n": 3, "k": 4}, 2 * 2 * 3 * 4, 4 * (8 + 12), 4 * 6),
    ({"op": "bmm", "batch": 5, "m": 2, "n": 3, "k": 4, "dtype": "fp16"}, 5 * 48, 2 * 5 * 20, 2 * 5 * 6),
    ({"op": "linear", "rows": 2, "fan_in": 4, "fan_out": 3}, 48 + 6, 4 * (8 + 12 + 3), 4 * 6),
    ({"op": "linear", "rows": 2, "fan_in": 4, "fan_out": 3, "bias": False}, 48, 4 * 20, 4 * 6),
    # 1 x 3 x 4 x 4 image, 8 filters of 3 x 3, padded to the same size: 128 results of 27 multiply-adds
    (
        {"op": "conv2d", "batch": 1, "channels": 3, "filters": 8, "height": 4, "width": 4, "padding": 1},
        2 * 128 * 27,
        4 * (48 + 8 * 27),
        4 * 128,
    ),
    # depthwise: each of the 4 filters sees one channel; 5 x 5 -> 2 x 2 with stride 2
    (
        {"op": "conv2d", "batch": 2, "channels": 4, "filters": 4, "height": 5, "width": 5, "stride": 2, "groups": 4},
        2 * (2 * 4 * 2 * 2) * 9,
        4 * (2 * 4 * 25 + 4 * 9),
        4 * 2 * 4 * 4,
    ),
    ({"op": "cos", "elements": 10}, 80, 40, 40),
    ({"op": "relu", "elements": 10, "dtype": "bf16"}, 10, 20, 20),
    ({"op": "gelu", "elements": 10}, 120, 40, 40),
    ({"op": "add", "elements": 10}, 10, 80, 40),
    ({"op": "mul", "elements": 10, "scalar": True}, 10, 40, 40),
    ({"op": "elementwise", "elements": 10, "flops_per_element": 3, "reads": 3, "writes": 2}, 30, 120, 80),
    ({"op": "dropout", "elements": 10}, 20, 40, 50),
    ({"op": "reduction", "rows": 3, "columns": 5}, 3 * 4, 60, 12),
    ({"op": "softmax", "rows": 3, "columns": 5}, 15 * 15, 60, 60),
    ({"op": "layernorm", "rows": 3, "columns": 5}, 7 * 15, 4 * (15 + 10), 60),
    ({"op": "batchnorm", "batch": 2, "channels": 3, "pixels": 4}, 7 * 24, 4 * (48 + 12), 96),
    ({"op": "batchnorm", "batch": 2, "channels": 3, "pixels": 4, "training": False}, 48, 4 * (24 + 12), 96),
    ({"op": "pool2d", "batch": 1, "channels": 2, "height": 4, "width": 4}, 2 * 4 * 4, 128, 32),
    ({"op": "cross_entropy", "rows": 2, "classes": 10}, 240, 80 + 16, 80 + 4),
    ({"op": "embedding", "tokens": 3, "width": 4}, 0, 48 + 24, 48),
    ({"op": "fill", "elements": 7}, 0, 0, 28),
    ({"op": "copy", "elements": 7, "dtype": "fp64"}, 0, 56, 56),
    ({"op": "amax", "elements": 10}, 10, 20, 4),
    ({"op": "quantize", "elements": 10}, 20, 20, 10 + 4),
    ({"op": "quantize", "elements": 256, "scaling": "block"}, 512, 512, 256 + 2 * 4),
    # factors of 4 bytes: 2 a row of 256 activations, 2 for weights of 256 x 128
    ({"op": "block_scaled_matmul", "m": 3, "n": 128, "k": 256}, 2 * 3 * 128 * 256, 131 * 256 + 4 * 8, 2 * 3 * 128),
    # MX: a byte for 32 elements; NVFP4: a byte for 16, and 4 for the tensor
    ({"op": "quantize", "elements": 64, "to": "fp4", "scaling": "mx"}, 128, 128, 32 + 2),
    ({"op": "quantize", "elements": 64, "to": "fp4", "scaling": "nvfp4"}, 128, 128, 32 + 4 + 4),
    (
        {"op": "block_scaled_matmul", "m": 3, "n": 128, "k": 256, "dtype": "fp4", "scaling": "nvfp4"},
        2 * 3 * 128 * 256,
        131 * 256 * (1 / 2 + 1 / 16) + 2 * 4,
        2 * 3 * 128,
    ),
    (
        {"op": "block_scaled_matmul", "m": 3, "n": 128, "k": 256, "scaling": "mx"},
        2 * 3 * 128 * 256,
        131 * 256 * (1 + 1 / 32),
        2 * 3 * 128,
    ),
    ({"op": "sgd", "parameters": 10}, 20, 80, 40),
    ({"op": "sgd", "parameters": 10, "momentum": True, "weight_decay": True}, 60, 120, 80),
    ({"op": "adam", "parameters": 10}, 200, 160, 120),
    ({"op": "adam", "parameters": 10, "dtype": "bf16"}, 200, 2 * 20 + 80, 20 + 80),
    # 2 x 3 heads, 4 queries, 5 keys of 8: QK^T and PV take 2 * 4 * 5 * 8 each
    (
        {"op": "attention", "batch": 2, "heads": 3, "queries": 4, "keys": 5, "head_dim": 8},
        6 * 2 * (2 * 4 * 5 * 8),
        2 * 6 * 8 * (4 + 5 + 5),
        2 * 6 * 8 * 4,
    ),
    # keys of 8, values of 6, all of each head's own
    (
        {"op": "latent_attention", "batch": 2, "heads": 3, "queries": 4, "keys": 5, "head_dim": 8, "value_dim": 6},
        6 * 2 * (4 * 5) * (8 + 6),
        2 * 6 * (8 * 4 + (8 + 6) * 5),
        2 * 6 * 6 * 4,
    ),
    # 6 tokens to 2 of 4 experts, 3 rows each; the rank has 2 experts of 2 x 3 x 5, and knows all scores
    (
        {"op": "moe", "tokens": 6, "hidden": 3, "intermediate": 5, "experts": 4, "top_k": 2, "expert_parallel": 2},
        2 * 6 * 15 * 3,
        2 * (2 * 3 * 15 + 6 * 3 + 6 * 4),
        2 * 6 * 3,
    ),
    ({"op": "custom", "flops": 100, "nbytes": 30, "written": 10, "family": "gemm"}, 100, 20, 10),
]


@pytest.mark.parametrize(
    ("spec", "flops", "read", "written"), HAND, ids=lambda v: v["op"] if isinstance(v, dict) else ""
)
def test_flops_and_bytes_by_hand(spec, flops, read, written):
    op = make_op(spec)
    assert (op.flops, op.nbytes_read, op.nbytes_written) == (flops, read, written)
    assert op.nbytes == read + written


def test_every_kind_is_counted_by_hand_or_is_one_of_the_functions():
    from simperf.workload.kinds import BINARY_FLOPS, UNARY_FLOPS

    assert set(OP_KINDS) == {spec["op"] for spec, *_ in HAND} | set(UNARY_FLOPS) | set(BINARY_FLOPS)


def test_first_layer_of_resnet_is_the_known_118_million_multiply_adds():
    op = conv2d(1, 3, filters=64, height=224, width=224, kernel=7, stride=2, padding=3)
    assert op.flops / 2 == 118_013_952


def test_the_gemm_inside_holds_all_the_work():
    for op in (
        conv2d(4, 16, filters=32, height=9, width=7, groups=4),
        linear(3, 5, fan_out=7, bias=False),
        attention(2, 3, queries=4, keys=5, head_dim=8),
    ):
        assert 2.0 * op.gemm.batch * op.gemm.m * op.gemm.n * op.gemm.k == op.flops


def test_grouped_heads_and_windows_of_attention():
    whole, grouped = (attention(2, 8, queries=64, head_dim=16, kv_heads=kv) for kv in (8, 2))
    size = 2 * 64 * 16 * 2
    assert whole.nbytes_read - grouped.nbytes_read == 2 * (8 - 2) * size
    assert whole.flops == grouped.flops
    assert whole.attention.kv_heads == 8
    # by counting: query i sees min(i + 1, 16) keys
    seen = sum(min(i + 1, 16) for i in range(64))
    windowed = attention(1, 1, queries=64, head_dim=16, causal=True, window=16)
    assert windowed.flops == pytest.approx(4 * 16 * seen)
    # the last 8 queries of 64 keys: query i sees 57 + i
    chunk = attention(1, 1, queries=8, keys=64, head_dim=16, causal=True)
    assert chunk.flops == pytest.approx(4 * 16 * sum(57 + i for i in range(8)))
    latent = latent_attention(1, 4, queries=8, head_dim=192, value_dim=128)
    assert latent.flops == 2 * 4 * 8 * 8 * (192 + 128)
    assert latent.nbytes_written == 2 * 4 * 8 * 128


@pytest.mark.parametrize(
    ("options", "key"),
    [({"kv_heads": 3}, "kv_heads"), ({"window": -1}, "window"), ({"window": 4, "library": "unfused"}, "window"),
     ({"queries": 0}, "queries"), ({"flash": False}, 'library = "unfused" for false')],
)  # fmt: skip
def test_attention_that_no_kernel_has_is_refused(options, key):
    with pytest.raises(InputError, match=key):
        attention(1, 8, **{"queries": 64, "head_dim": 16, **options})


@pytest.mark.parametrize(
    ("options", "key"),
    [({"latent": True}, "latent"), ({"value_dim": 0}, "value_dim"), ({"library": "unfused"}, "library")],
)
def test_latent_attention_that_no_kernel_has_is_refused(options, key):
    with pytest.raises(InputError, match=key):
        latent_attention(1, 8, **{"queries": 64, "head_dim": 16, "value_dim": 8, **options})


def test_naive_attention_moves_the_scores_four_times_and_computes_the_same():
    flash, naive = (attention(2, 3, queries=64, head_dim=8, library=library) for library in ("", "unfused"))
    assert naive.flops == flash.flops
    assert naive.nbytes - flash.nbytes == 4 * 2 * (6 * 64 * 64)
    assert not naive.attention.flash
    assert not naive.library
    causal = attention(2, 3, queries=64, head_dim=8, causal=True)
    assert causal.flops == flash.flops / 2


def test_optimizers_keep_no_new_memory():
    assert make_op({"op": "adam", "parameters": 10}).holds == 0
    assert softmax(3, 5).holds == 60


def test_tf32_is_fp32_in_memory():
    assert element_size("tf32") == PRECISIONS["fp32"] == 4
    with pytest.raises(UnknownNameError, match="did you mean 'fp16'"):
        element_size("fp_16")
    with pytest.raises(UnknownNameError, match="did you mean 'cos'"):
        unary("coss", 10)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, 10**16])
def test_sizes_that_cannot_be(size):
    with pytest.raises(InputError, match="rows: must be a whole number"):
        softmax(size, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 3}, "multiple of groups"),
        ({"kernel": 9}, "larger than the padded image"),
        ({"padding": -1}, "padding: must be a whole number, 0 or more"),
    ],
)
def test_impossible_convolutions(change, message):
    with pytest.raises(InputError, match=message):
        conv2d(**{"batch": 1, "channels": 4, "filters": 4, "height": 8, "width": 8} | change)


def test_pooling_window_must_fit():
    with pytest.raises(InputError, match="larger than the padded image"):
        make_op({"op": "pool2d", "batch": 1, "channels": 1, "height": 2, "width": 2, "kernel": 3})
    with pytest.raises(InputError, match="padding"):
        make_op({"op": "pool2d", "batch": 1, "channels": 1, "height": 2, "width": 2, "padding": -1})


def test_custom_cannot_write_more_than_it_moves():
    with pytest.raises(InputError, match="nbytes_read"):
        make_op({"op": "custom", "flops": 1, "nbytes": 10, "written": 20})
    with pytest.raises(InputError, match="no kernel family"):
        make_op({"op": "custom", "flops": 1, "nbytes": 10, "family": "gem"})
    with pytest.raises(InputError, match="flops"):
        make_op({"op": "custom", "flops": math.nan, "nbytes": 10})
