"""Kernels of PyTorch's stacks on one rank: separate products, float8, recomputation by operation, its cross-entropy."""

from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.memory import taken
from simperf.memory.allocator import LARGE_SEGMENT
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.flops import step_flops
from simperf.workload.transformers.parallel import rank_passes
from simperf.workload.transformers.passes import Sync
from simperf.workload.tuning import Trained

LLAMA = Transformer(layers=2, hidden=512, heads=8, kv_heads=2, ffn=1408, vocabulary=4096, sequence=256)
GPT = replace(LLAMA, kv_heads=0, activation="gelu", norm="layer", positions="learned")
TORCH = LayerKernels(norm="fused", projections="separate", cross_entropy="log-softmax", recomputed="needed")


def products(items):
    return [one for one in items if isinstance(one, Op) and one.family == "gemm"]


def flops(items):
    return sum(one.flops for one in products(items))


def in_products(passes):
    """Arithmetic of a step's products, without attention."""
    parts = [(passes.embedding, 1), (passes.block, passes.sizes.model.layers), (passes.head, 1)]
    return sum(count * (flops(part.forward) + flops(part.backward)) for part, count in parts)


@pytest.mark.parametrize("model", [LLAMA, GPT])
@pytest.mark.parametrize("recompute", ["none", "selective-op"])
def test_products_have_the_arithmetic_of_the_convention(model, recompute):
    passes = rank_passes(model, TORCH, recompute=recompute)
    attention = 3.0 * (step_flops(model) / 3 - 2 * model.sequence * products_of(model))
    assert in_products(passes) == pytest.approx(step_flops(model, recompute=recompute) - attention, rel=1e-9)


def products_of(model):
    """Weights that each token is multiplied with."""
    blocks = sum(one.elements for one in model.block_weights("block") if len(one.shape) == 2)
    return model.layers * blocks + model.vocabulary * model.hidden


@pytest.mark.parametrize("recompute", ["none", "full", "selective-op"])
def test_separate_products_have_the_arithmetic_of_joined_ones(recompute):
    joined, separate = (
        rank_passes(LLAMA, replace(TORCH, projections=one), recompute=recompute).block for one in ("joined", "separate")
    )
    for part in ("forward", "backward", "weight_gradients"):
        assert flops(getattr(joined, part)) == pytest.approx(flops(getattr(separate, part)))
    assert len(products(separate.forward)) == len(products(joined.forward)) + 3
    assert separate.parameters == joined.parameters


def again(block):
    return [one.name for one in products(block.backward) if one.name.startswith("again.")]


def test_recomputation_stops_at_the_last_tensor_that_is_needed():
    whole = rank_passes(LLAMA, replace(TORCH, recomputed="whole"), recompute="full").block
    needed = rank_passes(LLAMA, TORCH, recompute="full").block
    assert set(again(whole)) - set(again(needed)) == {"again.down"}
    assert whole.activations == needed.activations


def test_recomputation_by_operation_does_every_other_product_again_and_keeps_the_others():
    block = rank_passes(LLAMA, TORCH, recompute="selective-op").block
    assert again(block) == ["again.qkv.1", "again.projection", "again.up.1"]
    assert again(rank_passes(GPT, TORCH, recompute="selective-op").block) == ["again.qkv.1", "again.projection"]
    tokens, width = LLAMA.sequence, 2.0
    kept = width * tokens * (4 * LLAMA.hidden + LLAMA.key_width + LLAMA.inner_width) + 4.0 * tokens * LLAMA.heads
    assert block.activations == kept
    full, none = (rank_passes(LLAMA, TORCH, recompute=one).block for one in ("full", "none"))
    assert full.activations < block.activations < none.activations
    assert flops(none.backward) < flops(block.backward) < flops(full.backward)


def test_under_tensor_parallelism_the_result_of_reductions_is_kept():
    block = rank_passes(LLAMA, TORCH, tp=2, sequence_parallel=True, recompute="selective-op").block
    labels = [one.label for one in block.backward if isinstance(one, Sync) and one.label.startswith("again.")]
    assert labels == ["again.qkv.gather", "again.up.gather"]


@pytest.mark.parametrize(
    ("options", "key"), [({"experts": 4, "experts_per_token": 2}, "recompute"), ({"dropout": True}, "recompute")]
)
def test_what_is_not_computed_again_by_operation_is_refused(options, key):
    with pytest.raises(InputError) as caught:
        rank_passes(replace(LLAMA, **options), TORCH, recompute="selective-op")
    assert key in {one.key for one in caught.value.problems}


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_inputs_that_were_gathered_and_kept_are_not_gathered_again(recompute):
    def gathers(**kernels):
        passes = rank_passes(LLAMA, replace(TORCH, **kernels), tp=2, sequence_parallel=True, recompute=recompute)
        return [
            [one.label for one in each.backward if isinstance(one, Sync) and one.name == "all-gather"]
            for each in (passes.block, passes.head)
        ]

    for once, twice in zip(gathers(gathered_inputs="kept"), gathers(), strict=True):
        assert [one for one in twice if one.endswith("gather.back")]
        assert once == [one for one in twice if not one.endswith("gather.back")]


def test_inputs_that_are_kept_take_memory():
    def kept(**kernels):
        return rank_passes(LLAMA, replace(TORCH, **kernels), tp=2, sequence_parallel=True).block.activations

    local = 2.0 * LLAMA.sequence * LLAMA.hidden / 2
    assert kept(gathered_inputs="kept") - kept() == 2 * local


def test_float8_products_are_those_of_the_blocks_and_have_casts_beside():
    usual, narrow = (rank_passes(LLAMA, replace(TORCH, products=one)) for one in ("as-weights", "float8"))
    for part in ("forward", "backward"):
        ours, theirs = products(getattr(narrow.block, part)), products(getattr(usual.block, part))
        assert [one.flops for one in ours] == [one.flops for one in theirs]
        assert {one.dtype for one in ours} == {"fp8"}
        assert sum(one.nbytes_read for one in ours) == pytest.approx(sum(one.nbytes_read for one in theirs) / 2)
        assert sum(one.nbytes_written for one in ours) == sum(one.nbytes_written for one in theirs)
        casts = [one for one in getattr(narrow.block, part) if isinstance(one, Op) and one.name.endswith(".cast")]
        assert len(casts) == (8 if part == "forward" else 12)
        assert products(getattr(narrow.head, part)) == products(getattr(usual.head, part))
    assert narrow.block.activations == usual.block.activations


def test_float8_halves_what_tensor_parallel_ranks_gather_forward():
    def gathered(**kernels):
        block = rank_passes(LLAMA, replace(TORCH, **kernels), tp=2, sequence_parallel=True).block
        return [one.nbytes for one in block.forward if isinstance(one, Sync) and one.name == "all-gather"]

    assert gathered(products="float8") == [one / 2 for one in gathered()]


def test_pytorchs_cross_entropy_holds_three_copies_of_the_logits_in_fp32():
    head = rank_passes(LLAMA, TORCH).head
    logits = 4.0 * LLAMA.sequence * LLAMA.vocabulary
    assert head.activations > logits
    assert head.temporary_backward + head.activations == pytest.approx(3 * logits, rel=0.05)
    assert head.temporary_forward + head.activations == pytest.approx(2.5 * logits, rel=0.06)


def test_a_loss_that_ranks_share_has_a_tensor_for_each_operation():
    """Three of logits in fp32 forward, beside those in bf16, and four backward; three reductions of a row each."""
    head = rank_passes(LLAMA, TORCH, tp=2, sequence_parallel=True).head
    logits = 4.0 * LLAMA.sequence * LLAMA.vocabulary / 2
    assert head.activations > logits
    assert head.temporary_forward + head.activations == pytest.approx(3.5 * logits, rel=0.06)
    assert head.temporary_backward + head.activations == pytest.approx(4 * logits, rel=0.06)
    reduced = [one for one in head.forward if isinstance(one, Sync) and one.name == "all-reduce"]
    assert [one.label for one in reduced] == [f"loss.{name}.reduce" for name in ("max", "sum", "target")]
    assert {one.nbytes for one in reduced} == {4.0 * LLAMA.sequence}


@pytest.mark.parametrize("tp", [1, 2])
def test_a_compiled_loss_keeps_logits_as_they_are_and_writes_their_gradient(tp):
    kernels = replace(TORCH, cross_entropy="compiled")
    model = replace(LLAMA, sequence=4096)  # of more tokens than the hidden width
    head = rank_passes(model, kernels, tp=tp, sequence_parallel=tp > 1).head
    logits = 2.0 * model.sequence * model.vocabulary / tp
    kept = {one.name: one.nbytes for one in head.kept}
    assert kept["head.output"] == logits
    assert kept["loss.statistics"] == 8.0 * model.sequence
    rest = sum(size for name, size in kept.items() if name != "head.output")
    assert head.temporary_backward + head.activations == pytest.approx(2 * logits + rest, rel=0.05)
    (written,) = (one for one in head.backward if isinstance(one, Op) and one.name == "loss.logits.gradient")
    assert (written.nbytes_read, written.nbytes_written) == (logits, logits)
    read = [one for one in head.forward if isinstance(one, Op) and one.name in ("loss.max", "loss.exp")]
    assert [one.nbytes_read for one in read] == [logits] * (1 if tp == 1 else 2)
    assert sum(one.nbytes_written for one in read) == 0.0


def free_behind(head, allocator):
    """What an allocator has taken beyond what the head's tensors hold in its backward pass."""
    return taken(head.tensors, allocator).backward - head.activations - head.temporary_backward


@pytest.mark.parametrize("allocator", ["fixed-segments", "expandable-segments"])
@pytest.mark.parametrize(("kernels", "tp", "wide"), [(TORCH, 1, 3), (TORCH, 2, 4)])
def test_a_free_block_of_narrow_logits_helps_no_wide_ones(kernels, tp, wide, allocator):
    """So many tensors of logits in fp32 are backward, and the block of those in bf16 is between them."""
    model = replace(LLAMA, sequence=4096)
    head = rank_passes(model, kernels, tp=tp, sequence_parallel=tp > 1).head
    logits = 2.0 * model.sequence * model.vocabulary / tp
    states = 2.0 * model.sequence * model.hidden
    shared = LARGE_SEGMENT if allocator == "fixed-segments" else 0  # of tensors below 10 MiB, as states are
    assert logits <= free_behind(head, allocator) <= logits + 2 * states + shared
    assert head.temporary_backward + head.activations == pytest.approx(wide * 2 * logits, rel=0.2)
    compiled = rank_passes(model, replace(kernels, cross_entropy="compiled"), tp=tp, sequence_parallel=tp > 1).head
    assert free_behind(compiled, allocator) <= 2 * states + shared


@pytest.mark.parametrize("allocator", ["fixed-segments", "expandable-segments"])
def test_a_head_whose_gradients_of_weights_are_apart_leaves_free_blocks_too(allocator):
    """The pass for gradients of inputs has the blocks of logits; that of weights begins with what is left for it."""
    head = rank_passes(replace(LLAMA, sequence=4096), TORCH).head
    found = taken(head.tensors, allocator)
    inputs = head.activations + head.temporary_inputs
    weights = sum(one.nbytes for one in head.left) + head.temporary_weights
    assert found.inputs - inputs >= 2.0 * 4096 * LLAMA.vocabulary
    assert weights <= found.weights <= weights + LARGE_SEGMENT


def test_the_norm_before_the_head_is_eager_where_blocks_alone_are_compiled():
    eager, compiled = (rank_passes(LLAMA, replace(TORCH, end_norm=one)) for one in ("eager", "as-blocks"))
    assert eager.block == compiled.block
    tokens = LLAMA.sequence * LLAMA.hidden
    assert eager.head.activations - compiled.head.activations == (4.0 + 2.0) * tokens  # in fp32, and scaled
    assert rank_passes(GPT, replace(TORCH, end_norm="eager")) == rank_passes(GPT, replace(TORCH, norm="auto"))


def test_gradients_that_are_fresh_stay_to_the_end_of_their_layer():
    usual, fresh = (rank_passes(LLAMA, TORCH, trained=Trained(fresh_gradients=one)).block for one in (False, True))
    assert not [one for one in fresh.backward if isinstance(one, Op) and one.name.endswith("accumulate")]
    assert [one for one in usual.backward if isinstance(one, Op) and one.name.endswith("accumulate")]
    assert fresh.temporary_backward > usual.temporary_backward
    assert fresh.temporary_backward + fresh.activations >= 2.0 * fresh.parameters


@pytest.mark.parametrize("recompute", ["none", "full", "selective-op"])
def test_a_norm_of_several_kernels_moves_more_bytes_and_keeps_more(recompute):
    one, several = (
        rank_passes(LLAMA, replace(TORCH, norm=norm), recompute=recompute).block for norm in ("fused", "unfused")
    )

    def moved(items):
        return sum(
            each.nbytes for each in items if isinstance(each, Op) and each.name.removeprefix("again.")[:4] == "norm"
        )

    assert moved(several.forward) > 5 * moved(one.forward)
    assert moved(several.backward) > 3 * moved(one.backward)
    more = 2 * (4.0 + 2.0) * LLAMA.sequence * LLAMA.hidden if recompute == "none" else 0.0
    assert several.activations - one.activations == more
    assert flops(several.backward) == flops(one.backward)


def test_an_update_of_joined_gradients_copies_them_twice():
    narrow = rank_passes(LLAMA, replace(TORCH, update="joined", gradients="as-weights")).adam
    names = [one.name for one in narrow.kernels(8)]
    assert names == ["gradients.join", "gradients.copy", "adam", "weights.copy"]
    wide = rank_passes(LLAMA, replace(TORCH, update="joined", gradients="fp32"))
    assert [one.name for one in wide.adam.kernels(8)] == ["adam", "weights.copy"]
    assert (narrow.joined(8), wide.adam.joined(8)) == ((8 * 2.0, 8 * 4.0), ())


def test_an_update_of_several_kernels_moves_more_bytes():
    updates = "fused", "foreach", "unfused"
    one, several, apart = (rank_passes(LLAMA, replace(TORCH, update=name)).adam.kernels(1000) for name in updates)
    assert several == apart
    assert len(several) == len(one) + 7
    assert sum(each.nbytes for each in several) > 2 * sum(each.nbytes for each in one)
