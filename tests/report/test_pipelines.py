"""Pictures of divided models: passes by stage, memory by kind, and where a step of each stage goes."""

from itertools import pairwise

import pytest

from simperf import Layout, ModelParallel, Transformer, train
from simperf.errors import InputError
from simperf.report.pipelines import pass_bars, stage_devices
from simperf.report.plots import draw
from simperf.schedules import make_schedule

MODEL = Transformer(layers=8, hidden=1024, heads=16, ffn=4096, vocabulary=8000, sequence=1024)
P, M = 4, 8


def run(schedule="1f1b", *, batch=M, **layout):
    given = {"precision": "bf16-master", "batch": batch, "set": {"program.steps": 2, "program.stack": "megatron-core"}}
    layout = {"pp": P, **layout}
    return train(MODEL, on="dgx-h100", layout=Layout(**layout), strategy=ModelParallel(schedule=schedule), **given)


@pytest.fixture(scope="module", params=["1f1b", "zb-v", "dualpipe"])
def result(request):
    return request.param, run(request.param)


def texts(made):
    return [text.get_text() for axes in made.axes for text in axes.texts]


def test_passes_of_the_timeline_are_those_of_the_plan(result):
    """Each as often as the plan says, in its order, none before the one before it has ended."""
    name, found = result
    plan, bars = make_schedule(name, stages=P, microbatches=M), pass_bars(found)
    assert set(stage_devices(found)) == set(range(P))
    for stage in range(P):
        own = sorted((one for one in bars if one.stage == stage), key=lambda one: (one.start, one.kind != "F"))
        turns = [each for turn in plan.turns(stage) for each in turn[:2]]
        assert [(one.kind, one.microbatch, one.chunk) for one in own] == 2 * [tuple(each) for each in turns]
        together = {turn[1] for turn in plan.turns(stage) if len(turn) > 1}
        for before, after in pairwise(own):
            beside = (after.kind, after.microbatch, after.chunk) in together and after.start == before.start
            assert beside or after.start >= before.end - 1e-12


def test_memory_over_time_reaches_what_is_told(result):
    _, found = result
    for stage, device in stage_devices(found).items():
        held = {}
        most = 0.0
        for track, kind, _, nbytes in found.memory:
            if track == device:
                held[kind] = nbytes
                most = max(most, sum(held.values()) if kind == list(held)[-1] else 0.0)
        assert most == pytest.approx(found.metrics[f"memory of stage {stage}"].value)


def test_activations_begin_with_the_first_forward_pass_of_each_stage():
    """Before it a stage holds what it keeps for the whole step: weights and states, as after its last pass."""
    found = run()
    first = {stage: min(one.start for one in pass_bars(found) if one.stage == stage) for stage in range(P)}
    assert first[3] > first[2] > first[1] > 0.0
    for stage, device in stage_devices(found).items():
        own = [one for one in found.memory if one.track == device]
        assert min(one.time for one in own if one.name == "activations" and one.value) == first[stage]
        for kind in ("weights", "optimizer"):
            values = {one.value for one in own if one.name == kind}
            assert len(values) == 1
            assert values.pop() > 0
            assert min(one.time for one in own if one.name == kind) == 0.0


@pytest.mark.parametrize("kind", ["pipeline", "stages", "memory"])
def test_pictures_name_every_stage_that_they_show(result, kind):
    _, found = result
    made = draw(found, kind)
    if kind == "memory":
        assert made.axes[0].get_title(loc="right").startswith("stage 0: ")
        assert "activations" in [text.get_text() for text in made.legends[0].get_texts()]
    else:
        (axes,) = made.axes
        assert [label.get_text() for label in axes.get_yticklabels()] == [f"stage {stage}" for stage in range(P)]
        named = [text.get_text() for text in axes.get_legend().get_texts()]
        assert {"pipeline": "forward pass", "stages": "bubble"}[kind] in named


def test_parts_of_a_bar_are_a_step():
    found = run()
    (axes,) = draw(found, "stages").axes
    widths = {}
    for bar in axes.patches:
        widths[round(bar.get_y(), 3)] = widths.get(round(bar.get_y(), 3), 0.0) + bar.get_width()
    step = found.metrics["time per step"].value
    assert list(widths.values()) == pytest.approx([1e3 * step] * P, rel=1e-3)


def test_what_there_is_nothing_to_draw_of_is_said():
    from simperf import run as play

    plain = play("d2l/async")
    for kind in ("pipeline", "stages"):
        with pytest.raises(InputError, match="nothing to draw"):
            draw(plain, kind)
    with pytest.raises(InputError, match="passes of a pipeline"):
        draw(run(pp=1, dp=2, sharding="zero-3", batch=4), "pipeline")
