"""Allocators of GPUs' memory: what they reserve beyond what tensors hold, and where they are refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf import DataExchange, Layout, ModelParallel, Stack, Transformer, load_stack, train
from simperf.errors import InputError
from simperf.memory import ALLOCATORS, DRIVER
from simperf.memory.allocator import LARGE_SEGMENT
from simperf.scenario import make_scenario
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels

MODEL = Transformer(layers=4, hidden=512, heads=8, vocabulary=8000, sequence=512, norm="rms")
SHARDED = Layout(dp=4, sharding="zero-3"), "1f1b", DataExchange(reshard="always", flat=True)
LAYOUTS = [
    SHARDED,
    (Layout(dp=4, sharding="zero-3"), "1f1b", DataExchange(reshard="always")),
    (Layout(dp=4, sharding="zero-1"), "1f1b", DataExchange()),
    (Layout(dp=2, tp=2, pp=2), "1f1b", DataExchange()),
    (Layout(pp=4), "zb-h1", DataExchange()),
    (Layout(pp=2), "zb-v", DataExchange()),
]
LOSSES = "unfused", "fused", "in-place", "log-softmax", "compiled"


def memory(allocator, *, loss="log-softmax", how=SHARDED, microbatch=1, update="foreach", **sizes):
    kernels = LayerKernels(norm="fused", cross_entropy=loss, update=update)
    layout, schedule, exchange = how
    strategy = ModelParallel(microbatch=microbatch, schedule=schedule, exchange=exchange)
    model = Dimensions(replace(MODEL, **sizes), kernels, "bf16-master")
    return Divided(model, layout, strategy, 16 * microbatch, allocator=allocator).memory()


def reserved(allocator, **options):
    return max(one.reserved for one in memory(allocator, **options))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ALLOCATORS),
    st.sampled_from(LOSSES),
    st.sampled_from(LAYOUTS),
    st.one_of(
        st.tuples(st.just("vocabulary"), st.integers(1000, 60000), st.integers(1, 4000)),
        st.tuples(st.just("sequence"), st.integers(32, 2048), st.integers(1, 512)),
        st.tuples(st.just("microbatch"), st.integers(1, 6), st.integers(1, 2)),
    ),
)
def test_a_larger_job_reserves_no_less(allocator, loss, how, grown):
    key, size, more = grown
    """But for tensors below 10 MiB in segments of fixed sizes: larger ones may share a segment better."""
    smaller, larger = (reserved(allocator, loss=loss, how=how, **{key: value}) for value in (size, size + more))
    shared = LARGE_SEGMENT if allocator == "fixed-segments" else 0.0
    assert smaller <= larger * (1 + 1e-12) + shared


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", LAYOUTS)
def test_what_is_reserved_is_what_tensors_hold_and_what_stays_free(loss, how):
    """Without an allocator nothing stays free: the pools of streams, each with its peak."""
    plain = memory("none", loss=loss, how=how)
    for name in ("fixed-segments", "expandable-segments"):
        found = memory(name, loss=loss, how=how)
        assert [one.peak for one in map(without, found)] == [one.peak for one in map(without, plain)]
        assert all(one.reserved >= usual.reserved for one, usual in zip(found, plain, strict=True))
    assert all(one.reserved >= one.peak.total * (1 - 1e-12) for one in plain)


def without(stage):
    """A stage's memory but for what is reserved."""
    return replace(stage, moments=tuple(one._replace(reserved=0.0) for one in stage.moments))


def test_free_blocks_of_the_head_count_where_another_layer_holds_most():
    """Of flat weights most is held when gradients are joined; most is reserved with the head, whose logits leave a gap.

    In sizes between, where both are as large, what is reserved still grows with the vocabulary.
    """
    sizes = range(20000, 60000, 500)
    for loss in ("compiled", "log-softmax"):
        found = [reserved("expandable-segments", loss=loss, vocabulary=size) for size in sizes]
        assert found == sorted(found)


def test_joined_gradients_find_a_block_only_in_segments_that_expand():
    how = Layout(dp=4, sharding="zero-1"), "1f1b", DataExchange()
    fixed, expandable, plain = (
        memory(name, how=how, update="joined", loss="in-place", layers=64)[0]
        for name in ("fixed-segments", "expandable-segments", "none")
    )
    own = replace(MODEL, layers=64).parameters / 4
    assert dict(fixed.apart)["joined gradients"] == pytest.approx((2 + 4) * own, rel=0.05)
    assert fixed.moments[-1].held == expandable.moments[-1].held == plain.moments[-1].held
    assert not expandable.apart
    assert expandable.reserved == max(one.reserved for one in expandable.moments)


def test_joined_gradients_that_are_smaller_than_the_logits_take_their_blocks():
    how = Layout(dp=4, sharding="zero-1"), "1f1b", DataExchange()
    options = {"how": how, "update": "joined", "loss": "unfused"}
    sizes = 512, 6144, 16384
    none, some, every = (memory("fixed-segments", **options, sequence=size, layers=64)[0] for size in sizes)
    own = replace(MODEL, layers=64).parameters / 4
    taken = [dict(one.apart).get("joined gradients", 0.0) for one in (none, some, every)]
    assert taken == pytest.approx([(2 + 4) * own, 4 * own, 0.0], rel=0.05)
    assert 2 * own < 4 * sizes[1] * MODEL.vocabulary < 4 * own < 4 * sizes[2] * MODEL.vocabulary  # logits in fp32
    assert every.reserved == max(one.reserved for one in every.moments)


# In scenarios ----------------------------------------------------------------------------

JOB = {"on": "dgx-h100", "layout": Layout(dp=8, sharding="zero-3"), "strategy": ModelParallel(), "batch": 8}
JOB |= {"precision": "bf16-master", "record": False}


def test_reserved_memory_is_told_where_an_allocator_is_named():
    small = replace(MODEL, layers=2)
    plain = train(small, **JOB)
    assert "reserved memory" not in plain.metrics
    found = {}
    for name in ("fixed-segments", "expandable-segments"):
        result = train(small, **JOB, stack=Stack(allocator=name, frontend="pytorch"))
        assert result.time == train(small, **JOB, set={"program.allocator": name}).time == plain.time
        assert result.metrics["memory"].value == plain.metrics["memory"].value
        found[name] = result.metrics["reserved memory"].value
        assert found[name] > plain.metrics["memory"].value
    assert found["fixed-segments"] != found["expandable-segments"]


def test_no_more_is_reserved_than_there_is():
    """What is free is given back, which takes time that is not played: a note says so."""
    chosen = {"program.allocator": "fixed-segments", "program.cross_entropy": "log-softmax"}
    told = {**JOB, "strategy": ModelParallel(microbatch=2), "batch": 16, "set": chosen}
    found = [train(replace(MODEL, vocabulary=size, sequence=4096), **told) for size in (700_000, 750_000)]
    small, large = (one.metrics["reserved memory"].value for one in found)
    assert found[1].metrics["memory"].value < large == pytest.approx(80 * 2**30 - DRIVER)
    assert small < large
    assert [any(note.startswith("the allocator would take") for note in one.notes) for one in found] == [False, True]


def test_a_stacks_allocator_is_told_with_its_source_and_the_scenario_goes_before():
    result = train(replace(MODEL, layers=2), **JOB, stack="torch-fsdp2")
    assert "run_llama_train.sh" in result.assumed["torch-fsdp2: allocator"]
    assert "reserved memory" in result.metrics
    other = train(replace(MODEL, layers=2), **JOB, stack="torch-fsdp2", set={"program.allocator": "none"})
    assert "torch-fsdp2: allocator" not in other.assumed
    assert "reserved memory" not in other.metrics
    assert load_stack("torch-fsdp2").allocator == "expandable-segments"


def scenario(**program):
    model = {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1000, "sequence": 128, "norm": "rms"}
    usual = {"use": "train", "strategy": "model-parallel", "precision": "bf16-master", "batch": 8}
    tables = {"machine": {"use": "dgx-h100"}, "model": model, "layout": {"dp": 8, "sharding": "zero-1"}}
    made = make_scenario({**tables, "program": usual | program})
    return made.program.options.made(made.parameters)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ({"allocator": "expandable"}, "program.allocator: .*did you mean 'expandable-segments'"),
        ({"update_kernels": "joined", "precision": "fp32"}, "update_kernels: gradients are as wide as what the optimi"),
        ({"update_kernels": "joined", "precision": "bf16-pure"}, "update_kernels: gradients are as wide"),
        ({"update_kernels": "joined-unfused", "gradient_precision": "fp32"}, "update_kernels: gradients are as wide"),
        ({"update_kernels": "joined-unfused", "stack": "torch-fsdp2"}, "update_kernels: gradients are as wide"),
        ({"quantized_inputs": "kept"}, "quantized_inputs: no matrix is in 4 bits"),
        ({"quantized_inputs": "kept", "stack": "torch-fsdp2"}, "quantized_inputs: no matrix is in 4 bits"),
        ({"end_norm_kernels": "eager"}, "end_norm_kernels: the norms of the blocks are as eager ones"),
        ({"end_norm_kernels": "eager", "stack": "torch-fsdp2"}, "end_norm_kernels: the norms of the blocks are as"),
    ],
)
def test_what_has_no_effect_is_refused_whether_a_stack_is_named_or_not(program, words):
    with pytest.raises(InputError, match=words):
        scenario(**program)


def test_the_allocator_of_a_model_that_is_whole_on_each_gpu_is_refused():
    with pytest.raises(InputError, match=r"allocator: no layout divides the model"):
        train("resnet50", on="dgx-1v", batch_per_gpu=8, set={"program.allocator": "fixed-segments"})


@pytest.mark.parametrize(
    "program",
    [
        {"stack": "megatron-deepspeed", "gradient_precision": "fp32"},
        {"stack": "internevo", "gradient_precision": "fp32"},
        {"stack": "litgpt", "precision": "bf16-pure"},
        {"stack": "torch-fsdp2-compiled", "norm_kernels": "auto"},
        {"update_kernels": "joined"},
        {"update_kernels": "joined", "stack": "megatron-deepspeed", "gradient_precision": "fp32"},
        {"end_norm_kernels": "eager", "norm_kernels": "fused"},
        {"quantized_inputs": "kept", "frozen_precision": "nf4", "lora_rank": 8},
    ],
)
def test_what_a_stack_sets_for_other_jobs_is_not_refused(program):
    own = {"norm_kernels": "fused"} if "norm" not in str(program) and "stack" not in program else {}
    kernels = scenario(**own, **program).model.kernels
    assert kernels.update == program.get("update_kernels", kernels.update)
