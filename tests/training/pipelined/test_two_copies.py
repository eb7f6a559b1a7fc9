"""Two copies of a model on one pipeline: who adds up gradients, what hides what, and what it costs in memory."""

from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.layout import Layout
from simperf.training.pipelined.division import divide
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.paired_passes import TURN, side_by_side
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer
from tests.training.pipelined.small import clipped, last_step, played, work

P, M = 4, 8
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", gradients="fp32", gradient_accumulation="fused")
MODEL = Transformer(layers=2 * P, hidden=1024, heads=16, ffn=4096, vocabulary=32000, sequence=512)


def job(schedule="dualpipe", model=MODEL, layout=None, **strategy):
    options = ModelParallel(schedule=schedule, **strategy)
    shared = layout or Layout(pp=P)
    return Divided(Dimensions(model, FUSED), shared, options, M * shared.dp)


def test_stages_from_both_ends_hold_the_same_parts():
    of = work(P, M, "dualpipe")
    assert [of.holders(stage) for stage in range(P)] == [(0, 3), (1, 2), (1, 2), (0, 3)]
    assert [of.holders(stage) for stage in range(P)] != [(stage,) for stage in range(P)]
    assert [work(P, M, "zb-v").holders(stage) for stage in range(P)] == [(stage,) for stage in range(P)]
    assert [sorted(of.part(stage, chunk) for chunk in (0, 1)) for stage in range(P)] == [[0, 3], [1, 2], [1, 2], [0, 3]]


@pytest.mark.parametrize("pacing", [Pacing(), Pacing(gradients=True), Pacing(gradients=True, sharded=True)])
@pytest.mark.parametrize("dp", [1, 2])
def test_gradients_are_added_up_over_both_copies(dp, pacing):
    """The group has the data-parallel ranks of both stages; both bring the same buckets, in the same order."""
    of = work(P, M, "dualpipe", end=clipped())
    m, processes = played("dgx-a100-x4", of, pp=P, dp=dp, pacing=pacing, exact=True)
    nodes = m.machine.workers
    for one in processes:
        group = one.groups["dp"]
        stages = {nodes.index(node) // dp for node in group.nodes}
        assert (group.size, stages) == (2 * dp, set(of.holders(one.stage)))
    first, last = ([(bucket.weights, bucket.ready) for bucket in processes[at].buckets] for at in (0, -1))
    assert first == last
    moved = [one.spent.readings[-1].moving["dp"] for one in processes]
    assert all(time > 0.0 for time in moved)


def test_the_norm_is_of_each_copy_by_itself():
    _, processes = played("dgx-a100-x4", work(P, M, "dualpipe", end=clipped()), pp=P, exact=True)
    assert {tuple(one.groups["norm"].nodes) for one in processes} == {
        tuple(processes[stage].device.name for stage in half) for half in ((0, 1), (2, 3))
    }


@pytest.mark.parametrize("pacing", [Pacing(), Pacing(gradients=True, messages=True)], ids=["plain", "overlapped"])
@pytest.mark.parametrize("tp", [1, 2])
def test_classes_of_ranks_are_exact(tp, pacing):
    found = []
    for exact in (True, False):
        options = {"exact": exact, "pacing": pacing, "launch": 4e-6}
        _, processes = played("dgx-a100-x4", work(P, M, "dualpipe", end=clipped()), tp=tp, pp=P, dp=2, **options)
        found.append({one.stage: last_step(one) for one in processes})
    for stage in range(P):
        for exact, classes in zip(found[0][stage], found[1][stage], strict=True):
            assert classes.time == pytest.approx(exact.time, rel=1e-9)
            assert classes.waiting == pytest.approx(exact.waiting, rel=1e-9, abs=1e-15)
            assert dict(classes.exposed) == pytest.approx(dict(exact.exposed), rel=1e-9, abs=1e-15)


def test_passes_beside_each_other_hide_their_communication():
    """No more than half of it in a pair is left; kernels are the same, and nothing is lost."""
    of = work(P, 2 * M, "dualpipe", time=1e-3, nbytes=40e6, message=0.0, blocks=4, ends=False)
    alone = replace(of, plan=replace(of.plan, beside=()))
    (_, pairs), (_, singles) = (played("dgx-a100-x4", each, tp=2, pp=P) for each in (of, alone))
    for one, other in zip(pairs, singles, strict=True):
        (start, end), (begin, after) = last_step(one), last_step(other)
        assert end.kernels - start.kernels == pytest.approx(after.kernels - begin.kernels, rel=1e-12)
        assert end.moving["tp"] == pytest.approx(after.moving["tp"], rel=0.01)
        assert end.exposed["tp"] < 0.6 * after.exposed["tp"]
        assert end.exposed["tp"] <= end.moving["tp"]
        assert end.time - start.time < after.time - begin.time


def test_without_communication_a_pair_is_one_pass_after_the_other():
    """Of equal stages, where messages take no time: the bubble of the paper, (p / 2 - 1) (T_FB + T_B - 3 T_W)."""
    of = work(P, M, "dualpipe", time=1.0, nbytes=0.0, message=0.0, ends=False)
    _, processes = played("dgx-a100-x4", of, pp=P)
    readings = [last_step(one) for one in processes]
    unit = (readings[0][1].kernels - readings[0][0].kernels) / (3 * M)
    waited = [(after.waiting - before.waiting) / unit for before, after in readings]
    assert max(waited) <= (P / 2 - 1) * (3 + 2 - 3) + 1e-3
    assert max(waited) < 3 * (P - 1), "less than that of 1F1B"


def test_weights_are_there_twice_and_activations_of_p_and_1_micro_batches():
    own, other = job().memory(), job("1f1b").memory()
    weights = sum(one.peak.held["weights"] for one in own)
    assert weights == pytest.approx(2 * sum(one.peak.held["weights"] for one in other))
    (block,) = {layer for part in divide(job().model, Layout(pp=P), job().strategy, M).parts for layer in part[1:2]}
    part = 2 * block.activations
    for one in own[1:-1]:
        most = max(each.held["activations"] for each in one.moments if each.name != "update")
        assert P * part < most <= 1.02 * (P + 1) * part


def test_states_are_shared_by_both_copies():
    own = job(layout=Layout(pp=P, dp=2, sharding="zero-1")).memory()
    other = job("1f1b", layout=Layout(pp=P, dp=2, sharding="zero-1")).memory()
    for kind in ("master", "optimizer"):
        total, before = (sum(one.peak.held[kind] for one in each) for each in (own, other))
        assert total == pytest.approx(before, rel=1e-6), "twice the weights over twice the ranks"


def test_a_tied_head_is_on_the_stages_of_the_embedding():
    tied = replace(MODEL, tied=True)
    of = divide(Dimensions(tied, FUSED), Layout(pp=P), ModelParallel(schedule="dualpipe"), M)
    assert of.tied == 0.0
    assert "embed.weight" not in {one.name for one in of.parts[-1][-1].weights}


def test_what_is_not_played_is_refused():
    with pytest.raises(InputError, match="two copies of the model") as error:
        job(layout=Layout(pp=P, dp=2, sharding="zero-3")).memory()
    assert error.value.problems[0].key == "layout.sharding"


def test_side_by_side_gives_answers_to_whom_they_belong():
    told = []

    def steps(name):
        told.append((name, (yield name)))
        yield TURN
        told.append((name, (yield name.lower())))

    both = side_by_side(steps("A"), steps("B"))
    asked = [next(both)]
    try:
        while True:
            asked.append(both.send(f"answer to {asked[-1]}"))
    except StopIteration:
        pass
    assert asked == ["A", "B", "a", "b"]
    assert told == [("A", "answer to A"), ("B", "answer to B"), ("A", "answer to a"), ("B", "answer to b")]
