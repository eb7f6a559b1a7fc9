"""Jobs whose model is divided among ranks: as calls, as files, and what is refused."""

import re
from dataclasses import replace

import pytest

from simperf import DataExchange, Layout, ModelParallel, StageMessages, Transformer, train
from simperf.errors import InputError
from simperf.schedules import SCHEDULES, make_schedule
from simperf.workload.transformers.flops import forward_flops, step_flops

MODEL = Transformer(layers=4, hidden=1024, heads=16, vocabulary=32000, sequence=1024, tied=True, norm="layer")


def run(layout=None, *, model=MODEL, batch=8, set=None, on="dgx-a100-x4", **options):
    layout = Layout(**{"tp": 2, "pp": 2, "dp": 2, **(layout or {})})
    more = {"program.steps": 2, **(set or {})}
    strategy = ModelParallel(**options)
    return train(model, on=on, layout=layout, strategy=strategy, precision="bf16-master", batch=batch, set=more)


def test_a_job_tells_throughput_and_where_each_stage_spends_its_step():
    result = run(
        {"sharding": "zero-1"}, exchange=DataExchange(bucket=4e6, overlap_weights=True), sequence_parallel=True
    )
    metrics = {name: one.value for name, one in result.metrics.items()}
    time = metrics["time per step"]
    assert metrics["tokens per second per GPU"] == pytest.approx(8 * 1024 / time / 8)
    assert 0.0 < metrics["model FLOP utilisation"] < 1.0
    for stage in (0, 1):
        own = {name: value for name, value in metrics.items() if name.startswith(f"stage {stage}: ")}
        parts = [value for name, value in own.items() if ": hidden" not in name]
        assert sum(parts) == pytest.approx(time, rel=1e-6)
        assert own[f"stage {stage}: bubble"] > 0.0


def test_hardware_flops_are_those_of_the_model_and_what_is_computed_again():
    plain, full, half = run(), run(recompute="full"), run(recompute="full", recompute_layers=1)
    ratios = []
    for result in (plain, full, half):
        metrics = {name: one.value for name, one in result.metrics.items()}
        model = metrics["model FLOP utilisation"]
        ratios.append(metrics.get("hardware FLOP utilisation", model) / model - 1)
    assert ratios[0] == 0.0
    blocks = forward_flops(MODEL) - 2 * MODEL.sequence * MODEL.vocabulary * MODEL.hidden
    assert ratios[1] == pytest.approx(blocks / step_flops(MODEL))
    assert ratios[2] == pytest.approx(ratios[1] / 2)  # one of two layers of each stage
    assert "hardware FLOP utilisation" not in plain.metrics


def test_a_block_of_multi_token_prediction_is_one_of_those_that_may_be_computed_again():
    model = replace(MODEL, mtp=1)
    full, first = run(model=model, recompute="full"), run(model=model, recompute="full", recompute_layers=1)
    again = [
        one.metrics["hardware FLOP utilisation"].value / one.metrics["model FLOP utilisation"].value - 1
        for one in (full, first)
    ]
    assert again[1] == pytest.approx(again[0] * 2 / 5)  # the first of two blocks, and of three


def test_a_pipeline_is_filled_and_drained_as_often_as_a_step_says():
    once, twice = run(), run(exchange=DataExchange(runs=2))
    assert twice.metrics["stage 1: bubble"].value > 1.4 * once.metrics["stage 1: bubble"].value
    assert twice.metrics["memory of stage 0"].value <= once.metrics["memory of stage 0"].value
    half = run(batch=4).metrics["time per step"].value
    assert half < once.metrics["time per step"].value < twice.metrics["time per step"].value < 2 * half
    for given, layout, words in (
        ({"runs": 3}, {}, "pipeline_runs: .* are not divided by it"),
        ({"runs": 2}, {"pp": 1, "dp": 4}, "pipeline_runs: has no effect without a pipeline"),
        ({"runs": 0}, {}, "pipeline_runs: a whole number of 1 or more"),
    ):
        with pytest.raises(InputError, match=words):
            run(layout, exchange=DataExchange(**given))


def test_chunks_go_to_any_schedule_that_takes_them():
    def shuffled(stages, microbatches, *, chunks=2):
        return make_schedule("interleaved", stages=stages, microbatches=microbatches, chunks=chunks)

    with SCHEDULES.temporary_entries(shuffled=shuffled):
        one, same = (
            run(schedule=name, chunks=2).metrics["time per step"].value for name in ("shuffled", "interleaved")
        )
        assert one == same
        with pytest.raises(InputError, match='expected: schedule = "interleaved" or "shuffled"'):
            run(schedule="gpipe", chunks=2)


def test_a_job_notes_its_peak_of_memory_its_slowest_rank_and_what_flops_are():
    even, slow = run(), run(set={"program.straggler_slowdown": 2.0, "program.stragglers": 1})
    (told,) = (note for note in even.notes if note.startswith("most memory: "))
    stage = max((0, 1), key=lambda one: even.metrics[f"memory of stage {one}"].value)
    assert f"on stage {stage}, " in told
    assert "weights " in told
    assert "312.0 TFLOP/s, the dense bf16 peak of a100" in " ".join(even.notes)
    (told,) = (note for note in slow.notes if note.startswith("slowest: "))
    assert told.startswith("slowest: rank 7 (")


def test_a_file_says_the_same_as_a_call():
    from simperf import make_scenario
    from simperf import run as run_scenario

    result = run()
    again = run_scenario(make_scenario(result.scenario))
    assert again.metrics["time per step"].value == result.metrics["time per step"].value


def test_every_rank_played_takes_as_long():
    few, every = run(), run(set={"program.exact": "yes"})
    assert few.metrics["time per step"].value == pytest.approx(every.metrics["time per step"].value, rel=1e-9)


@pytest.mark.parametrize(
    ("layout", "options", "words"),
    [
        ({"pp": 3, "tp": 1}, {}, "stage_layers"),
        ({"tp": 3}, {}, "tp = 3 does not divide"),
        ({"cp": 3}, {}, "two chunks"),
        ({"sharding": "zero-2"}, {}, "the size of a bucket"),
        ({}, {"microbatch": 3}, "6 or 12"),
        ({}, {"chunks": 2}, "interleaved"),
        ({}, {"schedule": "2f2b"}, "2f2b"),
        ({"sharding": "zero-3"}, {"schedule": "dualpipe"}, "two copies"),
        ({}, {"stage_layers": (1, 2)}, "make 4"),
        ({}, {"stage_layers": (1, 1, 2)}, "2 numbers"),
        ({}, {"exchange": DataExchange(overlap_weights=True)}, "zero-1"),
        ({}, {"messages": StageMessages(scattered=True), "sequence_parallel": True}, "scatter_messages"),
        ({"dp": 64}, {}, "at most 32"),
        ({"pp": 1}, {"messages": StageMessages(overlap=True)}, "layout.pp above 1"),
        ({}, {"recompute": "full", "recompute_layers": 3}, "at most 2, or 0"),
        ({"ep": 2}, {}, "layout.ep"),
        ({"pp": 1}, {"schedule": "zb-h1"}, r"no bubble(?s:.*)1f1b, or layout\.pp above 1"),
        ({"dp": 1}, {"exchange": DataExchange(bucket=4e6)}, r"do not travel(?s:.*)0, or layout\.dp above 1"),
    ],
)
def test_what_does_not_divide_is_refused_with_what_would(layout, options, words):
    with pytest.raises(InputError, match=words):
        run(layout, **options)


def test_all_that_does_not_divide_is_told_at_once():
    with pytest.raises(InputError) as caught:
        run({"tp": 3, "pp": 3, "dp": 1})
    assert [one.key for one in caught.value.problems].count("layout.tp") > 0
    assert [one.key for one in caught.value.problems].count("layout.pp") == 1


def test_buckets_travel_between_two_copies_of_a_model():
    run({"tp": 1, "dp": 1}, schedule="dualpipe", exchange=DataExchange(bucket=4e6))


def test_a_pipeline_from_both_ends_is_played_and_told():
    """Both stages have both ends of the model: their kernels are as many, and gradients travel without replicas."""
    result = run({"tp": 1, "dp": 1}, schedule="dualpipe")
    metrics = {name: one.value for name, one in result.metrics.items()}
    assert metrics["stage 0: kernels"] == pytest.approx(metrics["stage 1: kernels"], rel=1e-9)
    assert metrics["stage 0: exposed data"] > 0.0
    assert metrics["memory of stage 0"] == pytest.approx(metrics["memory of stage 1"])
    every = run({"tp": 1, "dp": 1}, schedule="dualpipe", set={"program.exact": "yes"})
    assert every.metrics["time per step"].value == pytest.approx(metrics["time per step"], rel=1e-9)


def test_layers_of_each_part_may_be_given():
    uneven = run({"dp": 1}, batch=4, stage_layers=(1, 3))
    stages = [uneven.metrics[f"stage {stage}: kernels"].value for stage in (0, 1)]
    assert stages[1] > 1.5 * stages[0]


def test_recomputation_takes_time():
    times = [run({"dp": 1}, recompute=one).metrics["time per step"].value for one in ("none", "selective", "full")]
    some = run({"dp": 1}, recompute="full", recompute_layers=1).metrics["time per step"].value
    assert times[0] < times[1] < times[2]
    assert times[0] < some < times[2]


def test_one_rank_of_one_stage_takes_the_time_of_the_plain_model():
    """In fp32, where products and attention are nearly all of a step; loss and optimizer are of other kernels."""
    model = Transformer(
        layers=2,
        hidden=1024,
        heads=16,
        vocabulary=1024,
        sequence=1024,
        norm="layer",
        bias=True,
        positions="learned",
        activation="gelu",
    )
    given = {"on": "dgx-a100", "layout": Layout(dp=1), "precision": "fp32", "batch": 4, "set": {"program.steps": 2}}
    plain = train(model, **given)
    divided = train(model, strategy=ModelParallel(microbatch=4, exchange=DataExchange(clip=False)), **given)
    times = [one.metrics["time per step"].value for one in (plain, divided)]
    assert times[1] == pytest.approx(times[0], rel=0.02)


def time_of(result, names):
    """Time of kernels whose names match."""
    kernels = [one for one in result.spans if one.category in ("compute", "memory")]
    return sum(one.end - one.start for one in kernels if re.fullmatch(names, one.name))


@pytest.mark.parametrize("precision", ["fp32", "bf16-master"])
def test_kernels_of_one_rank_are_those_of_the_plain_model(precision):
    """Products, attention, activations, forward norms and additions, but for widths of statistics; others differ."""
    sizes = {"layers": 2, "hidden": 1024, "heads": 16, "vocabulary": 1024, "sequence": 512}
    model = Transformer(**sizes, norm="layer", bias=True, activation="gelu", positions="learned")
    given = {"on": "dgx-a100", "layout": Layout(), "precision": precision, "batch": 4, "set": {"program.steps": 2}}
    plain, divided = train(model, **given), train(model, strategy=ModelParallel(microbatch=4), **given)
    matrices = "(qkv|projection|up|down|head)"
    kinds = {
        r".*\.matmul\.back(\.2)?": matrices + r"\.(input|weight)\.gradient",
        r".*\.attention": "attention",
        r".*\.attention_backward": "attention.gradient",
        r".*\.gelu": "activation",
        r".*\.gelu_backward": "activation.gradient",
        r"(.*\.)?norm\d?\.layernorm": r"norm\d?",
        r"blocks\.\d\.add(\.\d)?": r"residual\d\.add",
    }
    for ours, theirs in kinds.items():
        assert time_of(divided, theirs) == pytest.approx(time_of(plain, ours), rel=1e-3), theirs
        assert time_of(divided, theirs) > 0.0
    # PyTorch's products add biases, whose bytes they read
    assert time_of(divided, matrices) == pytest.approx(time_of(plain, r".*\.linear|head\.matmul"), rel=1e-3)


def test_every_rank_is_played_where_classes_are_not_exact():
    result = run(on="mi300x-8gpu")
    assert any("every rank is simulated: these devices do not communicate by NCCL" in note for note in result.notes)
    with pytest.raises(InputError, match="exact"):
        run(on="mi300x-8gpu", set={"program.exact": "no"})


def test_a_stage_does_not_wait_for_each_launch():
    with pytest.raises(InputError, match="eager"):
        run(set={"execution.mode": "synchronous"})


def test_a_straggler_slows_the_whole_job():
    usual, slow = run(), run(set={"program.stragglers": 1, "program.straggler_slowdown": 2.0})
    assert slow.metrics["time per step"].value > 1.2 * usual.metrics["time per step"].value
