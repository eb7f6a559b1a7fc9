"""Pipeline schedules: proved by interpretation, with the bubbles and the memory that their papers claim."""

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError, UnknownNameError
from simperf.schedules import SCHEDULES, Pass, make_schedule, order_of, problems_of
from simperf.testing import check_schedule

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 12))


def played(plan, **times):
    """When each stage begins and ends if passes of one chunk take these times and sends none, by longest paths."""
    ends, first, last = {}, {}, [0.0] * len(plan.stages)
    for stage, one in order_of(plan):
        start = max([last[stage], *(ends[need] for need in plan.needs(stage, one))])
        first.setdefault(stage, start)
        ends[stage, one] = last[stage] = start + times[one.kind]
    return [(first[stage], end) for stage, end in enumerate(last)]


def span(plan, *, forward=1.0, backward=2.0):
    """When the last stage is done if the passes of a whole stage take these times."""
    return max(end for _, end in played(plan, F=forward / plan.chunks, B=backward / plan.chunks))


def bubble(plan, **times):
    """Time for which the whole pipeline takes longer than the work of a stage."""
    work = sum(times[one.kind] for one in plan.stages[0])
    return max(end for _, end in played(plan, **times)) - work


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_every_schedule_conforms(name):
    check_schedule(name)


@given(SIZES)
def test_bubble_of_gpipe_and_1f1b(sizes):
    """(p - 1) / (m + p - 1) of the time is idle."""
    stages, batches = sizes
    for name in ("gpipe", "1f1b"):
        assert span(make_schedule(name, stages=stages, microbatches=batches)) == 3.0 * (batches + stages - 1)


@given(SIZES, st.integers(1, 3))
def test_a_pipeline_that_is_filled_again_has_its_bubble_again(sizes, runs):
    stages, batches = sizes
    for name in ("gpipe", "1f1b", "zb-h1"):
        once = make_schedule(name, stages=stages, microbatches=batches)
        plan = once.repeated(runs)
        assert problems_of(plan) == []
        assert plan.in_flight == once.in_flight
        assert all(len(plan.final(stage)) == runs for stage in range(stages))
        if name != "zb-h1":
            assert span(plan) == 3.0 * runs * (batches + stages - 1)


def test_passes_that_complete_gradients_are_the_last_ones_of_each_run():
    plan = make_schedule("interleaved", stages=2, microbatches=2, chunks=2).repeated(2)
    assert sorted(map(str, plan.final(0))) == ["B1", "B1.1", "B3", "B3.1"]
    with pytest.raises(ValueError, match="two copies"):
        make_schedule("dualpipe", stages=2, microbatches=4).repeated(2)


@given(st.integers(2, 5), st.integers(1, 3), st.integers(2, 4))
def test_bubble_of_interleaved_stages_is_a_chunk_th(stages, turns, chunks):
    """(p - 1) / v forward and backward passes of a whole stage (SC 2021, section 2.2)."""
    plan = make_schedule("interleaved", stages=stages, microbatches=stages * turns, chunks=chunks)
    assert span(plan) == pytest.approx(3.0 * (stages * turns + (stages - 1) / chunks))


@given(SIZES)
def test_activations_in_flight(sizes):
    """GPipe keeps all micro-batches, 1F1B no more than there are stages from there on."""
    stages, batches = sizes
    assert make_schedule("gpipe", stages=stages, microbatches=batches).in_flight == (batches,) * stages
    found = make_schedule("1f1b", stages=stages, microbatches=batches).in_flight
    assert found == tuple(min(stages - stage, batches) for stage in range(stages))


@given(st.integers(2, 8), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2))
def test_zb_h1_by_its_paper(stages, turns, forward, backward, weights):
    """(p - 1) (T_F + T_B - T_W) is idle, with the memory of the first stage of 1F1B (ICLR 2024, section 2)."""
    plan = make_schedule("zb-h1", stages=stages, microbatches=stages * turns)
    times = {"F": forward, "B": backward, "W": weights}
    if weights <= min(forward, backward):
        assert bubble(plan, **times) == (stages - 1) * (forward + backward - weights)
    assert max(plan.in_flight) == stages == max(make_schedule("1f1b", stages=stages, microbatches=stages).in_flight)


@pytest.mark.parametrize("stages", range(2, 17))
def test_v_shapes_by_their_paper(stages):
    """With equal passes, against 1F1B: memory and bubble of a third and two thirds, a half each, and all and none.

    NeurIPS 2024, table 1; a stage keeps a few chunks more where the turns of the V need a pause.
    """
    made = {name: make_schedule(name, stages=stages, microbatches=3 * stages) for name in ("v-min", "v-half", "zb-v")}
    whole, idle = 2 * stages, 6 * (stages - 1)
    kept = {name: max(plan.in_flight) for name, plan in made.items()}
    assert whole / 3 <= kept["v-min"] <= whole / 3 + 3
    assert whole / 2 <= kept["v-half"] <= whole / 2 + 2
    assert kept["zb-v"] == whole
    idles = {name: bubble(plan, F=1, B=1, W=1) for name, plan in made.items()}
    assert abs(idles["v-min"] - 2 / 3 * idle) <= 3
    assert abs(idles["v-half"] - idle / 2) <= 1
    times = played(made["zb-v"], F=1, B=1, W=1)
    assert [end - begin for begin, end in times] == [6 * 3 * stages] * stages, "no stage waits once it has begun"


@given(st.integers(1, 6), st.integers(0, 6))
def test_dualpipe_by_its_paper(half, more):
    """p + 1 activations, and at most (p / 2 - 1) (T_F + T_B + T_W + T_B + T_W - 3 T_W) idle."""
    stages, batches = 2 * half, 4 * half + 2 * more
    plan = make_schedule("dualpipe", stages=stages, microbatches=batches)
    assert plan.in_flight == (stages + 1,) * stages
    assert 0 <= bubble(plan, F=1, B=1, W=1) <= (half - 1) * (3 + 2 - 3)
    assert bubble(plan, F=1, B=1, W=1) < 3 * (stages - 1), "less than 1F1B"
    for stage in range(stages):
        edge = min(stage, stages - 1 - stage)
        inner = half - 1 - edge
        pairs = [turn for turn in plan.turns(stage) if len(turn) > 1]
        assert len(pairs) == batches - 2 * stages + 2 * (edge + 1) + inner - (not inner), "as in DeepSeek's order"
        assert all([one.kind for one in turn] == ["F", "B", "W"] for turn in pairs)
        assert all(turn[0].chunk != turn[1].chunk for turn in pairs), "of both directions"
    directions = [[stage for stage, _ in path] for path, _ in plan.paths]
    assert directions == [list(range(stages)), list(reversed(range(stages)))]


def test_interleaved_stages_hold_what_the_schedule_needs_with_few_microbatches():
    """Megatron-Core's warm-up, with as many micro-batches as stages too: 8, 8, 7 and 5 passes of chunks are kept."""
    plan = make_schedule("interleaved", stages=4, microbatches=4, chunks=2)
    assert [most_kept(stage) for stage in plan.stages] == [8, 8, 7, 5]


def most_kept(passes):
    """Most passes that are forward and not backward yet."""
    return max(accumulate(1 if each.kind == "F" else -1 for each in passes))


def test_one_chunk_interleaved_is_as_long_as_1f1b():
    one = make_schedule("interleaved", stages=4, microbatches=8, chunks=1)
    assert span(one) == span(make_schedule("1f1b", stages=4, microbatches=8))


def test_gradients_of_weights_may_be_passes_of_their_own():
    plain = make_schedule("1f1b", stages=3, microbatches=4)
    stages = tuple(
        tuple(each for one in passes for each in ([one, one._replace(kind="W")] if one.kind == "B" else [one]))
        for passes in plain.stages
    )
    plan = replace(plain, stages=stages)
    assert plan.split
    assert problems_of(plan) == []
    missing = replace(plan, stages=(plan.stages[0][:-1], *plan.stages[1:]))
    assert problems_of(missing) == ["stage 0 never does W3"]


def broken(change):
    plan = make_schedule("1f1b", stages=2, microbatches=2)
    return problems_of(replace(plan, **change(plan)))


def test_what_is_wrong_is_said():
    twice = broken(lambda plan: {"stages": (plan.stages[0], (*plan.stages[1], Pass("B", 1)))})
    assert twice == ["stage 1 does B1 2 times"]
    foreign = broken(lambda plan: {"stages": (plan.stages[0], (*plan.stages[1], Pass("F", 7)))})
    assert foreign == ["stage 1 does F7, which is no part of the work"]
    late = broken(lambda plan: {"stages": (plan.stages[0], plan.stages[1][::-1])})
    assert late[0].startswith("6 passes wait forever: B0 of stage 0 for B0 of stage 1; B1 of stage 1 for F1 of stage 1")
    assert "keeps activations" in broken(lambda plan: {"in_flight": (1, 1)})[0]
    assert "claims activations in flight of 1 stages" in broken(lambda plan: {"in_flight": (1,)})[0]
    assert "is 2 parts" in broken(lambda plan: {"path": ((0, 0), (0, 0))})[0]
    assert "on stage 5" in broken(lambda plan: {"path": ((0, 0), (5, 0))})[0]
    assert "is 2 parts" in broken(lambda plan: {"second": ((1, 0), (0, 0))})[0]
    assert "has 1 parts, the first 2" in broken(lambda plan: {"second": ((1, 1),)})[0]
    assert broken(lambda plan: {"second": ((1, 1), (0, 1))})[0] == "stage 0 never does B1.1"
    assert "pairs of passes of 1 stages" in broken(lambda plan: {"beside": (frozenset(),)})[0]
    at_a_backward = broken(lambda plan: {"beside": (frozenset({2, 9}), frozenset())})
    assert at_a_backward == [
        f"stage 0 does no forward pass with a backward pass behind it at place {place}" for place in (2, 9)
    ]
    one = make_schedule("1f1b", stages=2, microbatches=1)
    (together,) = problems_of(replace(one, beside=(frozenset({0}), frozenset())))
    assert together.startswith("4 passes wait forever: "), "both wait for what either needs"
    with pytest.raises(AssertionError, match="keeps activations"):
        check_schedule(replace(make_schedule("gpipe", stages=2, microbatches=2), in_flight=(1, 1)))


def test_numbers_and_options_that_have_no_meaning():
    with pytest.raises(UnknownNameError, match="did you mean '1f1b'"):
        make_schedule("1f1", stages=2, microbatches=2)
    with pytest.raises(InputError, match="stages"):
        make_schedule("gpipe", stages=0, microbatches=2)
    with pytest.raises(InputError, match="has no option 'chunks'"):
        make_schedule("gpipe", stages=2, microbatches=2, chunks=2)
    with pytest.raises(InputError, match="4 or 8"):
        make_schedule("interleaved", stages=4, microbatches=6)
    with pytest.raises(InputError, match="2 or 4, with stage_layers"):
        make_schedule("dualpipe", stages=3, microbatches=12)
    with pytest.raises(InputError, match="expected: 8"):
        make_schedule("dualpipe", stages=4, microbatches=6)
    with pytest.raises(InputError, match="expected: 12"):
        make_schedule("dualpipe", stages=4, microbatches=11)
    with pytest.raises(InputError, match="chunks"):
        make_schedule("interleaved", stages=4, microbatches=4, chunks=0)
    with pytest.raises(InputError, match="more passes"):
        make_schedule("gpipe", stages=2**20, microbatches=2**20)
