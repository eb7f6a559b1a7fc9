"""Adapters and packed documents on one rank: arithmetic, weights and what is kept."""

from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.flops import adapter_weights, attention_flops, step_flops, tuning_flops
from simperf.workload.transformers.parallel import Spread, rank_passes
from simperf.workload.transformers.passes import Sync
from simperf.workload.tuning import BASES, Adapters, Documents, Trained

LLAMA = Transformer(layers=2, hidden=512, heads=8, kv_heads=2, ffn=1408, vocabulary=4096, sequence=256)
GPT = replace(LLAMA, kv_heads=0, activation="gelu", norm="layer", positions="learned")
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused")
LORA = Adapters(rank=8)


def made(adapters=LORA, documents=None, *, model=LLAMA, kernels=FUSED, **options):
    return rank_passes(model, kernels, trained=Trained(adapters, documents or Documents()), **options)


def ops(passes, model=LLAMA):
    for part, count in ((passes.embedding, 1), (passes.block, model.layers), (passes.head, 1)):
        for items in (part.forward, part.backward):
            yield from (one for one in items * count if isinstance(one, Op))


def products(passes, model=LLAMA):
    return sum(one.flops for one in ops(passes, model) if one.family == "gemm")


@pytest.mark.parametrize("model", [LLAMA, GPT])
@pytest.mark.parametrize("targets", [("qkv", "projection", "up", "down"), ("q", "v"), ("down",)])
def test_products_have_the_arithmetic_of_the_convention(model, targets):
    adapters = Adapters(rank=8, targets=targets)
    expected = tuning_flops(model, adapters, Documents()) - 3 * attention_flops(model)
    assert products(made(adapters, model=model), model) == pytest.approx(expected, rel=1e-12)
    assert made(adapters, model=model).block.parameters * model.layers == adapter_weights(model, adapters)


def test_weights_of_an_adapter_as_counted_by_hand():
    assert adapter_weights(LLAMA, Adapters(rank=8, targets=("q", "v"))) == 2 * 8 * (512 + 512 + 512 + 128)
    assert adapter_weights(LLAMA, Adapters(rank=4, targets=("up",))) == 2 * 4 * (512 + 2 * 1408)


@pytest.mark.parametrize("tp", [2, 4])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_tensor_parallel_ranks_share_the_arithmetic_and_add_up_the_gradients_of_what_is_whole(tp, sequence_parallel):
    options = {"model": replace(LLAMA, kv_heads=4), "tp": tp, "sequence_parallel": sequence_parallel}
    kv = replace(LLAMA, kv_heads=4)
    whole, part = made(model=kv), made(**options)
    shared = sum(one.elements for one in part.block.replicated)
    assert shared == 8 * (512 + 512 + 512 + 512)  # A of the first three, B of the last: each the width of the model
    again = (tp - 1) * 6 * LLAMA.sequence * LLAMA.layers * shared  # each rank multiplies with all of what it has whole
    assert tp * products(part, kv) == pytest.approx(products(whole, kv) + again)
    assert tp * (part.block.parameters - shared) + shared == whole.block.parameters
    (sync,) = (one for one in part.replicated_gradients([part.block]) if isinstance(one, Sync))
    assert sync.nbytes == part.gradient_width * shared
    assert not whole.replicated_gradients([whole.block])


def test_a_frozen_matrix_has_no_product_for_its_weights_and_keeps_no_input():
    full, tuned = rank_passes(LLAMA, FUSED).block, made(Adapters(rank=8, targets=("q",))).block
    assert {one.name for one in full.kept} - {one.name for one in tuned.kept} == {"norm2.output", "activation.output"}
    named = [one.name for one in tuned.backward if isinstance(one, Op) and "weight.gradient" in one.name]
    assert named == ["q.lora.b.weight.gradient", "q.lora.a.weight.gradient"]
    assert sum(one.nbytes for one in tuned.frozen) == 2 * full.parameters
    assert not made().embedding.backward
    assert made().head.parameters == made().embedding.parameters == 0


def test_gradients_of_adapters_are_a_pass_of_their_own_where_a_schedule_has_them_apart():
    block = made().block
    own = [one.name for one in block.weight_gradients if isinstance(one, Op)]
    assert own
    assert all(".lora." in name for name in own)
    left = {one.name for one in block.left}
    assert {"norm1.output", "activation.output", "qkv.lora.inner", "down.lora.gradient"} <= left


@pytest.mark.parametrize("base", list(BASES))
@pytest.mark.parametrize("recompute", ["none", "selective", "selective-op", "full"])
def test_a_base_in_four_bits_is_made_whole_before_each_product(base, recompute):
    block = made(Adapters(rank=8, base=base), recompute=recompute).block
    plain = made(recompute=recompute).block
    matrices = sum(one.elements for one in LLAMA.block_weights("block") if len(one.shape) == 2)
    norms = 2 * 512
    assert sum(one.nbytes for one in block.frozen) == pytest.approx(matrices * BASES[base] + 2 * norms)
    for part in ("forward", "backward"):
        own = [one for one in getattr(block, part) if isinstance(one, Op) and one.name.endswith(".dequantize")]
        again = any(one.name.startswith("again.") for one in own)
        assert again == (part == "backward" and recompute in ("full", "selective-op"))
        elements = sum(one.elements for one in own if not one.name.startswith("again."))
        assert elements == matrices
    assert block.activations == plain.activations
    assert block.temporary_forward >= plain.temporary_forward


def test_packed_documents_have_the_attention_of_their_own_tokens():
    def attention(documents):
        return next(one for one in made(Adapters(), documents).block.forward if isinstance(one, Op) and one.attention)

    whole, even = attention(Documents()), attention(Documents(tokens=64))
    assert even.flops == pytest.approx(whole.flops / 4, rel=0.02)
    assert (even.attention.batch, even.attention.queries) == (4, 64)
    listed = attention(Documents(lengths=(128, 64, 64)))
    assert listed.flops == pytest.approx(whole.flops * (128**2 + 2 * 64**2) / 256**2, rel=0.02)
    assert attention(Documents(lengths=(64,) * 4)) == even
    saved = step_flops(LLAMA) - tuning_flops(LLAMA, Adapters(), Documents(tokens=64))
    assert saved == pytest.approx(0.75 * 3 * attention_flops(LLAMA))


@pytest.mark.parametrize("exchange", ["ring", "all-gather", "all-to-all"])
@pytest.mark.parametrize("documents", [Documents(tokens=64), Documents(lengths=(64,) * 4)])
def test_ranks_that_share_sequences_share_each_document(documents, exchange):
    def attention(items):
        return sum(one.flops for one in items if isinstance(one, Op) and one.family == "attention")

    alone = made(Adapters(), documents).block
    spread = Spread(cp=2, context_exchange=exchange)
    shared, whole = (made(Adapters(), one, spread=spread).block for one in (documents, Documents()))
    for name in ("forward", "backward"):
        mine, other = getattr(shared, name), getattr(whole, name)
        # a causal chunk has a token more than half of its pairs
        assert attention(mine) == pytest.approx(attention(getattr(alone, name)) / 2, rel=0.04)
        assert [one for one in mine if isinstance(one, Sync)] == [one for one in other if isinstance(one, Sync)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"documents": Documents(tokens=32), "spread": Spread(cp=32)}, "64 or a smaller cp"),
        ({"documents": Documents(tokens=2), "spread": Spread(cp=2)}, "expected: 4 or a smaller cp"),
        ({"documents": Documents(lengths=(130, 126)), "spread": Spread(cp=2)}, "multiples of 4, or a smaller cp"),
        ({"documents": Documents(tokens=100)}, "128, or another divisor"),
        ({"documents": Documents(lengths=(100, 100))}, "200 tokens, and a sequence has 256"),
        ({"documents": Documents(tokens=64), "kernels": replace(FUSED, attention="unfused")}, "flash"),
        ({"model": replace(LLAMA, experts=8, experts_per_token=2)}, "experts"),
    ],
)
def test_what_cannot_be_tuned_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        made(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": -1}, "0 or more"),
        ({"rank": 8, "targets": ("qvk",)}, "qkv"),
        ({"rank": 8, "targets": ("qkv", "q")}, "together, or each its own"),
        ({"rank": 8, "targets": ()}, "each once"),
        ({"rank": 8, "base": "int4"}, "nf4"),
        ({"base": "nf4"}, "no adapters"),
    ],
)
def test_adapters_without_meaning_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Adapters(**options)


@pytest.mark.parametrize("options", [{"tokens": -1}, {"lengths": (0, 4)}, {"tokens": 4, "lengths": (4, 4)}])
def test_documents_without_meaning_are_refused(options):
    with pytest.raises(InputError):
        Documents(**options)
