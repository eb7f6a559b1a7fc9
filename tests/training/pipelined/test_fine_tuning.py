"""Fine-tuning of divided models, played: what travels, what is held, and how long it takes."""

from dataclasses import replace

import pytest

from simperf import DataExchange, Layout, ModelParallel, Transformer, train
from simperf.errors import InputError
from simperf.training.pipelined.division import divide, pacing_of
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers.flops import adapter_weights
from simperf.workload.transformers.parallel import rank_passes
from simperf.workload.tuning import BASES, Adapters
from tests.training.pipelined.small import played

LLAMA = Transformer(layers=4, hidden=1024, heads=16, kv_heads=4, ffn=2816, vocabulary=4096, sequence=1024)
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused")
RANK = {"program.lora_rank": 16}


def run(layout, set, *, recompute="none", batch=8, on="dgx-a100"):
    more = {"program.steps": 2, "program.norm_kernels": "fused", **set}
    strategy = ModelParallel(recompute=recompute)
    return train(LLAMA, on=on, layout=layout, strategy=strategy, precision="bf16-master", batch=batch, set=more)


def value(result, name):
    return result.metrics[name].value


def test_a_step_takes_longer_with_a_base_in_four_bits_and_shorter_with_documents():
    layout = Layout(dp=8)
    full, lora = run(layout, {}, batch=64), run(layout, RANK, batch=64)
    narrow = run(layout, {**RANK, "program.frozen_precision": "nf4"}, batch=64)
    packed = run(layout, {**RANK, "program.document_tokens": 128}, batch=64)
    assert value(packed, "time per step") < value(lora, "time per step") < value(narrow, "time per step")
    assert value(narrow, "memory") < value(lora, "memory") < value(full, "memory")
    assert value(lora, "stage 0: exposed data") < 0.2 * value(full, "stage 0: exposed data")


@pytest.mark.parametrize("options", [{"tp": 2, "pp": 2, "dp": 2}, {"dp": 8, "sharding": "zero-1"}])
def test_every_rank_played_takes_as_long(options):
    layout = Layout(**options)
    collapsed, exact = (run(layout, {**RANK, "devices.exact": which}) for which in ("auto", "yes"))
    assert value(collapsed, "time per step") == pytest.approx(value(exact, "time per step"), rel=1e-9)


def held(adapters, sharding="none", dp=8):
    model = Dimensions(LLAMA, FUSED, adapters=adapters)
    return Divided(model, Layout(dp=dp, sharding=sharding), ModelParallel(), dp).memory()[0].peak.held


@pytest.mark.parametrize("base", list(BASES))
def test_memory_is_that_of_the_frozen_base_and_of_states_of_the_adapters(base):
    adapters = Adapters(rank=16)
    trained = adapter_weights(LLAMA, adapters)
    plain, narrow = held(adapters), held(Adapters(rank=16, base=base))
    assert plain["weights"] == 2 * (LLAMA.parameters + trained)
    assert plain["optimizer"] == 2 * plain["master"] == 8 * trained
    assert held(adapters, "zero-1")["optimizer"] == trained
    matrices = LLAMA.layers * sum(one.elements for one in LLAMA.block_weights("block") if len(one.shape) == 2)
    assert plain["weights"] - narrow["weights"] == pytest.approx((2 - BASES[base]) * matrices)


def shared(dp=8, **options):
    """A base that ranks share, with adapters that they share too."""
    return Layout(dp=dp, sharding="zero-3", **options)


def test_a_shared_base_is_gathered_before_both_passes_and_only_adapters_gradients_are_reduced():
    layout, strategy = shared(), ModelParallel(exchange=DataExchange(reshard="always"))
    adapters = Adapters(rank=512)  # whose gradients are so large that no flags travel beside them
    of = divide(Dimensions(LLAMA, FUSED, adapters=adapters), layout, strategy, 8)
    m, _ = played("dgx-a100-x4", of, dp=8, pacing=pacing_of(layout, strategy), steps=1)
    sent = sum(nbytes for name, nbytes in m.simulation.network.moved.items() if name.startswith("n0/gpu0>"))
    trained = adapter_weights(LLAMA, adapters)
    blocks = LLAMA.layers * sum(one.elements for one in LLAMA.block_weights("block"))
    gathered = 2 * (2 * (blocks + trained) + LLAMA.parameters - blocks)
    assert sent == pytest.approx(7 / 8 * (gathered + of.ends[0].gradient * trained), rel=1e-3)


@pytest.mark.parametrize("base", list(BASES))
def test_a_rank_has_its_part_of_a_shared_base_and_the_layer_that_runs(base):
    adapters = Adapters(rank=16, base=base)
    whole, part = held(adapters), held(adapters, "zero-3")
    trained = adapter_weights(LLAMA, adapters)
    assert part["weights"] == pytest.approx((whole["weights"] - 2 * trained + 4 * trained) / 8)
    assert part["optimizer"] == pytest.approx(whole["optimizer"] / 8)
    root = 2 * (LLAMA.parameters - LLAMA.layers * sum(one.elements for one in LLAMA.block_weights("block")))
    assert root <= part["unsharded weights"] < whole["weights"]


@pytest.mark.parametrize("options", [{}, {"dp_replicate": 2}, {"dp": 4, "tp": 2}, {"dp": 4, "pp": 2}])
def test_every_rank_of_a_shared_base_played_takes_as_long(options):
    collapsed, exact = (run(shared(**options), {**RANK, "devices.exact": which}, batch=16) for which in ("auto", "yes"))
    assert value(collapsed, "time per step") == pytest.approx(value(exact, "time per step"), rel=1e-9)


@pytest.mark.parametrize("base", ["as-products", "narrow"])
def test_a_shared_base_of_products_in_8_bits_is_refused(base):
    model = Dimensions(LLAMA, replace(FUSED, products="fp8-delayed"), adapters=Adapters(rank=16, base=base))
    with pytest.raises(InputError, match="none or zero-1, or no product_precision"):
        divide(model, shared(), ModelParallel(), 8, architecture="hopper")


def test_one_tensor_of_frozen_and_trained_weights_is_refused():
    with pytest.raises(InputError, match="one tensor of frozen weights and adapters"):
        run(shared(), {**RANK, "program.flat_weights": True})


def test_options_without_a_layout_are_refused():
    with pytest.raises(InputError, match="no layout divides the model"):
        train(LLAMA, on="dgx-a100", precision="fp16", batch=8, set=RANK)


def test_states_may_be_as_narrow_as_the_weights():
    def peak(precision):
        return Divided(Dimensions(LLAMA, FUSED, precision), Layout(dp=8), ModelParallel(), 8).memory()[0].peak.held

    pure, master = peak("bf16-pure"), peak("bf16-master")
    assert pure["optimizer"] == 4 * LLAMA.parameters
    assert "master" not in pure
    assert master["optimizer"] + master["master"] == 12 * LLAMA.parameters
    with pytest.raises(InputError, match="kept in fp32"):
        model = Dimensions(LLAMA, FUSED, "bf16-pure")
        Divided(model, Layout(dp=8, sharding="zero-3"), ModelParallel(), 8).memory()
    narrow, wide = (
        train(LLAMA, on="dgx-a100", layout=Layout(dp=8), strategy=ModelParallel(), precision=one, batch=8)
        for one in ("bf16-pure", "bf16-master")
    )
    assert value(narrow, "time per step") < value(wide, "time per step")


def test_a_frozen_base_may_be_as_narrow_as_its_recipe():
    def weights(base, architecture):
        kernels = replace(FUSED, products="fp8-delayed")
        model = Dimensions(LLAMA, kernels, adapters=Adapters(rank=16, base=base))
        job = Divided(model, Layout(dp=8), ModelParallel(), 8, architecture)
        return job.memory()[0].peak.held["weights"]

    matrices = LLAMA.layers * sum(one.elements for one in LLAMA.block_weights("block") if len(one.shape) == 2)
    for architecture in ("hopper", "blackwell"):
        assert weights("as-products", architecture) - weights("narrow", architecture) == 2 * matrices
    with pytest.raises(InputError, match="as wide as the weights"):
        Divided(
            Dimensions(LLAMA, FUSED, adapters=Adapters(16, base="narrow")), Layout(dp=8), ModelParallel(), 8
        ).memory()


def test_inputs_of_matrices_in_four_bits_are_kept_where_the_library_keeps_them():
    """Of a block with adapters beside queries, keys and values: what the feed-forward network's two matrices read."""

    def activations(inputs, base):
        kernels = replace(FUSED, quantized_inputs=inputs)
        model = Dimensions(LLAMA, kernels, adapters=Adapters(16, ("qkv",), base))
        return Divided(model, Layout(dp=8), ModelParallel(), 8).memory()[0].moments[0].after

    more = 2 * LLAMA.sequence * (LLAMA.hidden + LLAMA.inner_width) * LLAMA.layers
    assert activations("kept", "nf4") - activations("released", "nf4") == more
    assert activations("kept", "as-products") == activations("released", "as-products")
    with pytest.raises(InputError, match="no matrix is in 4 bits"):
        run(Layout(dp=8), {**RANK, "program.quantized_inputs": "kept"})


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_what_an_activation_reads_may_be_kept_in_fp8_by_a_cast_each_way(recompute):
    before, block = (
        rank_passes(LLAMA, replace(FUSED, activation_inputs=one), recompute=recompute).block
        for one in ("as-made", "fp8")
    )
    inputs = 2 * LLAMA.sequence * LLAMA.inner_width  # with the gate
    saved = before.activations - block.activations
    assert saved == (inputs if recompute == "none" else 0), "a byte of two for each element"
    casts = [len(getattr(block, part)) - len(getattr(before, part)) for part in ("forward", "backward")]
    assert casts == [1, 1 if recompute == "none" else 2]


def test_narrow_gradients_stay_up_to_the_end_of_the_backward_pass():
    def moments(accumulation, gradients):
        kernels, strategy = replace(FUSED, gradient_accumulation=accumulation, gradients=gradients), ModelParallel()
        model = Dimensions(replace(LLAMA, layers=16, sequence=128), kernels)
        return Divided(model, Layout(dp=8), strategy, 64).memory()[0].moments

    weights = replace(LLAMA, layers=16).parameters
    last = next(one for one in reversed(moments("behind", "fp32")) if one.name.startswith("B"))
    usual = next(one for one in reversed(moments("unfused", "fp32")) if one.name == last.name)
    assert usual.held["gradients"] == 4 * weights
    assert last.layer == "gradients"
    assert last.held["gradients"] == (4 + 2) * weights
    assert last.held["temporaries"] == 4 * LLAMA.vocabulary * LLAMA.hidden  # the largest, cast before it is added
    assert moments("behind", "as-weights") == moments("unfused", "as-weights")
