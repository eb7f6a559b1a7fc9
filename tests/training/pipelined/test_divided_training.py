"""Memory of divided training, and what would make it fit."""

from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.layout import Layout
from simperf.memory import allocated
from simperf.training.pipelined.divided_training import DividedTraining, changes_that_fit, refuse_what_does_not_fit
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer

FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", gradients="fp32", gradient_accumulation="fused")
SMALL = Transformer(layers=8, hidden=1024, heads=16, ffn=4096, vocabulary=32000, sequence=1024)
GPT = replace(SMALL, activation="gelu", norm="layer", positions="learned", bias=True, tied=True)


def training(model=SMALL, **changes):
    """A job on eight GPUs."""
    given = {"layout": Layout(dp=2, tp=2, pp=2, sharding="zero-1"), "batch": 16, "microbatch": 2, "kernels": FUSED}
    return DividedTraining(model=model, **{**given, **changes})


@pytest.mark.parametrize("model", [SMALL, GPT])
def test_states_of_all_ranks_are_those_of_the_model(model):
    """Sharded states of all ranks together are whole, but for weights that tensor-parallel ranks have twice."""
    job = training(model, layout=Layout(dp=4, pp=2, sharding="zero-1"))
    held = [one.peak.held for one in job.memory()]
    shared = model.vocabulary * model.hidden if model.tied else 0  # on the first and the last stage
    states = sum(4 * (one["master"] + one["optimizer"]) for one in held)
    assert states == pytest.approx(12 * (model.parameters + shared), rel=0.01)  # the vocabulary is padded
    assert sum(one["gradients"] for one in held) == pytest.approx(4 * (model.parameters + shared), rel=0.01)


def test_a_tied_head_on_the_embeddings_stage_has_no_weights_of_its_own():
    job = training(GPT, layout=Layout(dp=8), batch=16)
    (one,) = job.memory()
    assert one.peak.held["weights"] == pytest.approx(2 * GPT.parameters, rel=0.01)


def test_1f1b_keeps_fewer_micro_batches_on_later_stages():
    job = training(layout=Layout(dp=1, pp=4), batch=16, microbatch=1)
    blocks = [max(one.held["activations"] for one in stage.moments if one.name[0] == "F") for stage in job.memory()]
    passes = job.passes
    kept = 2 * sum(allocated(one.nbytes) for one in passes.block.kept)
    ends = [sum(allocated(one.nbytes) for one in part.kept) for part in (passes.embedding, passes.head)]
    assert blocks[1:3] == [3 * kept, 2 * kept]
    assert blocks[0] == 4 * (kept + ends[0])
    assert blocks[3] == kept + ends[1]


def test_full_recomputation_keeps_the_input_of_each_layer():
    job = training(layout=Layout(dp=4, pp=2), microbatch=1, recompute="full", batch=8)
    first, _ = job.memory()
    wide = 2 * SMALL.sequence * SMALL.hidden
    tokens = 8 * SMALL.sequence
    assert first.moments[0].after - first.moments[-1].total == 4 * wide + tokens
    assert first.peak.total < training(layout=Layout(dp=4, pp=2), microbatch=1, batch=8).memory()[0].peak.total


def test_sharding_sequence_parallelism_and_recomputation_never_need_more():
    job = training(layout=Layout(dp=2, tp=2, pp=2))
    less = [
        replace(job, layout=Layout(dp=2, tp=2, pp=2, sharding="zero-1")),
        replace(job, sequence_parallel=True),
        replace(job, recompute="full"),
        replace(job, microbatch=1),
    ]
    assert all(one.peak() < job.peak() for one in less)


def test_the_peak_is_that_of_all_micro_batches():
    job = training(batch=16 * 40)
    assert job.peak() == max(one.peak.total for one in job.memory())


def test_what_does_not_fit_is_told_with_changes_that_do():
    job = training(layout=Layout(dp=4, tp=2), batch=32, microbatch=8)
    need = job.peak()
    refuse_what_does_not_fit(job, need + 400e6)
    with pytest.raises(InputError) as caught:
        refuse_what_does_not_fit(job, 0.8 * need, name="gpu0")
    (problem,) = caught.value.problems
    assert "gpu0 has" in problem.message
    assert "in pass B0" in problem.message
    found = changes_that_fit(job, 0.8 * need - 300e6)
    assert problem.expected.startswith(found[0].text)
    for one in found:
        assert one.training.peak() == one.peak <= 0.8 * need - 300e6
        assert one.training.layout.ranks == 8


def test_pairs_are_tried_where_no_change_is_enough():
    job = training(layout=Layout(dp=8), batch=32, microbatch=4)
    capacity = job.peak()
    while any(" and " not in one.text for one in changes_that_fit(job, capacity)):
        capacity *= 0.95
    found = changes_that_fit(job, capacity)
    assert found
    assert all(" and " in one.text and one.peak <= capacity for one in found)
    assert changes_that_fit(job, 1e6) == []


@pytest.mark.parametrize(
    ("changes", "key", "expected"),
    [
        ({"batch": 18}, "batch", "16 or 20"),
        ({"layout": Layout(dp=1, pp=3), "batch": 6}, "layers", "6 or 9"),
        ({"layout": Layout(dp=2, cp=2), "batch": 8}, "cp", "cp = 1"),
    ],
)
def test_what_does_not_divide_is_refused(changes, key, expected):
    with pytest.raises(InputError) as caught:
        training(**changes)
    (problem,) = caught.value.problems
    assert (problem.key, problem.expected) == (key, expected)
