"""Draws about a lattice's factors: their spread, what shapes share, and what a lattice may hold."""

import math
from statistics import correlation, stdev

import numpy as np
import pytest

from simperf.cost import FittedRoofline, Miss, Roofline, Unseen, UnseenRoofline
from simperf.cost.lattice import FACTORS, LATTICE, node_names, spread_at, spread_names
from simperf.cost.lattice_draws import ALIKE, DRAW, drawn_factor
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.hardware.profile import FittedModel
from simperf.workload.kinds import matmul, unary

H100 = Catalog.load().gpu("h100-sxm5-80gb")
FLAT = {LATTICE: 1.0, **dict.fromkeys(node_names(), 1.5), **dict.fromkeys(spread_names(), 0.1), ALIKE: 0.0}
ONE, OTHER = (matmul(1024, 4096, k=k, dtype="bf16") for k in (2048, 4096))


def logs(op, draws=400, **change):
    constants = {**FLAT, **change}
    best = FittedRoofline(H100, {"gemm-bf16": constants}).cost(op).time
    return [
        math.log(FittedRoofline(H100, {"gemm-bf16": {**constants, DRAW: float(draw)}}).cost(op).time / best)
        for draw in range(1, draws + 1)
    ]


def test_draws_have_the_spread_that_the_shape_has_and_the_best_constants_have_none():
    assert stdev(logs(ONE)) == pytest.approx(0.1, rel=0.08)
    assert np.mean(logs(ONE)) == pytest.approx(0.0, abs=0.01)
    steep = {name: 0.02 * number for number, name in enumerate(spread_names())}
    small, large = (stdev(logs(matmul(m, 4096, k=4096, dtype="bf16"), **steep)) for m in (16, 4096))
    assert 3.0 * small < large
    assert spread_at((2**14, 1, 1), steep) == pytest.approx(0.13), "half way between the outer two"


def test_shapes_with_one_first_size_share_a_part_of_their_variance():
    assert abs(correlation(logs(ONE), logs(OTHER))) < 0.12
    assert correlation(logs(ONE, alike=0.5), logs(OTHER, alike=0.5)) == pytest.approx(0.5, abs=0.1)
    away = matmul(512, 4096, k=2048, dtype="bf16")
    assert abs(correlation(logs(ONE, alike=0.5), logs(away, alike=0.5))) < 0.12
    assert logs(ONE, 20, alike=1.0) == pytest.approx(logs(OTHER, 20, alike=1.0))


def test_a_shape_misses_alike_whenever_it_is_drawn():
    assert logs(ONE, 5) == logs(ONE, 5)
    given = {"spread": 0.1, "alike": 0.0, "draw": 3}
    assert drawn_factor((1, 2, 3), about="a", **given) != drawn_factor((1, 2, 3), about="b", **given)


def test_a_lattice_with_spreads_has_draws_and_one_without_has_none():
    numbers = {"points": 1, "error": 0.0, "scatter": 0.0}
    assert FittedModel(fixed=FLAT, **numbers).at(7)[DRAW] == 7.0
    assert DRAW not in FittedModel(fixed=FLAT, **numbers).at(0)
    bare = {key: value for key, value in FLAT.items() if key != ALIKE and not key.startswith("spread")}
    assert DRAW not in FittedModel(fixed=bare, **numbers).at(7)
    assert Catalog.load().part("profile", "kernels-l40s").draws > 100


def test_kernels_without_factors_are_drawn_as_those_of_gpus_without_a_profile():
    drawn = UnseenRoofline(Roofline(H100), Unseen(draw=3, misses={"stream": Miss(0.3, 0.0)}))
    model = FittedRoofline(H100, {"gemm-bf16": FLAT}, unseen=drawn)
    op = unary("relu", 10**7)
    assert model.cost(op) == drawn.cost(op) != Roofline(H100).cost(op)
    assert model.cost(ONE) == FittedRoofline(H100, {"gemm-bf16": FLAT}).cost(ONE)


def test_what_the_catalogue_accounts_for_is_accounted_for_where_it_is_corrected():
    corrected = FittedRoofline(H100, {"gemm-bf16": FLAT})
    assert corrected.accounts(ONE) == Roofline(H100).accounts(ONE) == {"clock"}
    measured = FittedRoofline(H100, {"gemm-bf16": {"rate": 5e14, "overhead": 1e-6}})
    assert measured.accounts(ONE) == frozenset(), "the clock is the one that it was measured at"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node-0-0-0": FACTORS[1] * 1.01}, "gemm-bf16.node-0-0-0: out of range"),
        ({"node-0-0-0": math.nan}, "gemm-bf16.node-0-0-0: out of range"),
        ({"spread-0": -0.1}, "gemm-bf16.spread-0: out of range"),
        ({"spread-0": None}, "gemm-bf16.spread-0: a spread is missing"),
        ({ALIKE: 1.5}, "gemm-bf16.alike: out of range"),
        ({"sprd-0": 0.1}, "gemm-bf16.sprd-0: no node of the lattice, and none of its spreads"),
    ],
)
def test_a_lattice_is_refused_with_a_constant_that_has_no_meaning(change, message):
    constants = {key: value for key, value in {**FLAT, **change}.items() if value is not None}
    with pytest.raises(InputError, match=message):
        FittedRoofline(H100, {"gemm-bf16": constants})
