"""The decoder's kernels against counts made by hand (simperf.workload.transformers.forward)."""

import pytest

from simperf.errors import InputError
from simperf.workload import decoder, fuse

SHAPE = {"heads": 32, "kv_heads": 8, "hidden": 8192, "vocabulary": 128256}


def test_products_make_two_flop_a_weight_and_token():
    tokens = 512
    graph = decoder(16, 2048, **SHAPE, sequence=tokens)
    weights = 16 * (2048 * (2048 + 2 * 512 + 2048) + 3 * 2048 * 8192) + 2048 * 128256
    products = sum(op.flops for op in graph.ops if op.family == "gemm")
    assert products == pytest.approx(2 * weights * tokens, rel=1e-12)
    attention = sum(op.flops for op in graph.ops if op.family == "attention")
    assert attention == pytest.approx(16 * 2 * tokens**2 * 2048, rel=1e-12), "causal: half of 4 n^2 d"


def test_fusion_leaves_products_and_takes_chains_away():
    graph = decoder(2, 64, heads=4, kv_heads=4, hidden=256, vocabulary=1000, sequence=16)
    fused = fuse(graph)
    assert sum(op.gemm is not None for op in fused.ops) == sum(op.gemm is not None for op in graph.ops)
    assert len(fused.ops) < len(graph.ops)
    assert fused.nbytes < graph.nbytes


def test_heads_must_divide():
    with pytest.raises(InputError, match="multiple of heads"):
        decoder(1, 100, heads=3, kv_heads=1, hidden=10, vocabulary=10)
