"""Fully sharded data parallelism: traffic and memory as in ZeRO's paper, what is hidden, and every rank played."""

from dataclasses import replace

import pytest

from simperf import DataExchange, Layout, ModelParallel, Transformer, train
from simperf.errors import InputError
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.work import StepEnd
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels
from tests.training.pipelined.small import clipped, last_step, op, played, sharded, work

EACH = Pacing(gradients=True, sharded=True, each=True)
EQUAL = StepEnd(gradient=2.0, weight=2.0)
MODEL = Transformer(layers=4, hidden=1024, heads=16, vocabulary=32000, sequence=1024, norm="layer")


def small(microbatches=2, *, blocks=4, stages=1, schedule="1f1b", **options):
    return work(stages, microbatches, schedule, blocks=blocks, nbytes=0.0, **options)


def step(process):
    before, after = last_step(process)
    return after.time - before.time


def test_one_rank_does_what_a_rank_with_all_weights_does():
    one = played("dgx-a100-x4", sharded(small(end=clipped())), pacing=EACH)
    other = played("dgx-a100-x4", small(end=clipped()))
    assert one[0].now == other[0].now


def sent(of, pacing, **options):
    """Bytes that leave the first GPU in a step."""
    m, _ = played("dgx-a100-x4", of, dp=8, pacing=pacing, steps=1, **options)
    return sum(nbytes for name, nbytes in m.simulation.network.moved.items() if name.startswith("n0/gpu0>"))


def test_traffic_is_that_of_an_all_reduce_and_half_as_much_again_with_sharded_weights():
    """Rajbhandari et al., "DataExchange", SC 2020, section 7."""
    of = small(1, end=EQUAL, ends=False)
    copies = sent(of, Pacing())
    for pacing in (Pacing(sharded=True), replace(EACH, weights=True)):  # ZeRO-1, ZeRO-2
        assert sent(of, pacing) == pytest.approx(copies, rel=1e-3)
    assert sent(sharded(of, reshard="always"), EACH) == pytest.approx(1.5 * copies, rel=1e-3)
    assert sent(sharded(of, reshard="never"), replace(EACH, stays=True)) == pytest.approx(copies, rel=1e-3)


def test_weights_that_stay_are_gathered_once_a_step_and_gradients_reduced_once():
    def of(microbatches, **options):
        return sharded(small(microbatches, end=EQUAL, ends=False), **options)

    stay = replace(EACH, stays=True, each=False)
    assert sent(of(4, reshard="never"), stay) == pytest.approx(sent(of(1, reshard="never"), stay))
    assert sent(of(4, reshard="always"), EACH) == pytest.approx(4 * sent(of(1, reshard="always"), EACH))


def test_gathers_ahead_are_hidden():
    def one(prefetch):
        pacing = replace(EACH, prefetch=prefetch)
        return played("dgx-a100-x4", sharded(small(weights=20_000_000, blocks=6)), dp=8, pacing=pacing)[1][0]

    none, first, more = one(0), one(1), one(2)
    assert step(first) < step(none)
    assert step(more) <= step(first)
    exposed = [last_step(each)[1].exposed["dp"] for each in (none, first)]
    assert exposed[1] < exposed[0]


def test_a_step_is_kernels_waits_and_exposed_communication():
    of = sharded(small(stages=2, microbatches=4, end=clipped()))
    _, processes = played("dgx-a100-x4", of, pp=2, dp=4, pacing=replace(EACH, stays=True), copies=2)
    for one in processes:
        before, after = last_step(one)
        parts = [after.kernels - before.kernels, after.waiting - before.waiting, after.slowed - before.slowed]
        parts += [after.exposed[key] - before.exposed[key] for key in after.exposed]
        assert sum(parts) == pytest.approx(step(one), rel=1e-9)
        for key, moving in after.moving.items():
            assert after.exposed[key] <= moving * (1 + 1e-9)


@pytest.mark.parametrize("launch", [0.0, 50e-6])
@pytest.mark.parametrize("copies", [1, 2])
def test_ranks_without_a_pipeline_that_do_alike_wait_for_bytes_alone(copies, launch):
    """A gather behind a reduction on its stream waits for the bytes of that reduction, not for other ranks."""
    of = sharded(small(weights=40_000_000, microbatches=3, end=clipped()))
    _, processes = played("dgx-a100-x4", of, dp=8, copies=copies, pacing=EACH, launch=launch)
    for one in processes:
        before, after = last_step(one)
        assert after.waiting - before.waiting == pytest.approx(0.0, abs=1e-9)
        exposed = sum(after.exposed[key] - before.exposed[key] for key in after.exposed)
        assert exposed > 0.2 * step(one)
        if not launch:  # the host reads the norm back
            kernels = after.kernels - before.kernels + after.slowed - before.slowed
            assert kernels + exposed == pytest.approx(step(one), rel=1e-9)


CASES = [
    {"dp": 8},
    {"dp": 16, "copies": 2},
    {"dp": 4, "copies": 2, "launch": 20e-6},
    {"dp": 4, "pp": 2, "stages": 2},
    {"dp": 4, "pp": 2, "stages": 2, "copies": 2, "schedule": "interleaved", "launch": 20e-6},
    {"dp": 4, "pp": 2, "stages": 2, "schedule": "zb-h1", "reshard": "always"},
    {"dp": 4, "tp": 2, "nbytes": 4e6, "reshard": "never"},
    {"dp": 8, "prefetch": 0, "launch": 50e-6},
    {"dp": 8, "prefetch": 2, "launch": 300e-6},
    {"dp": 8, "speeds": (0.8, *[1.0] * 7)},
    {"dp": 8, "copies": 2, "speeds": (*[1.0] * 5, 0.7, *[1.0] * 2), "launch": 20e-6},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(f"{key}={value}" for key, value in case.items()))
def test_classes_and_closed_layers_give_what_every_rank_gives(case):
    given = dict(case)
    shape = {key: given.pop(key) for key in ("stages", "schedule", "nbytes") if key in given}
    options = {key: given.pop(key) for key in ("reshard",) if key in given}
    pacing = replace(EACH, prefetch=given.pop("prefetch", 1), stays=given.get("pp", 1) > 1, each=given.get("pp", 1) < 2)

    def of():
        return sharded(
            work(
                shape.get("stages", 1),
                4,
                shape.get("schedule", "1f1b"),
                blocks=4,
                **{"nbytes": shape.get("nbytes", 0.0), "end": clipped()},
            ),
            **options,
        )

    few, every = (played("dgx-a100-x4", of(), pacing=pacing, exact=exact, **given) for exact in (False, True))
    assert few[0].now == pytest.approx(every[0].now, rel=1e-9)
    by_rank = {one.rank: one for one in every[1]}
    for one in few[1]:
        for mine, other in zip(one.spent.readings, by_rank[one.rank].spent.readings, strict=True):
            assert (mine.time, mine.kernels, mine.waiting) == pytest.approx(
                (other.time, other.kernels, other.waiting), rel=1e-9, abs=1e-12
            )
            assert mine.exposed == pytest.approx(other.exposed, rel=1e-9, abs=1e-12)
    if "speeds" not in case:
        assert len(few[1]) < len(every[1])


# Jobs -----------------------------------------------------------------------------------


def run(layout=None, *, set=None, batch=16, **options):
    given = Layout(**{"dp": 8, "sharding": "zero-3", **(layout or {})})
    more = {"program.steps": 2, **(set or {})}
    strategy = ModelParallel(**options)
    return train(
        MODEL, on="dgx-a100-x4", layout=given, strategy=strategy, precision="bf16-master", batch=batch, set=more
    )


@pytest.mark.parametrize(
    "layout",
    [{}, {"dp": 16, "dp_replicate": 2}, {"dp": 4, "tp": 2, "pp": 2, "dp_replicate": 2}, {"sharding": "zero-2"}],
)
def test_every_rank_played_takes_as_long(layout):
    options = {"exchange": DataExchange(bucket=20e6)} if layout.get("sharding") == "zero-2" else {}
    few, every = (run(layout, set=more, **options) for more in ({}, {"program.exact": "yes"}))
    assert few.metrics["time per step"].value == pytest.approx(every.metrics["time per step"].value, rel=1e-9)


def test_a_file_says_the_same_as_a_call():
    from simperf import make_scenario
    from simperf import run as run_scenario

    result = run({"dp_replicate": 2}, exchange=DataExchange(reshard="always", prefetch=2, gathered="fp32"))
    again = run_scenario(make_scenario(result.scenario))
    assert again.metrics["time per step"].value == result.metrics["time per step"].value


def test_wider_weights_and_gradients_travel_longer():
    usual = run().metrics
    assert run(exchange=DataExchange(gathered="fp32")).metrics["time per step"].value > usual["time per step"].value
    wide = run(set={"program.gradient_precision": "fp32"}).metrics
    assert wide["time per step"].value > usual["time per step"].value


@pytest.mark.parametrize(
    ("layout", "options", "words"),
    [
        ({}, {"exchange": DataExchange(overlap_weights=True)}, "layer by layer"),
        ({}, {"exchange": DataExchange(bucket=40e6)}, "layer by layer"),
        ({"sharding": "zero-2"}, {}, "the size of a bucket"),
        ({"sharding": "zero-1"}, {"exchange": DataExchange(reshard="never")}, "zero-3"),
        ({"sharding": "none"}, {"exchange": DataExchange(prefetch=2)}, "zero-3"),
    ],
)
def test_what_has_no_effect_is_refused_with_what_would(layout, options, words):
    with pytest.raises(InputError, match=words):
        run(layout, **options)


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="0 or more"):
        DataExchange(prefetch=-1)
    with pytest.raises(InputError, match="always"):
        DataExchange(reshard="sometimes")


# Memory ----------------------------------------------------------------------------------


def memory(sharding, dp=8, *, kernels=None, batch=16, bucket=0.0, **options):
    strategy = ModelParallel(exchange=DataExchange(bucket=bucket, **options))
    own = kernels or LayerKernels()
    return Divided(Dimensions(MODEL, own), Layout(dp=dp, sharding=sharding), strategy, batch).memory()[0]


@pytest.mark.parametrize("ranks", [2, 8])
def test_states_are_those_of_the_paper(ranks):
    """Bytes a weight: 16, 4 + 12 / N, 2 + 14 / N, 16 / N (Rajbhandari et al., figure 1)."""
    wanted = {"none": 16.0, "zero-1": 4 + 12 / ranks, "zero-2": 2 + 14 / ranks, "zero-3": 16 / ranks}
    wide = LayerKernels(gradients="fp32")  # ZeRO-3 keeps weights in fp32: 4 + 4 + 8
    for sharding, nbytes in wanted.items():
        more = {"bucket": 40e6} if sharding == "zero-2" else {}
        end = memory(sharding, ranks, kernels=wide if sharding == "zero-3" else None, **more).moments[-1]
        states = sum(end.held.get(kind, 0.0) for kind in ("weights", "master", "gradients", "optimizer"))
        assert states == pytest.approx(nbytes * MODEL.parameters, rel=0.01), sharding  # the vocabulary is padded


def test_weights_that_are_kept_narrow_have_a_copy_in_fp32():
    """2 + 4 + 8 bytes a weight, and 2 of its gradient; at the update its copy in fp32, beside the narrow one."""
    narrow = LayerKernels(gradients="as-weights")
    end, usual = (memory("zero-3", 8, kernels=narrow, kept=kept).moments[-1] for kept in ("as-products", "fp32"))
    each = MODEL.parameters / 8
    wanted = {"weights": 2, "master": 4, "optimizer": 8, "gradients": 2, "temporaries": 4}
    assert {kind: end.held[kind] for kind in wanted} == pytest.approx(
        {kind: size * each for kind, size in wanted.items()}, rel=0.02
    )
    assert "master" not in usual.held
    with pytest.raises(InputError, match="gathered in fp32"):
        memory("zero-3", kept="as-products", gathered="fp32")


def test_whole_weights_are_those_of_the_root_and_of_the_layer_that_runs():
    block = sum(one.elements for one in MODEL.block_weights("block"))
    root = MODEL.parameters - MODEL.layers * block
    held = memory("zero-3").peak.held
    assert held["unsharded weights"] == pytest.approx(2 * (root + block), rel=0.02)
    stays = memory("zero-3", reshard="never").peak.held
    assert stays["unsharded weights"] == pytest.approx(2 * MODEL.parameters, rel=0.02)


def test_what_the_allocator_has_taken_is_at_least_what_tensors_hold():
    found = memory("zero-3")
    assert found.reserved > found.peak.total
    assert memory("zero-1").reserved == memory("zero-1").peak.total, "no allocator is named"


def test_parts_of_gradients_that_are_reduced_last_are_in_a_pool_of_their_own():
    """Whole gradients up to the last backward pass; a rank's parts, of that stream, are in no other pool."""
    found = memory("zero-3", reduce="last", reshard="never")
    own = dict(found.apart)
    assert own["buckets"] == pytest.approx(own["gradients"] / 8, rel=1e-9)
    assert "buckets" not in dict(memory("zero-3").apart)


def test_one_layer_more_backward_is_held_with_more_prefetching():
    held = [
        max(one.held.get("gathered weights", 0.0) for one in memory("zero-3", prefetch=count).moments)
        for count in (0, 1, 2)
    ]
    assert held[0] < held[1] <= held[2]


def test_a_gather_begins_after_an_event_and_not_after_all_kernels():
    slow = sharded(small(1, blocks=3, time=2e-3, end=StepEnd(update=(op("adam", 1e-3),))))
    one = played("dgx-a100-x4", slow, dp=8, pacing=EACH)[1][0]
    after = last_step(one)[1]
    assert after.exposed["dp"] < 0.5 * after.moving["dp"]
