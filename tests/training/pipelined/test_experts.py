"""Jobs with experts: every rank played takes as long, the fullest rank gates, and what cannot be spread is refused."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simperf
from simperf.errors import InputError
from simperf.training.strategies import DataExchange
from simperf.workload.routing import Routing
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.parallel import ExpertSizes
from tests.training.pipelined.small import step_time, train

MIXTURE = Transformer(
    layers=2,
    hidden=256,
    heads=8,
    ffn=512,
    vocabulary=1024,
    sequence=256,
    experts=8,
    experts_per_token=2,
    expert_ffn=256,
    shared_experts=1,
    dense_layers=1,
)


run = partial(train, model=MIXTURE)


def waited(result):
    """Time that the rank of a job of one stage waits for other ranks [s]; 0 of several stages, which wait anyway."""
    several = any(name.startswith("stage 1") for name in result.metrics)
    return 0.0 if several else result.metrics["stage 0: bubble"].value


@settings(max_examples=6)
@given(
    sizes=st.sampled_from(
        [
            {"dp": 8, "ep": 4},
            {"dp": 4, "ep": 4, "pp": 2},
            {"dp": 4, "tp": 2, "ep": 8, "etp": 1},
            {"dp": 4, "tp": 2, "ep": 4},
            {"dp": 4, "ep": 2, "pp": 2},
        ]
    ),
    load=st.sampled_from(["balanced", "power-law-1.2", "power-law-1.2/3", "power-law-1.9/1"]),
    capacity=st.sampled_from([0.0, 1.25]),
    bucket=st.sampled_from([0.0, 1e6]),
    sharded=st.booleans(),
)
def test_every_rank_played_takes_as_long(sizes, load, capacity, bucket, sharded):
    layout = {**sizes, "sharding": "zero-1" if sharded else "none"}
    options = {"routing": Routing(load, capacity=capacity), "exchange": DataExchange(bucket=bucket)}
    few, every = run(layout, **options), run(layout, set={"program.exact": "yes"}, **options)
    assert step_time(few) == pytest.approx(step_time(every), rel=1e-9)


def test_experts_over_servers_take_as_long_with_every_rank_played():
    fabric = {"type": "rail", "link": "infiniband-hdr", "switch": "infiniband-hdr-switch"}
    cluster = {"kind": "cluster", "server": "dgx-a100-80gb", "count": 2, "fabric": fabric}
    for routing in (Routing(), Routing("power-law-1.2")):
        few, every = (
            run({"dp": 16, "ep": 8}, on=cluster, batch=32, routing=routing, set=set)
            for set in ({}, {"program.exact": "yes"})
        )
        assert step_time(few) == pytest.approx(step_time(every), rel=1e-9)


def test_the_fullest_rank_gates_and_the_others_wait():
    even, uneven = run({"dp": 8, "ep": 8}), run({"dp": 8, "ep": 8}, routing=Routing("power-law-1.2"))
    assert step_time(uneven) > step_time(even)
    assert even.metrics["stage 0: exposed expert"].value > 0.0
    given = run({"dp": 8, "ep": 8}, routing=Routing(shares=(1.0,) * 8))
    assert step_time(given) == step_time(even)


def test_a_step_with_experts_is_kernels_waits_and_exposed_communication():
    result = run({"dp": 4, "ep": 4, "pp": 2}, routing=Routing("power-law-1.2"))
    metrics = {name: one.value for name, one in result.metrics.items()}
    for stage in (0, 1):
        parts = [
            value for name, value in metrics.items() if name.startswith(f"stage {stage}: ") and "hidden" not in name
        ]
        assert sum(parts) == pytest.approx(step_time(result), rel=1e-6)


def test_optimizer_states_of_experts_are_shared_by_their_copies():
    def memory(**sizes):
        return run({"dp": 8, "sharding": "zero-1", **sizes}).metrics["memory"].value

    experts, each = 8 * 3 * 256 * 256, 2 + 4
    assert memory(ep=1) - memory(ep=8) == pytest.approx(experts * (each + 12 / 8) - experts / 8 * (each + 12), rel=0.2)


@pytest.mark.parametrize(
    ("layout", "options", "words"),
    [
        ({"dp": 8, "ep": 3}, {}, "ep = 2 or ep = 4, of which the number of experts"),
        ({"dp": 16, "ep": 16}, {"on": "dgx-a100-80gb"}, "at most 8|fewer experts"),
        ({"dp": 4, "tp": 2, "ep": 4, "etp": 3}, {}, "etp"),
        ({"dp": 4, "tp": 2, "ep": 2}, {"sequence_parallel": False}, "sequence_parallel"),
        ({"dp": 4, "ep": 4, "pp": 2, "tp": 1, "order": "tp-cp-ep-pp-dp"}, {"words": ""}, "several stages"),
    ],
)
def test_what_cannot_be_spread_is_refused_with_what_would(layout, options, words):
    options = {key: value for key, value in options.items() if key != "words"}
    with pytest.raises(InputError, match=words):
        run(layout, **options)


def test_a_file_says_the_same_as_a_call():
    result = run({"dp": 8, "ep": 4}, routing=Routing(capacity=1.0, padded=True))
    again = simperf.run(simperf.make_scenario(result.scenario))
    assert step_time(again) == step_time(result)


def test_copies_are_of_all_experts():
    with pytest.raises(InputError, match=r"2 ranks that have copies of an expert(?s:.*)expected: 2"):
        run({"dp": 8, "ep": 4, "sharding": "zero-3", "dp_replicate": 4})


def test_experts_that_every_rank_has_are_shared_like_other_weights():
    few, every = (run({"dp": 4, "sharding": "zero-3"}, set=more) for more in (None, {"program.exact": "yes"}))
    assert few.metrics["time per step"].value == pytest.approx(every.metrics["time per step"].value, rel=1e-9)


@pytest.mark.parametrize("slow", [0, 1], ids=["like ranks", "a straggler"])
def test_ranks_whose_parts_a_switch_adds_up_are_one_class(slow):
    """NVSwitches of a DGX H100 add up a part for each rank: these flows count as one, unless ranks differ."""
    set = {"program.stragglers": slow, **({"program.straggler_slowdown": 1.5} if slow else {})}
    layout, options = {"dp": 2, "tp": 4, "ep": 4, "etp": 1}, {"on": "dgx-h100", "batch": 4}
    few = run(layout, set=set, **options)
    every = run(layout, set={**set, "program.exact": "yes"}, **options)
    assert step_time(few) == pytest.approx(step_time(every), rel=1e-9)
    assert any("1 of 8 ranks" in note for note in few.notes) == (not slow)


@settings(max_examples=5)
@given(
    sizes=st.sampled_from([{"dp": 8, "ep": 4}, {"dp": 4, "ep": 4, "pp": 2}, {"dp": 4, "tp": 2, "ep": 4, "etp": 1}]),
    shares=st.lists(st.integers(1, 9), min_size=8, max_size=8),
    recompute=st.sampled_from(["none", "full"]),
)
def test_the_fullest_rank_stands_for_all(sizes, shares, recompute):
    """The same load in every draw takes as long as ranks with rows of their own do, which are classes of their own."""
    shares.sort(reverse=True)  # the first rank, whose times are told, is the fullest one
    each = run(sizes, recompute=recompute, routing=Routing(shares=tuple(map(float, shares))))
    fullest = run(sizes, recompute=recompute, routing=Routing(shares=tuple(map(float, 2 * shares))))
    # products of fewer rows that take longer, by nanoseconds, keep the fullest rank waiting for just as long
    assert step_time(fullest) == pytest.approx(step_time(each) - waited(each), rel=1e-9)
    assert fullest.metrics["memory"].value == each.metrics["memory"].value


def test_draws_are_between_the_best_and_the_worst_of_them():
    layout = {"dp": 8, "ep": 8}
    alone = [step_time(run(layout, batch=64, routing=Routing(f"power-law-1.2/{number}"))) for number in range(4)]
    drawn = run(layout, batch=64, routing=Routing("power-law-1.2", draws=4))
    assert min(alone) < step_time(drawn) < max(alone)
    again = run(layout, batch=64, routing=Routing("power-law-1.2", draws=4))
    other = run(layout, batch=64, routing=Routing("power-law-1.2", draws=4), set={"run.seed": 7})
    assert step_time(again) == step_time(drawn) != step_time(other)
    assert any("4 loads" in note for note in drawn.notes)


def test_rows_of_every_draw_are_conserved():
    for load in Routing("power-law-1.5/2", draws=5).loads(8):
        sizes = ExpertSizes(model=MIXTURE, tokens=256, ep=4, routing=load)
        assert sum(sizes.loads) == 4 * 256 * 2
        assert sum(sizes.of_places) / 4 == sizes.sent


@pytest.mark.parametrize(
    ("routing", "told"), [({"draws": 2}, "power law"), ({"load": "power-law-1.2", "draws": 0}, "1 to 1000")]
)
def test_draws_without_effect_are_refused(routing, told):
    with pytest.raises(InputError, match=told):
        Routing(**routing)


def test_a_draw_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="no load of experts"):
        run({"dp": 8, "ep": 4}, routing=Routing("power-law-1.2/x", draws=2))


@pytest.mark.parametrize(
    ("shares", "told"),
    [((1e308,) * 8, "whose sum is finite"), ((1.0,) * 8 * 1001, "8 to 8000 numbers")],
    ids=["an infinite sum", "too many draws"],
)
def test_shares_without_a_sum_and_too_many_of_them_are_refused(shares, told):
    with pytest.raises(InputError, match=told):
        run({"dp": 8, "ep": 4}, routing=Routing(shares=shares))


@pytest.mark.parametrize(
    ("routing", "key"),
    [
        (Routing(shares=(1.0, 2.0)), "expert_shares"),
        (Routing(capacity=1.5, padded=True), "expert_capacity, pad_experts"),
    ],
)
def test_options_of_experts_are_told_by_their_keys_where_there_are_none(routing, key):
    plain = Transformer(layers=2, hidden=256, heads=8, vocabulary=1024, sequence=128)
    with pytest.raises(InputError) as found:
        ExpertSizes(model=plain, tokens=16, routing=routing)
    assert ", ".join(one.key for one in found.value.problems) == key
