"""Multi-token prediction on one rank: weights, arithmetic, bytes by hand, and what is the same without it."""

from dataclasses import replace

import pytest

from simperf import Layout, ModelParallel, train
from simperf.training.pipelined.division import divide
from simperf.training.replica import Dimensions
from simperf.workload.op import Op
from simperf.workload.transformers.flops import step_flops
from simperf.workload.transformers.parallel import Spread, rank_passes
from simperf.workload.transformers.passes import Sync
from simperf.workload.transformers.shipped import shipped_transformers
from tests.workload.test_rank_experts import EAGER, FUSED, LATENT, MIXTURE

DENSE = replace(MIXTURE, experts=0, experts_per_token=0, expert_ffn=0, shared_experts=0, dense_layers=0)
MODELS = {"dense": DENSE, "grouped": MIXTURE, "latent": LATENT}
TIED = replace(DENSE, tied=True)


def layers(passes, model):
    """All layers of a model on one rank, the embedding's weights counted once."""
    work = [passes.embedding, *[passes.block] * (model.layers - model.dense_layers)]
    work += [passes.dense] * model.dense_layers
    return [*work, *passes.ahead * model.mtp, passes.head]


@pytest.mark.parametrize("kernels", [FUSED, EAGER], ids=["fused", "eager"])
@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("mtp", [1, 2])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_all_ranks_together_have_the_weights_of_the_model(model, mtp, split, kernels):
    model = replace(model, mtp=mtp)
    passes = rank_passes(model, kernels, tp=split, sequence_parallel=split > 1, spread=Spread(etp=1))
    total = sum(
        split * (one.parameters - one.of_experts)
        - (split - 1) * sum(each.elements for each in one.replicated)
        + one.of_experts
        for one in layers(passes, model)
    )
    assert total == model.parameters + mtp * model.vocabulary * model.hidden  # and the stage's copy of the embedding


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_products_are_the_arithmetic_of_the_model(model):
    model = replace(model, mtp=1)
    passes = rank_passes(model, FUSED)
    ops = [op for one in layers(passes, model) for op in (*one.forward, *one.backward) if isinstance(op, Op)]
    flops = sum(op.flops for op in ops if op.family == "gemm" or op.kind.startswith("attention"))
    flops -= sum(0.2 * op.flops for op in ops if op.kind == "attention_backward")  # the scores once more
    assert flops == pytest.approx(step_flops(model, causal=True), rel=2e-3)  # and biases


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_depth_has_the_block_and_the_head_of_the_model(recompute):
    passes = rank_passes(replace(MIXTURE, mtp=1), FUSED, recompute=recompute)
    join, block, head = passes.ahead
    assert block.forward is passes.block.forward
    assert block.kept == passes.block.kept
    assert [op.name for op in head.forward] == [op.name for op in passes.head.forward]
    assert head.kept == passes.head.kept
    assert head.parameters == MIXTURE.hidden
    local = 2.0 * MIXTURE.sequence * MIXTURE.hidden
    for mine, one in ((block, passes.block), (head, passes.head)):
        assert mine.temporary_backward - one.temporary_backward == local  # the gradient of the head
    kept = {one.name: one.nbytes for one in join.kept}
    statistics = 4.0 * MIXTURE.sequence
    assert kept == {
        "tokens": 8.0 * MIXTURE.sequence,
        "state": 0.0,
        "token": local,
        "joined": 2 * local,
        "norm_state.statistics": statistics,
        "norm_token.statistics": statistics,
    }


def test_without_it_nothing_is_ahead():
    assert rank_passes(MIXTURE, FUSED).ahead == ()
    assert not rank_passes(MIXTURE, FUSED).tied


def test_tensor_parallel_ranks_gather_what_the_matrix_makes():
    passes = rank_passes(replace(DENSE, mtp=1), FUSED, tp=2, sequence_parallel=True)
    whole = 2.0 * DENSE.sequence * DENSE.hidden
    found = {one.label: (one.name, one.nbytes) for one in passes.ahead[0].forward if isinstance(one, Sync)}
    assert found == {
        "embed.reduce": ("reduce-scatter", whole),
        "join.gather": ("all-gather", 2 * whole),
        "join.output.gather": ("all-gather", whole),
    }


@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_inputs_that_are_kept_whole_are_there_backward(sequence_parallel):
    """A run without a gather before the backward pass, which holds what it would gather."""
    made = {
        kept: rank_passes(
            replace(DENSE, mtp=1), replace(FUSED, gathered_inputs=kept), tp=2, sequence_parallel=sequence_parallel
        )
        for kept in ("kept", "again")
    }
    sizes = {name: sum(one.nbytes for one in each.ahead[0].kept) for name, each in made.items()}
    assert sizes["kept"] >= sizes["again"]


@pytest.mark.parametrize("model", [DENSE, TIED], ids=["head of its own", "tied"])
@pytest.mark.parametrize("stages", [1, 2])
def test_the_last_stage_has_the_embedding_once(model, stages):
    ahead = replace(model, layers=4, mtp=2)
    layout, strategy = Layout(pp=stages), ModelParallel(sequence_parallel=False)
    work = divide(Dimensions(ahead, FUSED, "bf16-master"), layout, strategy, 4)
    names = [one.name for part in work.parts for layer in part for one in layer.weights]
    assert names.count("embed.weight") == stages
    assert work.tied == (4.0 * model.vocabulary * model.hidden if stages > 1 else 0.0)
    assert [one.name for one in work.parts[-1]][-7:] == [*["ahead.join", "block", "ahead.head"] * 2, "head"]


@pytest.mark.parametrize("sharding", ["none", "zero-3"])
def test_a_step_takes_as_much_longer_as_its_kernels_do(sharding):
    model = replace(DENSE, layers=4)
    times, memory = [], []
    for one in (model, replace(model, mtp=1)):
        result = train(
            one,
            on="dgx-a100",
            layout=Layout(pp=1, dp=2, sharding=sharding),
            strategy=ModelParallel(sequence_parallel=False),
            precision="bf16-master",
            batch=4,
        )
        times.append(result.metrics["time per step"].value)
        memory.append(result.metrics["memory"].value)
    assert times[1] > times[0]
    assert memory[1] > memory[0]


def test_deepseek_has_its_published_size():
    """14 billion weights with the embedding and head that it shares: README_WEIGHTS.md of deepseek-ai/DeepSeek-V3."""
    model = shipped_transformers()["deepseek-v3"]
    passes = rank_passes(model, FUSED, spread=Spread(ep=64))
    depth = sum(one.parameters + 63 * one.of_experts for one in passes.ahead)
    head = model.vocabulary * model.hidden
    assert depth + head == pytest.approx(14e9, rel=0.05)
    assert depth - head == model.parameters - replace(model, mtp=0).parameters
