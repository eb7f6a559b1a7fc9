"""Jobs whose tokens go once to each rank of their experts: every rank played takes as long, bytes, refusals."""

from dataclasses import replace
from math import comb

import pytest

import simperf
from simperf.errors import InputError
from simperf.training.strategies import ModelParallel
from simperf.workload.routing import Routing
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.parallel import ExpertSizes

MIXTURE = Transformer(
    layers=2,
    hidden=1024,
    heads=8,
    ffn=512,
    vocabulary=1024,
    sequence=1024,
    experts=32,
    experts_per_token=4,
    expert_ffn=256,
    shared_experts=1,
    dense_layers=1,
)
FABRIC = {"type": "rail", "link": "infiniband-ndr", "switch": "infiniband-ndr-switch"}
TWO = {"kind": "cluster", "server": "dgx-h100", "count": 2, "fabric": FABRIC}
DEEPEP = Routing(exchange="deepep")
UNEVEN = Routing(exchange="deepep", load="power-law-1.2")


def run(layout, routing=DEEPEP, *, on="dgx-h100", model=MIXTURE, recompute="none", **set):
    options = {f"program.{key}": value for key, value in set.items()}
    return simperf.train(
        model,
        on=on,
        layout=layout,
        strategy=ModelParallel(routing=routing, recompute=recompute, sequence_parallel="tp" in layout),
        stack="megatron-core",
        precision="bf16-master",
        batch=32,
        set={"program.steps": 1, **options},
    )


def time(result):
    return result.metrics["time per step"].value


@pytest.mark.parametrize(
    ("layout", "on"),
    [
        ({"dp": 8, "ep": 8}, "dgx-h100"),
        ({"dp": 4, "ep": 4, "pp": 2}, "dgx-h100"),
        ({"dp": 16, "ep": 16, "sharding": "zero-1"}, TWO),
        ({"dp": 8, "ep": 8, "pp": 2}, TWO),
        ({"dp": 4, "tp": 2, "ep": 8, "etp": 1}, "dgx-h100"),
    ],
)
@pytest.mark.parametrize("routing", [DEEPEP, Routing(exchange="deepep", groups=4, groups_per_token=2), UNEVEN])
def test_every_rank_played_takes_as_long(layout, on, routing):
    few, every = run(layout, routing, on=on), run(layout, routing, on=on, exact="yes")
    assert time(few) == pytest.approx(time(every), rel=1e-9)


def test_layers_computed_again_send_their_tokens_again():
    assert time(run({"dp": 8, "ep": 8}, recompute="full")) > time(run({"dp": 8, "ep": 8}))


def test_over_servers_less_is_sent_and_less_of_all_in_fewer_groups():
    wide = Transformer(**{**{key: getattr(MIXTURE, key) for key in MIXTURE.__slots__}, "experts_per_token": 16})
    rows, once, grouped = (
        time(run({"dp": 16, "ep": 16}, routing, on=TWO, model=wide))
        for routing in (Routing(), DEEPEP, Routing(exchange="deepep", groups=16, groups_per_token=8))
    )
    assert grouped < once < rows


def test_multiprocessors_that_the_kernel_holds_bound_what_it_carries():
    few, many = (time(run({"dp": 8, "ep": 8}, Routing(exchange="deepep", exchange_blocks=one))) for one in (4, 20))
    assert many < few


def test_tokens_that_arrive_are_those_of_all_ranks():
    sizes = ExpertSizes(model=MIXTURE, tokens=1024, ep=8, routing=DEEPEP)
    # 4 of 32 experts miss a rank's 4 with (28 27 26 25) / (32 31 30 29)
    missed = 28 * 27 * 26 * 25 / (32 * 31 * 30 * 29)
    assert sizes.arrived == pytest.approx(8 * 1024 * (1.0 - missed))
    assert sizes.rows == 4 * 1024


def test_the_rank_that_gets_most_tokens_holds_all_up():
    layout = {"dp": 16, "ep": 16}
    even, uneven = (time(run(layout, routing, on=TWO)) for routing in (DEEPEP, UNEVEN))
    assert uneven > 1.1 * even
    shares = tuple(1.0 for _ in range(MIXTURE.experts))
    assert time(run(layout, Routing(exchange="deepep", shares=shares), on=TWO)) == pytest.approx(even, rel=1e-9)


def test_tokens_that_arrive_are_fewer_than_rows_and_as_many_as_one_choice_makes():
    of = ExpertSizes(model=MIXTURE, tokens=1024, ep=8, routing=UNEVEN)
    for place in range(8):
        one = of.at(place)
        assert one.rows / MIXTURE.experts_per_token <= one.arrived <= min(one.rows, 8 * 1024) * (1 + 1e-9)
    single = ExpertSizes(model=MIXTURE, tokens=1024, ep=32, routing=UNEVEN)  # an expert each
    assert [single.at(place).arrived for place in range(32)] == pytest.approx(single.of_places)


def test_balanced_loads_that_differ_by_a_row_are_even_and_keep_their_groups():
    model = replace(MIXTURE, experts=160, experts_per_token=6)
    routing = Routing(exchange="deepep", groups=8, groups_per_token=3)
    uneven = ExpertSizes(model=model, tokens=4096, ep=8, routing=routing)
    assert len(set(uneven.loads)) == 2
    assert uneven.arrived == pytest.approx(8 * 4096 * 3 / 8 * (1 - comb(40, 6) / comb(60, 6)))


@pytest.mark.parametrize("shares", [(4.0, *(1.0,) * 27, *(0.0,) * 4), (*(1.0,) * 4, *(0.0,) * 28)])
def test_ranks_whose_experts_get_no_rows_take_part(shares):
    routing = Routing(exchange="deepep", shares=shares)
    few, every = (run({"dp": 8, "ep": 8}, routing, **set) for set in ({}, {"exact": "yes"}))
    assert time(few) == pytest.approx(time(every), rel=1e-9)
    last = ExpertSizes(model=MIXTURE, tokens=1024, ep=8, routing=routing).at(7)
    assert (last.rows, last.arrived) == (0, 0)


def test_ranks_with_equal_rows_may_get_unequal_tokens():
    model = replace(MIXTURE, experts=8, experts_per_token=2)
    routing = Routing(exchange="deepep", shares=(1.0, 1.0, 1.8, 0.2, 1.0, 1.0, 1.0, 1.0))
    sizes = ExpertSizes(model=model, tokens=1024, ep=4, routing=routing)
    assert len(set(sizes.of_places)) == 1
    assert sizes.uneven
    few, every = (run({"dp": 4, "ep": 4}, routing, model=model, **set) for set in ({}, {"exact": "yes"}))
    assert time(few) == pytest.approx(time(every), rel=1e-9)


def test_a_wrong_spread_of_uneven_experts_names_what_divides():
    with pytest.raises(InputError, match="ep = 4 or ep = 8"):
        ExpertSizes(model=MIXTURE, tokens=1024, ep=6, routing=UNEVEN)


def test_several_draws_of_shares_are_refused():
    with pytest.raises(InputError, match="same load in all layers"):
        run({"dp": 8, "ep": 8}, Routing(exchange="deepep", shares=(1.0,) * 32 + (2.0,) * 32))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exchange": "deepep", "load": "power-law-1.2", "groups": 4, "groups_per_token": 2}, "0, or even loads"),
        ({"exchange": "deepep", "load": "power-law-1.2", "draws": 4}, "same load in all layers"),
        ({"exchange": "deepep", "capacity": 1.25}, "without a limit"),
        ({"exchange": "deepep", "exchange_blocks": 3}, "an even number"),
        ({"exchange": "deepep", "groups": 4}, "0 of 4 groups"),
        ({"exchange": "deepep", "groups": 4, "groups_per_token": 4}, "4 of 4 groups"),
        ({"exchange_blocks": 8}, "has no effect"),
        ({"groups": 8, "groups_per_token": 4}, "has no effect"),
        ({"exchange": "ucx"}, "no such exchange"),
    ],
)
def test_routing_that_these_kernels_do_not_have_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        Routing(**options)


@pytest.mark.parametrize(
    ("layout", "routing", "on", "words"),
    [
        ({"dp": 8, "ep": 1}, DEEPEP, "dgx-h100", "every rank has all experts"),
        ({"dp": 4, "tp": 2, "ep": 4, "etp": 2}, DEEPEP, "dgx-h100", "whole experts"),
        ({"dp": 8, "ep": 8}, Routing(exchange="deepep", groups=5, groups_per_token=2), "dgx-h100", "do not divide"),
        ({"dp": 8, "ep": 8}, Routing(exchange="deepep", groups=16, groups_per_token=1), "dgx-h100", "fewer experts"),
        ({"dp": 8, "ep": 8}, DEEPEP, "dgx-a100-80gb", "not known for these devices"),
    ],
)
def test_jobs_that_these_kernels_do_not_carry_are_refused(layout, routing, on, words):
    with pytest.raises(InputError, match=words):
        run(layout, routing, on=on)


def test_a_model_without_experts_has_nothing_to_exchange():
    with pytest.raises(InputError, match="no experts"):
        ExpertSizes(
            model=Transformer(layers=2, hidden=64, heads=4, vocabulary=64, sequence=16), tokens=16, routing=DEEPEP
        )
