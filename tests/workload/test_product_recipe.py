"""Recipes of low-precision training: what is cast, what is multiplied, gathered and kept, and what they refuse."""

from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.product_recipe import RECIPES, ProductRecipe, product_recipe
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.parallel import RankPrecision, rank_passes
from simperf.workload.transformers.passes import Sync

LLAMA = Transformer(layers=2, hidden=512, heads=8, kv_heads=2, ffn=1536, vocabulary=2048, sequence=256)
MIXED = replace(LLAMA, experts=8, experts_per_token=2, expert_ffn=768, shared_experts=1)
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", residual="fused")
#: recipes of a library, which keeps narrow copies
KEEPING = [name for name in RECIPES if product_recipe(name).keeps_narrow]


def passes(name, model=LLAMA, architecture="hopper", **options):
    kernels = replace(FUSED, products=name)
    return rank_passes(model, kernels, precision=RankPrecision.of("bf16", kernels, architecture), **options)


def ops(items, part=""):
    return [one for one in items if isinstance(one, Op) and part in one.name]


def products(items):
    return [one for one in ops(items) if one.gemm is not None and one.family == "gemm"]


def matrices(items):
    return [one for one in products(items) if "router" not in one.name]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("model", [LLAMA, MIXED], ids=["dense", "experts"])
def test_products_are_the_same_but_narrow(name, model):
    usual, narrow, recipe = passes("as-weights", model), passes(name, model), product_recipe(name)
    for part in ("forward", "backward"):
        ours, theirs = (matrices(getattr(one.block, part)) for one in (narrow, usual))
        assert [one.flops for one in ours] == [one.flops for one in theirs]
        assert [one.gemm for one in ours] == [one.gemm for one in theirs]
        assert [one.nbytes_written for one in ours] == [one.nbytes_written for one in theirs]
        wide = [one for one in ours if one.dtype == "bf16"]
        of_weights = [one for one in ours if "weight.gradient" in one.name]
        assert wide == ([] if "weight" in recipe.products else of_weights)
        for one, other in zip(ours, theirs, strict=True):
            if one.dtype != "bf16":
                assert (one.dtype, one.kind == "block_scaled_matmul") == (recipe.dtype, bool(recipe.way.block))
                assert one.nbytes_read == pytest.approx(other.nbytes_read * recipe.width / 2)
        for other in ("embedding", "head"):
            assert getattr(getattr(narrow, other), part) == getattr(getattr(usual, other), part)


@pytest.mark.parametrize("name", KEEPING)
def test_each_activation_and_each_gradient_is_cast_once(name):
    """Bytes by hand: a cast reads 2 and writes a narrow number for each order of the elements."""
    block, recipe = passes(name).block, product_recipe(name).on("hopper")
    assert recipe.copies == 2
    tokens, d, ffn, qkv = LLAMA.sequence, LLAMA.hidden, LLAMA.ffn, LLAMA.hidden + 2 * 128
    inputs, gradients = d + d + d + ffn, qkv + d + 2 * ffn + d
    for items, elements in ((block.forward, tokens * inputs), (block.backward, tokens * gradients)):
        casts, largest = ops(items, ".cast"), ops(items, ".largest")
        assert len(casts) == 4
        assert sum(one.nbytes_read for one in casts) == 2 * elements
        assert sum(one.nbytes_written for one in casts) == pytest.approx(2 * recipe.width * elements)
        assert sum(one.nbytes_read for one in largest) == (2 * elements if recipe.largest == "before" else 0)
    assert not ops(block.backward, "input.cast")
    assert not ops(block.forward, "weight")


def test_units_that_multiply_either_order_take_one_copy():
    for name in ("fp8-delayed", "fp8-current"):
        written = [
            sum(one.nbytes_written for one in ops(passes(name, architecture=where).block.forward, ".cast"))
            for where in ("hopper", "blackwell")
        ]
        assert written[0] == 2 * written[1]
    for name in ("fp8-block", "mxfp8", "nvfp4"):  # factors along rows are not those along columns
        assert passes(name, architecture="hopper").block.forward == passes(name, architecture="blackwell").block.forward


@pytest.mark.parametrize("name", KEEPING)
def test_inputs_are_kept_narrow_and_what_attention_reads_wide(name):
    usual, narrow, width = passes("as-weights").block, passes(name).block, product_recipe(name).width
    tokens, d, ffn = LLAMA.sequence, LLAMA.hidden, LLAMA.ffn
    # both norms' outputs and the activation's are narrow now; attention's result is kept in both
    saved = tokens * (2 * d + ffn) * (2.0 - width) - tokens * d * width
    assert usual.activations - narrow.activations == pytest.approx(saved)


def test_latent_attention_keeps_a_narrow_copy_for_each_matrix_that_reads_the_same():
    latent = replace(LLAMA, kv_heads=0, q_rank=256, kv_rank=128, rope_dim=32)
    names = {one.name for one in passes("mxfp8", latent).block.kept}
    assert {"q_down.narrow", "projection.narrow", "norm1.output"} <= names
    rows = passes("mxfp8", MIXED)
    kept = {one.name: one.nbytes for one in rows.block.kept}
    usual = {one.name: one.nbytes for one in passes("as-weights", MIXED).block.kept}
    assert kept["rows.sorted"] == pytest.approx(usual["rows.sorted"] * product_recipe("mxfp8").width / 2)
    assert kept["norm2.output"] == usual["norm2.output"]  # the router's gradient reads it
    assert "shared.up.narrow" in kept


def gathered(name, part, **options):
    block = passes(name, tp=2, sequence_parallel=True, **options).block
    return [one.nbytes for one in getattr(block, part) if isinstance(one, Sync) and one.name == "all-gather"]


def test_tensor_parallel_ranks_gather_what_is_cast():
    for part in ("forward", "backward"):
        usual = gathered("as-weights", part)
        for name in ("fp8-delayed", "fp8-current"):
            assert gathered(name, part) == [one / 2 for one in usual]
    # backward, rows and columns of gradients have factors of their own; inputs come as columns alone
    width = product_recipe("mxfp8").width
    assert gathered("mxfp8", "forward") == pytest.approx([one * width / 2 for one in gathered("as-weights", "forward")])
    back, usual = gathered("mxfp8", "backward"), gathered("as-weights", "backward")
    assert back == pytest.approx([one * width * by / 2 for one, by in zip(usual, (2, 1, 2, 1), strict=True)])
    assert gathered("float8-rowwise", "forward") == gathered("as-weights", "forward")


def test_current_scaling_agrees_on_the_factor_of_what_is_gathered():
    def agreed(name):
        block = passes(name, tp=2, sequence_parallel=True).block
        return [
            one.label
            for one in (*block.forward, *block.backward)
            if isinstance(one, Sync) and one.name == "all-reduce" and one.nbytes == 4.0
        ]

    of_inputs, of_gradients = ("qkv.input", "up.input"), ("down.gradient", "projection.gradient")
    assert agreed("fp8-current") == [f"{one}.largest.reduce" for one in (*of_inputs, *of_gradients)]
    assert agreed("fp8-delayed") == agreed("mxfp8") == []


@pytest.mark.parametrize("name", KEEPING)
def test_weights_are_cast_once_a_step(name):
    made = passes(name)
    recipe, weights = product_recipe(name).on("hopper"), sum(made.block.scaled)
    assert weights == sum(one.elements for one in made.block.weights if "norm" not in one.name)
    casts = made.cast_weights([made.embedding, made.block, made.head])
    assert sum(one.nbytes_written for one in ops(casts, ".cast")) == pytest.approx(2 * recipe.width * weights)
    assert made.cast_width == 2 * recipe.width
    assert passes("as-weights").cast_weights([made.block]) == ()


def test_weights_that_come_narrow_are_only_turned():
    kernels = replace(FUSED, products="fp8-current")
    for architecture, each in (("hopper", 1.0), ("blackwell", 0.0)):
        numbers = RankPrecision.of("bf16", kernels, architecture)
        assert numbers.recipe is not None
        numbers = replace(numbers, recipe=replace(numbers.recipe, weights="gathered"))
        made = rank_passes(LLAMA, kernels, precision=numbers)
        weights = sum(made.block.scaled)
        assert sum(one.nbytes_written for one in made.cast_weights([made.block])) == each * weights
        assert (made.gathered_width, made.cast_width) == (1.0, each - 1.0)
        cast = ops(made.adam.kernels(1000, scaled=1000), "weights.narrow.cast")
        assert [one.nbytes_written for one in cast] == [1000.0]


@pytest.mark.parametrize("recompute", ["selective", "full"])
@pytest.mark.parametrize("name", ["fp8-current", "mxfp8", "float8", "float8-rowwise"])
@pytest.mark.parametrize("stops", ["whole", "needed"])
def test_what_is_computed_again_is_cast_again(recompute, name, stops):
    kernels = replace(FUSED, products=name, recomputed=stops)
    block = rank_passes(LLAMA, kernels, recompute=recompute).block
    again = ops(block.backward, "again.")
    inputs = [one.name for one in again if "input.cast" in one.name]
    narrow = product_recipe(name).keeps_narrow
    assert len(inputs) == (0 if recompute == "selective" else 4 if narrow or stops == "whole" else 3)


def test_what_does_not_go_together_is_refused():
    for options, key in (
        ({"recompute": "selective-op"}, "recompute"),
        ({"kernels": replace(FUSED, products="mxfp8", gathered_inputs="kept")}, "gathered_inputs"),
        ({"precision": "fp32"}, "precision"),
    ):
        kernels = options.pop("kernels", replace(FUSED, products="mxfp8"))
        with pytest.raises(InputError) as caught:
            rank_passes(LLAMA, kernels, **options)
        assert key in {one.key for one in caught.value.problems}
    with pytest.raises(InputError, match="multiple of 32"):
        passes("mxfp8", replace(LLAMA, ffn=1552))
    assert passes("fp8-current", replace(LLAMA, ffn=1552))
    with pytest.raises(InputError, match="mxfp8"):
        product_recipe("mxfp9")


def test_a_recipe_is_checked():
    good = product_recipe("mxfp8")
    for wrong in (
        {"scaling": "rows"},
        {"dtype": "fp16"},
        {"products": ("backward",)},
        {"keeps": "both"},
    ):
        with pytest.raises(InputError):
            replace(good, **wrong)
    assert isinstance(good, ProductRecipe)
