"""Memory of a stage, pass by pass, in the order of schedules' plans."""

import pytest

from simperf.memory import ChunkMemory, LayerMemory, TakenBytes, stage_memory
from simperf.schedules import SCHEDULES, count_in_flight, make_schedule, options_of

KEPT = 10.0
PLANS = [
    (name, stages, microbatches, options)
    for name in sorted(SCHEDULES)
    for stages, microbatches in ((2, 4), (4, 8), (4, 12))
    for options in ([{"chunks": 2}, {"chunks": 3}] if "chunks" in options_of(name) else [{}])
]


def stages_of(plan, chunk):
    """Memory of every stage of a plan whose chunks are alike."""
    return [stage_memory(passes, [chunk] * plan.chunks, {"weights": 1.0}) for passes in plan.stages]


@pytest.mark.parametrize(("name", "stages", "microbatches", "options"), PLANS)
def test_activations_are_what_the_plan_claims(name, stages, microbatches, options):
    plan = make_schedule(name, stages=stages, microbatches=microbatches, **options)
    found = stages_of(plan, ChunkMemory([LayerMemory("block", KEPT / 2)] * 2))
    peaks = tuple(round(one.peak.held["activations"] / KEPT) for one in found)
    assert peaks == plan.in_flight == count_in_flight(plan)
    assert all(one.moments[-1].held == {"weights": 1.0} for one in found), "all is given back"


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_1f1b_keeps_p_less_s_micro_batches(stages):
    plan = make_schedule("1f1b", stages=stages, microbatches=2 * stages)
    found = stages_of(plan, ChunkMemory([LayerMemory("block", KEPT)]))
    assert [one.peak.held["activations"] for one in found] == [KEPT * (stages - s) for s in range(stages)]


def test_gpipe_keeps_all():
    plan = make_schedule("gpipe", stages=4, microbatches=6)
    for found in stages_of(plan, ChunkMemory([LayerMemory("block", KEPT)])):
        assert found.peak.held["activations"] == 6 * KEPT


def test_full_recomputation_keeps_inputs_and_one_layer():
    """Chen et al., 2016: what L layers keep is L inputs, and all of one layer while it goes backward."""
    inputs, inside, layers = 1.0, 17.0, 12
    chunk = ChunkMemory([LayerMemory("block", inputs, inside, inside)] * layers)
    found = stage_memory([("F", 0, 0), ("B", 0, 0)], [chunk], {})
    assert found.peak.total == layers * inputs + inside


def test_backward_gives_back_layer_by_layer():
    """A large head has its peak before any block goes backward; what lives in a block comes on top of less."""
    blocks = [LayerMemory("block", 10.0, 2.0, 6.0)] * 3
    head = LayerMemory("head", 4.0, 3.0, 5.0)
    found = stage_memory([("F", 0, 0), ("B", 0, 0)], [ChunkMemory([*blocks, head])], {})
    assert [(one.layer, one.total) for one in found.moments[:2]] == [("head", 37.0), ("head", 39.0)]
    high = [*blocks, head._replace(kept=0.0, backward=0.0)]
    found = stage_memory([("F", 0, 0), ("B", 0, 0)], [ChunkMemory(high)], {})
    assert (found.peak.layer, found.peak.total) == ("block", 36.0)


def test_messages_are_held():
    """A gradient that comes in while the backward pass runs, and one that went out until the next one is done."""
    chunk = ChunkMemory([LayerMemory("block", 10.0, 0.0, 3.0)], sends=2.0, returns=2.0)
    order = [("F", 0, 0), ("B", 0, 0), ("F", 1, 0), ("B", 1, 0)]
    found = {one.name: one.held.get("messages", 0.0) for one in stage_memory(order, [chunk], {}).moments}
    assert found == {"F0": 0.0, "B0": 2.0, "F1": 2.0, "B1": 4.0, "update": 0.0}
    first = stage_memory(order, [chunk], {}).moments[1]
    assert first.held["temporaries"] == 1.0, "the gradient that comes in is counted once"


def test_split_backward_leaves_what_gradients_of_weights_read():
    """Layer by layer from the last one, first from what is kept to what is left, then to nothing."""
    layers = [LayerMemory("block", 10.0, 0.0, 9.0, 7.0, 2.0, 1.0)] * 2
    found = stage_memory([("F", 0, 0), ("B", 0, 0), ("W", 0, 0)], [ChunkMemory(layers)], {})
    assert [(one.total, one.after) for one in found.moments[:3]] == [(20.0, 20.0), (22.0, 14.0), (15.0, 0.0)]
    more = [one._replace(left=13.0) for one in layers]  # computed again, and left: more than was kept
    found = stage_memory([("F", 0, 0), ("B", 0, 0), ("W", 0, 0)], [ChunkMemory(more)], {})
    assert [(one.total, one.after) for one in found.moments[:3]] == [(20.0, 20.0), (25.0, 26.0), (27.0, 0.0)]
    all_kept = [LayerMemory("block", 10.0)]
    found = stage_memory([("F", 0, 0), ("B", 0, 0), ("W", 0, 0)], [ChunkMemory(all_kept)], {})
    assert [one.after for one in found.moments[:3]] == [10.0, 10.0, 0.0]


def test_bytes_of_kinds_add_up_at_every_moment():
    chunk = ChunkMemory([LayerMemory("block", 10.0, 1.0, 3.0)] * 4, sends=2.0, returns=2.0)
    plan = make_schedule("interleaved", stages=2, microbatches=4, chunks=2)
    found = stage_memory(plan.stages[0], [chunk] * 2, {"weights": 7.0, "gradients": 14.0}, update=5.0)
    for one in found.moments:
        assert one.total == pytest.approx(sum(one.held.values()))
        assert one.held["weights"] == 7.0
        assert one.after <= one.total
    assert found.peak.total == max(one.total for one in found.moments)
    assert set(found.kinds) == {"weights", "gradients", "activations", "temporaries", "messages"}


def test_most_is_taken_with_another_layer_than_most_is_held_with():
    """What an allocator has for a layer's own tensors lies behind all that is held before it."""
    low = LayerMemory("low", 10.0, 0.0, 20.0)
    high = LayerMemory("high", 5.0, 0.0, 12.0, taken=TakenBytes(backward=30.0))
    found = stage_memory([("F", 0, 0), ("B", 0, 0)], [ChunkMemory([low, high])], {"weights": 100.0})
    assert (found.peak.layer, found.peak.total) == ("low", 130.0)
    assert found.reserved == 100.0 + 10.0 + 30.0
    plain = stage_memory([("F", 0, 0), ("B", 0, 0)], [ChunkMemory([low, high._replace(taken=TakenBytes())])], {})
    assert plain.reserved == plain.peak.total


@pytest.mark.parametrize(
    ("taken", "reserved"),
    [
        (TakenBytes(forward=40.0), 40.0),
        (TakenBytes(backward=40.0), 17.0),  # which there is none of
        (TakenBytes(inputs=40.0), 40.0),
        (TakenBytes(weights=40.0), 40.0),
        (TakenBytes(inputs=2.0), 17.0),  # less than it holds
    ],
)
def test_each_pass_of_a_split_backward_pass_has_its_own_free_blocks(taken, reserved):
    layer = LayerMemory("head", 10.0, 1.0, 9.0, 6.0, 7.0, 3.0, taken=taken)
    found = stage_memory([("F", 0, 0), ("B", 0, 0), ("W", 0, 0)], [ChunkMemory([layer])], {})
    assert found.reserved == reserved


def test_kinds_of_other_streams_are_in_no_pool_but_their_own():
    beside = (("gathered weights", 50.0),)
    layer = LayerMemory("block", 10.0, 0.0, 4.0, forward_beside=beside, backward_beside=beside, gradient=3.0)
    order = [("F", 0, 0), ("B", 0, 0)]
    found = stage_memory(order, [ChunkMemory([layer])], {"weights": 100.0}, apart=("gradients", "gathered weights"))
    assert found.peak.total == 164.0
    assert dict(found.apart) == {"gradients": 3.0, "gathered weights": 50.0}
    assert found.reserved == 100.0 + 10.0 + 4.0 + 53.0
