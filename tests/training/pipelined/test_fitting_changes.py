"""Memory of a divided model, and the changes that make it fit."""

import json
import re
from dataclasses import replace

import pytest

import simperf
from simperf.errors import DeviceMemoryError, InputError
from simperf.layout import Layout
from simperf.memory import allocated
from simperf.scenario import make_scenario
from simperf.schedules import SCHEDULES
from simperf.training.pipelined.division import divide
from simperf.training.pipelined.fitting_changes import Divided, changes_that_fit, refuse_what_does_not_fit
from simperf.training.replica import Dimensions
from simperf.training.strategies import DataExchange, ModelParallel
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer

FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", gradients="fp32", gradient_accumulation="fused")
SMALL = Transformer(layers=8, hidden=1024, heads=16, ffn=4096, vocabulary=32000, sequence=1024)
GPT = replace(SMALL, activation="gelu", norm="layer", positions="learned", bias=True, tied=True)


def divided(model=SMALL, layout=None, *, batch=16, **strategy):
    """A job on eight GPUs by default."""
    shared = Layout(dp=2, tp=2, pp=2, sharding="zero-1")
    options = ModelParallel(**{"microbatch": 2, **strategy})
    return Divided(Dimensions(model, FUSED), shared if layout is None else layout, options, batch)


def changed(job, **strategy):
    """The job with other options of its strategy."""
    return replace(job, strategy=replace(job.strategy, **strategy))


@pytest.mark.parametrize("model", [SMALL, GPT])
def test_states_of_all_ranks_are_those_of_the_model(model):
    """Sharded states of all ranks together are whole; a tied embedding is on the first and the last stage."""
    held = [one.peak.held for one in divided(model, Layout(dp=4, pp=2, sharding="zero-1")).memory()]
    weights = model.parameters + (model.vocabulary * model.hidden if model.tied else 0)
    states = sum(4 * (one["master"] + one["optimizer"]) for one in held)
    assert states == pytest.approx(12 * weights, rel=0.01)  # the vocabulary is padded
    assert sum(one["gradients"] for one in held) == pytest.approx(4 * weights, rel=0.01)


def test_a_tied_head_on_the_embeddings_stage_has_no_weights_of_its_own():
    (one,) = divided(GPT, Layout(dp=8)).memory()
    assert one.peak.held["weights"] == pytest.approx(2 * GPT.parameters, rel=0.01)


@pytest.mark.parametrize(
    ("kernels", "each"),
    [
        ({"gradients": "fp32", "update": "fused"}, 0),
        ({"gradients": "fp32", "update": "foreach"}, 4),  # roots of squares
        ({"gradients": "as-weights", "update": "fused"}, 4),  # gradients in fp32
        ({"gradients": "as-weights", "update": "foreach"}, 8),
    ],
)
def test_the_update_holds_what_the_optimizer_makes_for_its_part_of_the_weights(kernels, each):
    job = divided(layout=Layout(dp=4, sharding="zero-1"))
    job = replace(job, model=replace(job.model, kernels=replace(FUSED, **kernels)))
    (memory,) = job.memory()
    last = memory.moments[-1]
    assert last.name == "update"
    assert last.held.get("temporaries", 0.0) == pytest.approx(each * SMALL.parameters / 4, rel=0.01)


@pytest.mark.parametrize(("update", "made"), [("joined", 4), ("joined-unfused", 12)])
def test_joined_gradients_that_are_larger_than_logits_have_memory_of_their_own(update, made):
    """A narrow tensor and a wide one of all weights that a rank updates; of several kernels, a root and a quotient."""
    short = replace(SMALL, sequence=128)

    def memory(update, gradients):
        kernels = replace(FUSED, gradients=gradients, gradient_accumulation="unfused", update=update)
        job = divided(short, Layout(dp=4, sharding="zero-1"))
        return replace(job, model=replace(job.model, kernels=kernels), allocator="fixed-segments").memory()[0]

    usual, joined = memory("fused", "as-weights"), memory(update, "as-weights")
    own = SMALL.parameters / 4
    assert joined.moments[:-1] == usual.moments[:-1]
    assert joined.moments[-1].held["joined gradients"] == pytest.approx(made * own, rel=0.01)
    passes = max(one.reserved for one in joined.moments[:-1])
    assert joined.reserved - passes == pytest.approx((2 + made) * own, rel=0.01)
    wide = memory(update, "fp32")  # a stack's, where they lie in one tensor from the start
    assert not wide.moments[-1].held.get("joined gradients")


@pytest.mark.parametrize(("update", "made"), [("fused", 2), ("joined", 4), ("joined-unfused", 12)])
def test_parts_in_fp32_have_joined_gradients_of_the_same_bytes(update, made):
    """Gradients that are cast one by one take 2 bytes more than narrow ones; joined ones are copied beside them."""
    kernels = replace(FUSED, gradients="as-weights", gradient_accumulation="unfused", update=update)
    job = divided(layout=Layout(dp=4, sharding="zero-3"))
    (found,) = replace(job, model=replace(job.model, kernels=kernels)).memory()
    held = found.moments[-1].held
    told = held.get("joined gradients", 0.0) + held.get("temporaries", 0.0)
    assert told == pytest.approx(made * SMALL.parameters / 4, rel=0.01)


@pytest.mark.parametrize("flat", [False, True])
def test_an_update_of_one_tensor_after_the_other_makes_two_of_the_largest(flat):
    """Of flat weights that is a unit, here the root; else the embedding's part."""
    kernels = replace(FUSED, update="unfused")
    exchange = DataExchange(reshard="always", flat=flat)
    job = divided(layout=Layout(dp=4, sharding="zero-3"), exchange=exchange)
    (found,) = replace(job, model=replace(job.model, kernels=kernels)).memory()
    matrix = SMALL.vocabulary * SMALL.hidden / 4
    wanted = 2 * 4 * matrix * (2 if flat else 1)  # the embedding and the head
    assert found.moments[-1].held["temporaries"] == pytest.approx(wanted, rel=0.02)


def test_1f1b_keeps_fewer_micro_batches_on_later_stages():
    job = divided(layout=Layout(pp=4), microbatch=1)
    kept = [max(one.held["activations"] for one in stage.moments if one.name[0] == "F") for stage in job.memory()]
    parts = divide(job.model, job.layout, job.strategy, job.batch).parts
    own = [sum(allocated(one.nbytes) for layer in part for one in layer.kept) for part in parts]
    assert kept == [4 * own[0], 3 * own[1], 2 * own[2], own[3]]


def test_full_recomputation_keeps_the_input_of_each_layer():
    job = divided(layout=Layout(dp=4, pp=2), batch=8, microbatch=1, recompute="full")
    first, _ = job.memory()
    wide, tokens = 2 * SMALL.sequence * SMALL.hidden, 8 * SMALL.sequence
    assert first.moments[0].after - first.moments[-1].total == 4 * wide + tokens
    assert first.peak.total < changed(job, recompute="none").memory()[0].peak.total


def test_sharding_sequence_parallelism_and_recomputation_need_less():
    job = divided(layout=Layout(dp=2, tp=2, pp=2))
    less = [
        replace(job, layout=Layout(dp=2, tp=2, pp=2, sharding="zero-1")),
        changed(job, sequence_parallel=True),
        changed(job, recompute="full"),
        changed(job, microbatch=1),
    ]
    assert all(one.peak() < job.peak() for one in less)


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_the_peak_is_that_of_all_micro_batches(schedule):
    chunks = 2 if schedule == "interleaved" else 1
    job = divided(batch=16 * 10, schedule=schedule, chunks=chunks)
    assert job.peak() == max(one.peak.total for one in job.memory())


def test_stages_that_are_alike_have_one_memory():
    first, *middle, last = divided(layout=Layout(pp=8), microbatch=1).memory()
    assert len({id(one) for one in (first, last)}) == 2
    assert [one.peak.total for one in middle] == sorted((one.peak.total for one in middle), reverse=True)


def test_what_does_not_fit_is_told_with_changes_that_do():
    job = divided(layout=Layout(dp=4, tp=2), batch=32, microbatch=8)
    need = job.peak()
    known = divide(job.model, job.layout, job.strategy, job.batch)
    assert refuse_what_does_not_fit(job, need + 400e6) == refuse_what_does_not_fit(job, need + 400e6, work=known)
    assert refuse_what_does_not_fit(job, need + 400e6) == job.memory()
    with pytest.raises(DeviceMemoryError) as caught:
        refuse_what_does_not_fit(job, 0.8 * need, name="gpu0")
    (problem,) = caught.value.problems
    assert problem.message.startswith("gpu0 is out of memory: stage 0 needs")
    assert "in pass B0" in problem.message
    found = changes_that_fit(job, 0.8 * need - 300e6)
    assert problem.expected.startswith(found[0].text)
    for one in found:
        assert one.divided.peak() == one.peak <= 0.8 * need - 300e6
        assert one.divided.layout.ranks == 8


def test_pairs_are_tried_where_no_change_is_enough():
    job = divided(layout=Layout(dp=8), batch=32, microbatch=4)
    capacity = job.peak()
    while any(" and " not in one.text for one in changes_that_fit(job, capacity)):
        capacity *= 0.95
    found = changes_that_fit(job, capacity)
    assert found
    assert all(" and " in one.text and one.peak <= capacity for one in found)
    assert changes_that_fit(job, 1e6) == []


def test_changes_that_are_told_are_played_as_they_are_told():
    tables = {
        "machine": {"use": "dgx-a100"},
        "model": {"layers": 8, "hidden": 8192, "heads": 32, "vocabulary": 32000, "sequence": 4096},
        "layout": {"dp": 8, "sharding": "zero-1"},
        "program": {"use": "train", "strategy": "model-parallel", "precision": "bf16-master", "batch": 16, "steps": 1},
    }
    with pytest.raises(DeviceMemoryError) as caught:
        simperf.run(make_scenario(tables))
    told = caught.value.problems[0].expected.split("; or ")
    assert any("layout.dp = 1" in one for one in told)
    for one in told:
        text, _, needs = one.rpartition(" (")
        changed = {name: dict(table) for name, table in tables.items()}
        for key, value in re.findall(r"([a-z_.]+) = (\"[^\"]*\"|\d+|true)", text):
            table, _, name = key.rpartition(".")
            changed[table or "program"][name] = json.loads(value)
        memory = simperf.run(make_scenario(changed), record=False).metrics["memory"]
        assert f"{memory.value / 1e9:.2f} GB)" == needs


def test_a_change_without_effect_elsewhere_is_not_told():
    """With one data-parallel rank no gradients travel, and a bucket is refused."""
    plain = divided(layout=Layout(dp=2, sharding="zero-1"), batch=8, microbatch=1, recompute="full")
    for exchange, there in ((DataExchange(), True), (DataExchange(bucket=40e6), False)):
        found = changes_that_fit(changed(plain, exchange=exchange), plain.peak())
        assert any(one.divided.layout.dp == 1 for one in found) == there


def test_attention_without_constants_is_refused_before_memory():
    program = {"use": "train", "strategy": "model-parallel", "stack": "internevo", "precision": "bf16-master"}
    tables = {
        "machine": {"use": "dgx-h100"},
        "model": {"layers": 80, "hidden": 8192, "heads": 64, "vocabulary": 32000, "sequence": 4096},
        "layout": {"dp": 8},
        "program": {**program, "batch": 16},
    }
    with pytest.raises(InputError, match="has no constants of the attention kernels of flash-attention-triton"):
        simperf.run(make_scenario(tables))


def test_where_nothing_fits_more_gpus_are_asked_for():
    with pytest.raises(InputError) as caught:
        refuse_what_does_not_fit(divided(), 400e6)
    assert caught.value.problems[0].expected == "more GPUs with more tensor or pipeline parallelism"


def test_a_run_tells_its_memory_and_refuses_what_does_not_fit():
    given = {"on": "dgx-a100", "strategy": ModelParallel(microbatch=2), "precision": "bf16-master", "batch": 16}
    result = simperf.train(SMALL, layout=Layout(dp=2, tp=2, pp=2), set={"program.norm_kernels": "fused"}, **given)
    metrics = {name: one.value for name, one in result.metrics.items()}
    stages = [metrics["memory of stage 0"], metrics["memory of stage 1"]]
    assert metrics["memory"] == max(stages)
    assert min(stages) > 0
    large = replace(SMALL, layers=64, hidden=8192, ffn=28672)
    with pytest.raises(DeviceMemoryError, match=r"gpu0 is out of memory: stage 1 needs .* at the update") as caught:
        simperf.train(large, layout=Layout(dp=2, tp=2, pp=2), set={"program.norm_kernels": "fused"}, **given)
    assert caught.value.problems[0].key == "layout"


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_peak_of_a_pipeline_of_several_runs_is_that_of_one_run(schedule):
    """A sample of the micro-batches holds no less than all of them do."""
    strategy = ModelParallel(schedule=schedule, exchange=DataExchange(runs=2))
    whole = Divided(Dimensions(SMALL, FUSED), Layout(pp=2), strategy, 48)
    assert whole.peak() == max(one.peak.total for one in whole.memory())
    once = replace(whole, strategy=ModelParallel(schedule=schedule), batch=24)
    assert whole.peak() == pytest.approx(once.peak(), rel=1e-3)
    with pytest.raises(InputError, match="48 micro-batches of each data-parallel rank are not divided by it"):
        replace(whole, strategy=replace(strategy, exchange=DataExchange(runs=5))).peak()
