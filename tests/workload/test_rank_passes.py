"""What one rank computes of a transformer: identities, and bytes by hand."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.flops import step_flops
from simperf.workload.transformers.parallel import rank_passes
from simperf.workload.transformers.passes import Await, Sync
from simperf.workload.transformers.shipped import shipped_transformers
from simperf.workload.transformers.step import training_model

LLAMA = Transformer(layers=3, hidden=256, heads=8, kv_heads=4, ffn=512, vocabulary=1024, sequence=128)
GPT = Transformer(
    layers=3,
    hidden=256,
    heads=8,
    vocabulary=1024,
    sequence=128,
    norm="layer",
    positions="learned",
    activation="gelu",
    bias=True,
    dropout=True,
)
FUSED = LayerKernels(
    norm="fused",
    rotary="fused",
    activation="fused",
    residual="fused",
    cross_entropy="fused",
    gradients="fp32",
    gradient_accumulation="fused",
    placeholders="by-shape",
)
WRITTEN = replace(FUSED, attention="fused-softmax", cross_entropy="in-place")
EAGER = LayerKernels(norm="fused", attention="unfused", bias="unfused", gradient_overlap="alone")
KERNELS = {"fused": FUSED, "fused-softmax": WRITTEN, "unfused": EAGER}
MODELS = {"llama": LLAMA, "gpt": GPT}
SPLITS = {"1": (1, False), "2": (2, False), "4": (4, False), "2s": (2, True), "4s": (4, True)}


def made(model=LLAMA, kernels=FUSED, *, split="1", **options):
    tp, sequence_parallel = SPLITS[split]
    return rank_passes(model, kernels, tp=tp, sequence_parallel=sequence_parallel, **options)


def collectives(items, *, small=0.0):
    return [(one.name, one.nbytes) for one in items if isinstance(one, Sync) and one.nbytes > small]


def products(items):
    """Arithmetic of matrix products and attention by convention: attention backward is twice the forward pass."""
    ops = [one for one in items if isinstance(one, Op)]
    gemms = sum(2.0 * op.gemm.batch * op.gemm.m * op.gemm.n * op.gemm.k for op in ops if op.family == "gemm")
    ahead = sum(op.flops for op in ops if op.kind == "attention")
    back = sum(op.flops for op in ops if op.kind == "attention_backward")
    return gemms + ahead + back * 2.0 / 2.5


def parts(passes):
    return passes.embedding, passes.block, passes.head


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_arithmetic_of_all_ranks_is_that_of_the_model(model, kernels, split, recompute):
    passes = made(model, kernels, split=split, microbatch=2, recompute=recompute)
    counts = (1, model.layers, 1)
    items = [products((*part.forward, *part.backward)) for part in parts(passes)]
    total = SPLITS[split][0] * sum(count * flops for count, flops in zip(counts, items, strict=True))
    expected = 2 * step_flops(model, causal=kernels.attention == "flash", recompute=recompute)
    assert total == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_one_rank_has_the_products_of_the_plain_model(model):
    passes = made(model)
    plain = training_model(model)
    counts = (1, model.layers, 1)
    for family in ("gemm", "attention"):
        mine = sum(
            count * op.flops - (op.elements * count if op.kind == "linear" and op.name == "qkv" and model.bias else 0)
            for part, count in zip(parts(passes), counts, strict=True)
            for op in (*part.forward, *part.backward)
            if isinstance(op, Op) and op.family == family
        )
        theirs = sum(2.0 * math.prod(size.at(1) for size in op.gemm) for op in plain.ops if op.family == family)
        if family == "attention":
            theirs = sum(op.flops.at(1) for op in plain.ops if op.family == family)
        assert mine == pytest.approx(theirs, rel=1e-12), family


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_weights_of_all_ranks_are_those_of_the_model(model, split):
    passes, tp = made(model, split=split), SPLITS[split][0]
    total = 0
    for part, count in zip(parts(passes), (1, model.layers, 1), strict=True):
        total += count * (tp * part.parameters - (tp - 1) * sum(one.elements for one in part.replicated))
    assert total == model.parameters


NOT_YET = ("experts", "kv_rank", "window", "sinks")
DENSE = {
    name: model for name, model in shipped_transformers().items() if not any(getattr(model, key) for key in NOT_YET)
}


@pytest.mark.parametrize("name", DENSE)
def test_shipped_models_on_eight_ranks(name):
    """Weights but for the padding of the vocabulary, and the arithmetic of the blocks; key heads fewer than ranks are
    on several of them."""
    model = DENSE[name]
    tp = math.gcd(8, model.heads)
    passes = rank_passes(model, FUSED, tp=tp, sequence_parallel=tp > 1, recompute="full")
    total = 0
    for part, count in zip(parts(passes), (1, model.layers, 1), strict=True):
        total += count * (tp * part.parameters - (tp - 1) * sum(one.elements for one in part.replicated))
    ends = 1 if model.tied else 2
    if model.tied:
        total -= tp * passes.sizes.vocabulary * model.hidden
    size = model.head_dim or model.hidden // model.heads
    key_heads = model.kv_heads or model.heads
    copies = model.layers * 2 * (max(tp, key_heads) - key_heads) * size * model.hidden
    assert total - ends * passes.sizes.padding * model.hidden == model.parameters + copies
    head = 3 * 2.0 * model.sequence * model.vocabulary * model.hidden
    blocks = tp * model.layers * products((*passes.block.forward, *passes.block.backward))
    again = 4 * 2.0 * model.sequence * copies  # forward, forward again, and two gradients
    assert blocks == pytest.approx(step_flops(model, causal=True, recompute="full") - head + again, rel=1e-12)


def test_tied_weights_are_counted_by_both_ends_and_told():
    passes = made(replace(GPT, tied=True), split="2")
    assert {one.name for one in passes.embedding.weights} & {one.name for one in passes.head.weights} == {
        "embed.weight"
    }
    assert passes.tied_nbytes == 4 * 512 * 256
    assert made(GPT).tied_nbytes == 0


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_bytes_of_tensor_parallelism_by_hand(model):
    """Four all-reduces of a layer; with the tokens shared each is a gather and a reduction, and two gathers again."""
    whole = 2.0 * 3 * model.sequence * model.hidden
    block = made(model, split="4", microbatch=3).block
    assert collectives(block.forward) == [("all-reduce", whole)] * 2
    assert collectives(block.backward) == [("all-reduce", whole)] * 2
    block = made(model, split="4s", microbatch=3).block
    assert Counter(collectives(block.forward)) == {("all-gather", whole): 2, ("reduce-scatter", whole): 2}
    assert Counter(collectives(block.backward)) == {("all-gather", whole): 4, ("reduce-scatter", whole): 2}
    assert not collectives(made(model).block.forward)


def test_the_ends_reduce_the_embedding_and_the_loss():
    whole, rows = 2.0 * 128 * 256, 4.0 * 128
    passes = made(split="2")
    assert collectives(passes.embedding.forward) == [("all-reduce", whole)]
    assert collectives(passes.embedding.backward) == []
    assert collectives(passes.head.forward) == [("all-reduce", rows), ("all-reduce", 2 * rows)]
    assert collectives(passes.head.backward) == [("all-reduce", whole)]
    online = made(split="2", kernels=WRITTEN)
    assert collectives(online.head.forward) == [("all-gather", 2 * 3 * rows)]
    assert collectives(online.head.backward) == collectives(passes.head.backward)
    passes = made(split="2s", kernels=EAGER)
    assert collectives(passes.embedding.forward) == [("reduce-scatter", whole)]
    assert collectives(passes.embedding.backward) == [("all-gather", whole)]
    assert collectives(passes.head.forward) == [("all-gather", whole), *[("all-reduce", rows)] * 3]
    assert collectives(passes.head.backward) == [("all-gather", whole), ("reduce-scatter", whole)]


def test_full_recomputation_repeats_the_forward_pass_with_its_collectives():
    plain, full = (made(split="2s", recompute=how).block for how in ("none", "full"))
    again = full.backward[: len(plain.forward)]
    assert [type(one) for one in again] == [type(one) for one in plain.forward]
    assert collectives(full.backward) == collectives(plain.forward) + collectives(plain.backward)
    assert full.forward == plain.forward


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("split", ["1", "2", "2s"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_passes_apart_are_the_whole_and_collectives_end(model, kernels, split, recompute):
    for part in parts(made(model, kernels, split=split, recompute=recompute)):
        assert Counter(part.input_gradients) + Counter(part.weight_gradients) == Counter(part.backward)
        for items in (part.forward, part.backward, part.input_gradients, part.weight_gradients):
            names = [one.label if isinstance(one, Sync) else one.name for one in items if not isinstance(one, Await)]
            assert len(set(names)) == len(names)
            open_syncs = set()
            for one in items:
                if isinstance(one, Sync) and not one.waits:
                    open_syncs.add(one.label)
                elif isinstance(one, Await):
                    open_syncs.remove(one.label)
            assert not open_syncs


def test_what_runs_beside_a_collective():
    """The input is gathered beside the input's gradient, whose reduction runs beside the weight's gradient."""
    items = made(split="2s").block.backward
    at = {getattr(one, "label", "") or one.name: place for place, one in enumerate(items) if not isinstance(one, Await)}
    waits = {one.label: place for place, one in enumerate(items) if isinstance(one, Await)}
    for name in ("qkv", "up"):
        gather, reduce = f"{name}.gather.back", f"{name}.reduce.back"
        assert at[gather] < at[f"{name}.input.gradient"] < waits[gather]
        assert at[reduce] < at[f"{name}.weight.gradient"] < waits[reduce]
    alone = made(split="2s", kernels=replace(FUSED, gradient_overlap="alone")).block.backward
    assert all(one.waits for one in alone if isinstance(one, Sync))
    assert not [one for one in alone if isinstance(one, Await)]


def test_traffic_of_the_loss_by_hand():
    """Of an element: in fp32 once written, twice read and written, and read; in place read, twice read and written."""
    elements = 128 * 1024

    def traffic(kernels):
        head = made(kernels=kernels).head
        ops = [one for one in (*head.forward, *head.backward) if isinstance(one, Op) and one.elements == elements]
        return sum(one.nbytes for one in ops if one.family != "gemm") / elements

    assert traffic(FUSED) == (2 + 4) + (4 + 4) + (4 + 4) + (4 + 2)
    assert traffic(WRITTEN) == 2 + (2 + 2) + (2 + 2)
    kept = {one.name: one.nbytes for one in made(kernels=WRITTEN).head.kept}
    assert kept["head.output"] == 2 * elements
    assert {one.name: one.nbytes for one in made().head.kept}["softmax"] == 4 * elements


def test_products_of_a_layer_by_hand():
    ops = {one.name: one for one in made(split="2", microbatch=2).block.backward if isinstance(one, Op)}
    rows, hidden, inner = 2 * 128, 256, 512 // 2
    up, down = ops["up.weight.gradient"], ops["down.input.gradient"]
    assert (up.gemm.m, up.gemm.n, up.gemm.k) == (2 * inner, hidden, rows)
    assert (down.gemm.m, down.gemm.n, down.gemm.k) == (rows, inner, hidden)
    assert up.nbytes_written == 4 * 2 * inner * hidden, "the main gradient, in fp32"
    assert up.nbytes_read == 2 * (rows * 2 * inner + rows * hidden) + up.nbytes_written
    narrow = made(kernels=replace(FUSED, gradients="as-weights")).block.backward
    assert next(one for one in narrow if getattr(one, "name", "") == "up.weight.gradient").nbytes_written == (
        2 * 2 * 512 * hidden
    )
    apart = made(kernels=replace(FUSED, gradient_accumulation="unfused")).block.backward
    names = [one.name for one in apart if isinstance(one, Op)]
    assert names.index("up.weight.accumulate") == names.index("up.weight.gradient") + 1


def test_key_and_value_heads_fewer_than_ranks_are_copied():
    passes = rank_passes(replace(LLAMA, kv_heads=2), FUSED, tp=4)
    shapes = {one.name: one.shape for one in passes.block.weights}
    assert shapes["block.k.weight"] == (32, 256), "one head of two, on each of four ranks"
    assert shapes["block.q.weight"] == (64, 256)


def test_messages_between_stages():
    whole = 2.0 * 128 * 256
    assert made(split="4").message_nbytes == whole
    assert made(split="4s").message_nbytes == whole / 4
    scattered = made(split="4", scattered=True)
    assert scattered.message_nbytes == whole / 4
    assert collectives(scattered.received) == [("all-gather", whole)]


def test_bytes_of_weights_gradients_and_the_optimizer():
    passes = made()
    assert (passes.weight_width, passes.gradient_width, passes.state_width) == (2, 4, 12)
    assert sum(op.nbytes for op in passes.adam.kernels(1000)) == 1000 * (4 + 12 + 12 + 4 + 2)
    single = made(precision="fp32")
    assert (single.weight_width, single.gradient_width, single.state_width) == (4, 4, 8)
    assert [op.kind for op in single.adam.kernels(1000)] == ["adam"]
    half = made(kernels=EAGER, precision="fp16")
    assert (half.gradient_width, half.adam.temporary(1, 1), passes.adam.temporary(1, 1)) == (2, 4, 0)
    assert [op.nbytes / 1000 for op in half.adam.kernels(1000)] == [2 + 4, 4 + 4, 16 + 12, 4 + 2]
    assert [one.nbytes for one in passes.clipping(1000)] == [4000]
    assert passes.clear_gradients(10).nbytes_written == 40


def test_gradients_of_weights_that_every_rank_has():
    def layers(passes):
        return [passes.embedding, *[passes.block] * 3, passes.head]

    whole, shared = made(split="4"), made(split="4s")
    assert whole.replicated_gradients(layers(whole)) == ()
    items = shared.replicated_gradients(layers(shared))
    assert collectives(items) == [("all-reduce", 4 * (3 * 2 + 1) * 256)]


@pytest.mark.parametrize(
    ("options", "key", "told"),
    [
        ({"tp": 3}, "tp", "tp = 2 or tp = 4"),
        ({"tp": 16}, "tp", "tp = 8"),
        ({"tp": 0}, "tp", ""),
        ({"microbatch": 0}, "microbatch", ""),
        ({"sequence_parallel": True}, "sequence_parallel", "tp above 1"),
        ({"recompute": "fully"}, "recompute", "none, selective, selective-op, full"),
        ({"precision": "fp8"}, "precision", "bf16"),
        ({"scattered": True}, "scattered", "false"),
    ],
)
def test_what_does_not_divide_is_refused(options, key, told):
    with pytest.raises(InputError) as caught:
        rank_passes(LLAMA, FUSED, **options)
    assert key in {one.key for one in caught.value.problems}
    assert told in str(caught.value)


def test_kernels_not_yet_played():
    for model, kernels in ((GPT, replace(FUSED, norm="unfused")), (replace(LLAMA, qk_norm=True), LayerKernels())):
        with pytest.raises(InputError, match="not yet simulated with a layout"):
            rank_passes(model, kernels)


def test_kernels_of_a_layout_have_no_effect_on_a_plain_model():
    with pytest.raises(InputError, match="has no effect") as caught:
        training_model(LLAMA, FUSED)
    assert {one.key for one in caught.value.problems} >= {"rotary", "gradients", "placeholders"}
