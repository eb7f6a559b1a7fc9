"""Factors of a lattice: limits, residuals of shapes that are left out, and the spread that follows from them."""

import math

import numpy as np
import pytest

from simperf.accuracy.fits.lattice import fit_lattice, fit_spread
from simperf.accuracy.lattice_profile import MeasuredCalls, lattice_models
from simperf.cost import Roofline
from simperf.cost.lattice import FACTORS, NODES, corrected, node_weights, side_weights, spread_names
from simperf.cost.lattice_draws import ALIKE
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.workload.kinds import matmul

H100 = Catalog.load().gpu("h100-sxm5-80gb")


def shapes(count, seed=1, kind="moe"):
    rng = np.random.default_rng(seed)
    return np.exp2(np.array([rng.uniform(axis[0], axis[-1], count) for axis in NODES[kind]]).T)


def test_a_shape_that_is_left_out_is_missed_by_what_its_leverage_says():
    sizes, rng = shapes(120), np.random.default_rng(2)
    ratio = np.exp(rng.normal(0.0, 0.05, 120))  # within what counts in full
    fit = fit_lattice(sizes, ratio, kind="moe")
    for one in (0, 50, 119):
        others = np.arange(120) != one
        without = fit_lattice(sizes[others], ratio[others], kind="moe")
        missed = math.log(ratio[one] / corrected(node_weights(sizes[[one]], "moe"), without.factors, "moe")[0])
        assert fit.away[one] == pytest.approx(missed, abs=0.01)


@pytest.mark.parametrize("tails", [3, 30])
def test_intervals_hold_what_they_claim_of_other_shapes(tails):
    rng, sizes = np.random.default_rng(3), shapes(1200)
    true = 0.02 + 0.02 * np.log2(sizes[:, 0]) / 15.0
    ratio = np.exp(0.2 * np.sin(np.log2(sizes[:, 1])) + true * rng.standard_t(tails, 1200))
    half = np.arange(1200) % 2 == 0
    fit = fit_lattice(sizes[half], ratio[half], kind="moe")
    spread = fit_spread(sizes[half], fit.away, np.ones(half.sum()), kind="moe")
    sides = side_weights(np.log2(sizes[:, 0]), NODES["moe"][0])
    width = 1.645 * sides @ np.array([spread[name] for name in spread_names("moe")])
    away = np.abs(np.log(ratio / corrected(node_weights(sizes, "moe"), fit.factors, "moe")))
    assert 0.86 < np.mean((away <= width)[~half]) < 0.95


def test_few_shapes_give_a_wide_spread():
    sizes, rng = shapes(1000), np.random.default_rng(4)
    away = rng.normal(0.0, 0.1, 1000)
    many = fit_spread(sizes, away, np.ones(1000), kind="moe")
    few = np.mean(
        [fit_spread(sizes[i : i + 8], away[i : i + 8], np.ones(8), kind="moe")["spread-3"] for i in range(90)]
    )
    assert many["spread-3"] == pytest.approx(0.1, rel=0.2)
    assert few > 1.05 * many["spread-3"], "the largest of eight"


def test_what_shapes_of_one_first_size_share_is_found():
    rng, sizes = np.random.default_rng(5), shapes(900)
    sizes[:, 0] = 2.0 ** (np.arange(900) % 15)
    shared = rng.standard_normal(15)[np.arange(900) % 15]
    for part in (0.0, 0.5):
        away = 0.1 * (math.sqrt(part) * shared + math.sqrt(1 - part) * rng.standard_normal(900))
        found = fit_spread(sizes, away, np.ones(900), kind="moe")[ALIKE]
        assert found == pytest.approx(part, abs=0.05 if part == 0.0 else 0.25)


def test_no_factor_goes_beyond_what_the_device_allows_nor_beyond_all_measure():
    sizes = shapes(400)
    fast = fit_lattice(sizes, np.full(400, 0.2), least=np.full(400, 0.7), kind="moe")
    found = corrected(node_weights(sizes, "moe"), fast.factors, "moe")
    assert found.min() > 0.699
    assert fast.held
    slow = fit_lattice(sizes, np.full(400, 1e3), kind="moe")
    assert max(slow.factors.values()) == pytest.approx(FACTORS[1])
    assert not fit_lattice(sizes, np.full(400, 0.9), least=np.full(400, 0.7), kind="moe").held


def table(factor):
    ops = [(matmul(m, n, k=1024, dtype="bf16"),) for m in (16, 512, 2048, 8192) for n in (512, 1024, 4096, 8192)]
    measured = np.array([factor * Roofline(H100).cost(op).time for (op,) in ops])
    return MeasuredCalls(H100, "kernel.gemm-bf16", "products", ops, measured, np.ones(len(ops), dtype=bool), "made")


def test_a_table_of_another_unit_is_refused_and_slow_shapes_are_told():
    with pytest.raises(InputError, match=r"h100-sxm5-80gb: kernel.gemm-bf16: the median time .*1e\+03 times"):
        lattice_models([table(1e3)])
    with pytest.raises(InputError, match="the median time of these kernels is too far"):
        lattice_models([table(1e-3)])
    (model,) = lattice_models([table(1.2)]).values()
    assert model.note == ""
    (model,) = lattice_models([table(4.0)]).values()
    assert "measured shapes take 3 to " in model.note
    (model,) = lattice_models([table(0.3)]).values()
    assert "held at the limit that the device's peak sets" in model.note
