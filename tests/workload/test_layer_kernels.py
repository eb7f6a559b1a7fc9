"""Kernels of a transformer layer that a library chooses: against hand counts."""

import pytest

from simperf.errors import InputError
from simperf.workload import zoo
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.traced import NEVER
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.step import training_model

N, D, HEADS, WIDTH = 24, 16, 4, 64
GPT = {"layers": 2, "hidden": WIDTH, "heads": HEADS, "vocabulary": 100, "sequence": N}
LLAMA = {**GPT, "ffn": 96}
GPT |= {"norm": "layer", "positions": "learned", "activation": "gelu", "bias": True, "tied": True, "dropout": True}
SCORES, QUERIES = HEADS * N * N, HEADS * N * D
PRODUCT = 2 * HEADS * N * N * D


def made(given, **kernels):
    return training_model(Transformer(**given), LayerKernels(**kernels))


def of(model, part, *, layer=0):
    """Kernels of a part of a block: kind, FLOP, and elements read and written, of one sample."""
    found = [op for op in model.ops if op.name.startswith(f"blocks.{layer}.") or op.name.startswith("copy.back")]
    return [
        (op.kind, op.flops.slope, [one.elements.at(1) for one in op.reads], [one.elements.at(1) for one in op.writes])
        for op in found
        if op.kind in part
    ]


@pytest.mark.parametrize("given", [GPT, LLAMA], ids=["gpt", "llama"])
def test_the_default_is_as_it_was(given):
    plain = training_model(Transformer(**given))
    assert plain.ops == made(given, attention="flash", norm="auto").ops
    same = {"norm": "fused"} if given is GPT else {"norm": "unfused"}
    assert plain.ops == made(given, **same).ops
    assert zoo.load(Transformer(**given)).ops == plain.ops


def test_batched_products_of_attention_by_hand():
    """Scores and their product with values; back, two products for each: five times as much as half of all pairs."""
    model = made(GPT, attention="unfused")
    products = of(model, ("bmm",))
    assert [flops for _, flops, _, _ in products] == [PRODUCT] * 6
    assert [(reads, writes) for _, _, reads, writes in products] == [
        ([QUERIES, QUERIES], [SCORES]),
        ([SCORES, QUERIES], [QUERIES]),
        ([SCORES, QUERIES], [QUERIES]),  # values
        ([QUERIES, QUERIES], [SCORES]),  # probabilities
        ([QUERIES, SCORES], [QUERIES]),  # keys
        ([SCORES, QUERIES], [QUERIES]),  # queries
    ]
    flash = made(GPT)
    whole = sum(op.flops.slope for op in flash.ops if op.family == "attention")
    assert whole == 2 * 2 * PRODUCT / 2 * 3.5, "half of all pairs, of two layers: two products, five back"


def test_kernels_between_the_products_by_hand():
    between = ("mul", "masked_fill", "softmax", "softmax_backward")
    assert of(made(GPT, attention="unfused"), between) == [
        ("mul", SCORES, [SCORES], [SCORES]),
        ("masked_fill", 0, [SCORES, N * N], [SCORES]),
        ("softmax", 15 * SCORES, [SCORES], [SCORES]),
        ("softmax_backward", 4 * SCORES, [SCORES, SCORES], [SCORES]),
        ("masked_fill", 0, [SCORES, N * N], [SCORES]),
        ("mul", SCORES, [SCORES], [SCORES]),
    ]
    assert of(made(GPT, attention="fused-softmax"), between) == [
        ("softmax", 15 * SCORES, [SCORES], [SCORES]),
        ("softmax_backward", 4 * SCORES, [SCORES, SCORES], [SCORES]),
        ("mul", QUERIES, [QUERIES], [QUERIES]),
        ("mul", QUERIES, [QUERIES], [QUERIES]),
    ]


def test_scores_stay_in_memory_until_the_backward_pass():
    """Probabilities of every layer, after dropout once more with their mask of a byte, which flash does not keep."""

    def kept(model):
        alive = [one for one in model.storages if one.role == "value" and one.born < model.forward]
        return sum(one.elements.at(1) for one in alive if one.dies == NEVER or one.dies > model.forward)

    sums = HEADS * N  # one log-sum-exp a row
    flash, fused, written = (kept(made(GPT, attention=kind)) for kind in ("flash", "fused-softmax", "unfused"))
    assert fused - flash == 2 * (3 * SCORES - sums)
    assert written == fused, "copies of queries, keys and values stand for those"


def test_bytes_of_one_product_at_a_batch_and_a_precision():
    scores = next(op for op in made(GPT, attention="fused-softmax").at(5, "fp16").ops if op.kind == "bmm")
    assert (scores.nbytes_read, scores.nbytes_written) == (2 * 5 * 2 * QUERIES, 2 * 5 * SCORES)
    assert (scores.gemm.batch, scores.gemm.m, scores.gemm.n, scores.gemm.k) == (5 * HEADS, N, N, D)


def test_no_dropout_has_no_kernel_of_it():
    without = made({**GPT, "dropout": False}, attention="unfused")
    assert not any("dropout" in op.kind for op in without.ops)


def test_rms_normalization_in_one_kernel_by_hand():
    model, wide = made(LLAMA, norm="fused"), N * WIDTH
    assert of(model, ("rms_norm", "rms_norm_backward")) == [
        ("rms_norm", 4 * wide, [wide, WIDTH], [wide, N]),
        ("rms_norm", 4 * wide, [wide, WIDTH], [wide, N]),
        ("rms_norm_backward", 9 * wide, [wide, wide, N, WIDTH], [wide, WIDTH]),
        ("rms_norm_backward", 9 * wide, [wide, wide, N, WIDTH], [wide, WIDTH]),
    ]
    assert not any(op.kind == "rsqrt" for op in model.ops)
    assert len(model.gradients) == len(model.parameters)


def test_a_traced_model_brings_its_own_kernels():
    with pytest.raises(InputError, match="are one tensor, which no trace takes apart"):
        zoo.load("gpt2", LayerKernels(attention="unfused"))
