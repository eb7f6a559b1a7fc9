"""Blocks whose attention and feed-forward network stand side by side: arithmetic, weights and collectives by hand."""

from collections import Counter
from dataclasses import replace

import pytest

from simperf import run
from simperf.errors import InputError
from simperf.scenario import make_scenario
from simperf.workload.op import Op
from simperf.workload.transformers.flops import step_flops
from simperf.workload.transformers.passes import Await, Sync
from simperf.workload.tuning import Adapters, Trained
from tests.workload.test_rank_passes import FUSED, GPT, KERNELS, LLAMA, SPLITS, collectives, made, parts, products

MODELS = {"llama": replace(LLAMA, parallel_block=True), "gpt": replace(GPT, parallel_block=True)}
HOW = ["none", "selective", "full"]


def names(items):
    return [one.name for one in items if isinstance(one, Op)]


@pytest.mark.parametrize("recompute", HOW)
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_arithmetic_is_that_of_blocks_one_behind_the_other(model, kernels, split, recompute):
    passes = made(model, kernels, split=split, microbatch=2, recompute=recompute)
    items = [products((*part.forward, *part.backward)) for part in parts(passes)]
    total = SPLITS[split][0] * sum(count * flops for count, flops in zip((1, model.layers, 1), items, strict=True))
    expected = 2 * step_flops(model, causal=kernels.attention == "flash", recompute=recompute)
    assert total == pytest.approx(expected, rel=1e-12)
    assert step_flops(model) == step_flops(replace(model, parallel_block=False))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_there_is_one_norm_less(model, split):
    passes, tp = made(model, split=split), SPLITS[split][0]
    total = 0
    for part, count in zip(parts(passes), (1, model.layers, 1), strict=True):
        total += count * (tp * part.parameters - (tp - 1) * sum(one.elements for one in part.replicated))
    assert total == model.parameters
    norm = model.hidden * (2 if model.norm == "layer" else 1)
    assert replace(model, parallel_block=False).parameters - model.parameters == model.layers * norm


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_tensor_parallel_ranks_gather_and_add_up_half_as_often(model):
    whole = 2.0 * 3 * model.sequence * model.hidden
    block = made(model, split="4", microbatch=3).block
    assert collectives(block.forward) == [("all-reduce", whole)]
    assert collectives(block.backward) == [("all-reduce", whole)]
    block = made(model, split="4s", microbatch=3).block
    assert collectives(block.forward) == [("all-gather", whole), ("reduce-scatter", whole)]
    assert Counter(collectives(block.backward)) == {("all-gather", whole): 2, ("reduce-scatter", whole): 1}
    assert not collectives(made(model).block.forward)


def test_kernels_of_one_rank_are_those_of_a_block_but_for_a_norm_and_a_residual():
    beside, behind = (Counter(names(made(one).block.forward)) for one in (MODELS["llama"], LLAMA))
    assert behind - beside == Counter(["norm2", "residual2.bias_dropout_add"])
    assert not beside - behind


def test_the_second_of_the_last_products_reads_what_the_first_has_made():
    block, plain = made(MODELS["llama"], split="2").block, made(LLAMA, split="2").block
    down, alone = (
        next(one for one in items if getattr(one, "name", "") == "down") for items in (block.forward, plain.forward)
    )
    assert down.nbytes_read - alone.nbytes_read == alone.nbytes_written


@pytest.mark.parametrize("recompute", HOW)
@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("split", ["1", "2", "2s"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_passes_apart_are_the_whole_and_collectives_end(model, kernels, split, recompute):
    part = made(model, kernels, split=split, recompute=recompute).block
    assert Counter(part.input_gradients) + Counter(part.weight_gradients) == Counter(part.backward)
    for items in (part.forward, part.backward, part.input_gradients, part.weight_gradients):
        labels = [one.label if isinstance(one, Sync) else one.name for one in items if not isinstance(one, Await)]
        assert len(set(labels)) == len(labels)
        begun = {one.label for one in items if isinstance(one, Sync) and not one.waits}
        assert begun == {one.label for one in items if isinstance(one, Await)}


def test_less_is_kept_than_behind_each_other():
    """The second norm's output and statistics, and the sum that it reads, are not there."""
    beside, behind = made(MODELS["llama"]).block, made(LLAMA).block
    less = {one.name for one in behind.kept} - {one.name for one in beside.kept}
    assert less == {"norm2.output", "norm2.statistics", "middle"}
    assert {one.name for one in beside.kept} <= {one.name for one in behind.kept}


@pytest.mark.parametrize("exchange", ["collectives", "ring"])
def test_parts_of_products_carry_the_bytes_of_one_collective(exchange):
    model, tp = MODELS["llama"], 4
    kernels = replace(FUSED, product_parts=tp, parts_exchange=exchange)
    block, plain = made(model, kernels, split="4s").block, made(model, split="4s").block
    for items, whole in ((block.forward, plain.forward), (block.backward, plain.backward)):
        flops, same = (sum(one.flops for one in each if isinstance(one, Op) and one.gemm) for each in (items, whole))
        assert flops == pytest.approx(same, rel=1e-12)
        told = sum(one.nbytes for one in items if isinstance(one, Sync) and not one.label.endswith("gather.back"))
        bytes_ = sum(one.nbytes for one in whole if isinstance(one, Sync) and not one.label.endswith("gather.back"))
        assert told == pytest.approx(bytes_ * ((tp - 1) / tp if exchange == "ring" else 1.0), rel=1e-12)


@pytest.mark.parametrize(
    ("model", "options", "key"),
    [
        ({"experts": 8, "experts_per_token": 2}, {}, "experts"),
        ({"kv_rank": 32, "rope_dim": 16, "kv_heads": 0}, {}, "kv_rank"),
        ({"mtp": 1}, {}, "mtp"),
        ({}, {"recompute": "selective-op"}, "recompute"),
        ({}, {"trained": Trained(adapters=Adapters(rank=8, targets=("q",)))}, "lora_rank"),
    ],
)
def test_what_is_not_played_is_refused(model, options, key):
    with pytest.raises(InputError, match="side by side") as caught:
        made(replace(MODELS["llama"], **model), **options)
    assert caught.value.problems[0].key == key
    assert caught.value.problems[0].expected


def test_products_of_fewer_bits_are_refused():
    with pytest.raises(InputError, match="side by side"):
        made(MODELS["llama"], replace(FUSED, products="fp8-delayed"))


def job(model, **layout):
    program = {"use": "train", "strategy": "model-parallel", "stack": "megatron-core", "precision": "bf16-master"}
    return {
        "machine": {"use": "dgx-h100"},
        "frontend": {"use": "pytorch"},
        "model": {"layers": 4, "hidden": 1024, "heads": 8, "vocabulary": 1024, "sequence": 512, **model},
        "layout": {"sharding": "zero-1", **layout},
        "program": {**program, "batch": 16, "steps": 1, **({"sequence_parallel": True} if layout["tp"] > 1 else {})},
    }


@pytest.mark.parametrize("layout", [{"tp": 2, "pp": 2, "dp": 2}, {"tp": 4, "dp": 2}])
def test_each_rank_played_gives_the_time_of_classes(layout):
    tables = job({"parallel_block": True}, **layout)
    classes, every = run(make_scenario(tables)), run(make_scenario({**tables, "devices": {"exact": "yes"}}))
    assert classes.time == pytest.approx(every.time, rel=1e-9)


def test_side_by_side_is_faster_where_ranks_share_matrices():
    """Half of the exposed collectives are gone."""
    beside, behind = (
        run(make_scenario(job({"parallel_block": one}, tp=8, dp=1) | {"layout": {"tp": 8}})) for one in (True, False)
    )
    assert beside.time < behind.time


def test_one_gpu_alone_has_no_such_kernels():
    tables = job({"parallel_block": True}, tp=1, dp=1)
    del tables["layout"]
    tables |= {"machine": {"use": "dgx-h100"}, "program": {"use": "train", "batch": 8}}
    with pytest.raises(InputError, match="parallel_block"):
        make_scenario(tables)
