"""Intervals of few points, and of boards that nobody measured: counted over invented ones whose spread is known."""

import math

import numpy as np
import pytest

from simperf.calibrate.fit import Data, FitConstant, Model, fit
from simperf.calibrate.uncertainty.variance import ErrorSpread, gpu_spreads, half_width, with_pooled_scatter

pytest.importorskip("scipy")

REPETITIONS = 200
LINE = Model(
    "kernel.x",
    "a rate and a fixed time",
    (FitConstant("a", 1.0), FitConstant("b", 1.0, low=1e-3)),
    lambda v, c: v["a"] + v["b"] * c["n"],
    columns=("n",),
)
SIZES = np.geomspace(1.0, 300.0, 8)


def invented(rng, *, boards, apart, scatter, points):
    """Logarithms of how a sort of kernel lies on each board: all of a board by as much, each reading by its own."""
    return {f"board {i}": apart * rng.standard_normal() + scatter * rng.standard_normal(points) for i in range(boards)}


def left_out(boards, *, without=()):
    """What each of these boards is missed by when the mean of the others predicts it."""
    known = {name: row for name, row in boards.items() if name not in without}
    found = {}
    for name, row in known.items():
        others = [one.mean() for each, one in known.items() if each != name]
        found[name] = [row - np.mean(others)]
    return found


def sorts(rng, *, boards, points):
    """Five sorts of kernels, as the published tables have them: apart by 5 to 20 %, scattered by 1 to 20 %."""
    return [
        invented(rng, boards=boards, apart=0.1 * math.exp(0.4 * rng.standard_normal()), scatter=each, points=points)
        for each in (0.01, 0.05, 0.1, 0.15, 0.2)
    ]


@pytest.mark.parametrize("count", [4, 6])
def test_nine_of_ten_readings_of_a_board_that_nobody_measured_are_held(count):
    rng = np.random.default_rng(count)
    held, before = [], []
    for _ in range(REPETITIONS):
        every = sorts(rng, boards=count, points=12)
        found = gpu_spreads({str(i): left_out(boards, without=("board 0",)) for i, boards in enumerate(every)})
        for i, boards in enumerate(every):
            others = np.concatenate([row for name, row in boards.items() if name != "board 0"])
            off = np.abs(boards["board 0"] - others.mean())
            held += list(off < half_width(found[str(i)]))
            before += list(off < 1.645 * 1.4826 * np.median(np.abs(others - others.mean())))
    assert 0.85 < np.mean(held) < 0.95
    assert np.mean(before) < np.mean(held) - 0.04  # by how the others' points scatter, as if they were one board's


def test_a_sort_alone_gets_students_t_for_its_few_boards():
    rng = np.random.default_rng(3)
    held = []
    for _ in range(REPETITIONS):
        boards = invented(rng, boards=4, apart=0.1, scatter=0.02, points=10)
        found = gpu_spreads({"": left_out(boards, without=("board 0",))})[""]
        others = np.mean([row.mean() for name, row in boards.items() if name != "board 0"])
        held += list(np.abs(boards["board 0"] - others) < half_width(found))
    assert 0.85 < np.mean(held) < 0.95


def test_the_spread_between_boards_is_found_again():
    """Of many boards: the widening by Student's t and by the error of a mean is next to nothing."""
    rng = np.random.default_rng(5)
    found = gpu_spreads({"": left_out(invented(rng, boards=400, apart=0.12, scatter=0.05, points=20))})[""]
    assert found.common == pytest.approx(0.12, rel=0.1)
    assert found.own == pytest.approx(0.05 * math.sqrt(1 - math.pi / 40), rel=0.05)


def test_what_moves_a_median_is_not_counted_twice():
    """Boards that are not apart at all: the whole interval is that of a reading, and of a mean of others."""
    rng = np.random.default_rng(11)
    found = gpu_spreads({"": left_out(invented(rng, boards=500, apart=0.0, scatter=0.1, points=13))})[""]
    assert found.common == pytest.approx(0.1 * math.sqrt(0.5 * math.pi / 13), rel=0.15)
    assert half_width(found) == pytest.approx(0.1645, rel=0.03)


def test_sorts_help_each_other_but_not_beyond_the_boards_that_there_are():
    """A sort whose boards happen to agree is not thought surer than the others; five of three boards are no hundred."""
    apart = np.array([-0.1, 0.02, 0.08])
    tables = {str(i): {str(j): [np.full(5, apart[j])] for j in range(3)} for i in range(5)}
    lucky = {**tables, "lucky": {str(j): [np.full(5, 1e-4 * apart[j])] for j in range(3)}}
    assert gpu_spreads(lucky)["lucky"].common > 10.0 * gpu_spreads({"lucky": lucky["lucky"]})["lucky"].common
    deviation = math.sqrt(2 / 3 * np.mean(apart**2) * 4 / 3)
    student = 1.782  # 95 % quantile for twelve deviations: two of the sort, and ten of all
    assert gpu_spreads(tables)["2"].common == pytest.approx(student / 1.645 * deviation, rel=1e-3)


def test_readings_scatter_as_on_the_boards_that_are_alike():
    rng = np.random.default_rng(6)
    boards = {
        "calm 1": [0.02 * rng.standard_normal(50)],
        "calm 2": [0.02 * rng.standard_normal(50)],
        "held": [0.3 * rng.standard_normal(50)],
    }
    assert gpu_spreads({"": boards}, alike={"calm 1", "calm 2"})[""].own == pytest.approx(0.02, rel=0.2)
    assert gpu_spreads({"": boards}, alike={"held"})[""].own == pytest.approx(0.3, rel=0.2)
    every = math.sqrt((2 * 0.02**2 + 0.3**2) / 3)
    assert gpu_spreads({"": boards}, alike={"unknown"})[""].own == pytest.approx(every, rel=0.2)


def test_an_operation_of_one_reading_has_no_scatter_of_its_own():
    assert gpu_spreads({"": {"a": [np.array([0.1])], "b": [np.array([-0.1])]}})[""].own == 0.0


def test_half_a_width_holds_both_parts():
    assert half_width(ErrorSpread(0.0, 0.1)) == pytest.approx(0.1645)
    assert half_width(ErrorSpread(0.3, 0.4)) == pytest.approx(0.8225)


def halves(rng, *, tables, rare):
    """Fits to eight points each, and readings between them; now and then one is far off."""
    found = []
    for _ in range(tables):
        scatter = 0.04 * math.exp(0.5 * rng.standard_normal())

        def read(n, scatter=scatter):
            off = scatter * rng.standard_normal(len(n))
            off += 5.0 * scatter * rng.standard_normal(len(n)) * (rng.random(len(n)) < rare)
            return Data.table((2.0 + 3.0 * n) * np.exp(off), n=n)

        found.append((fit(LINE, read(SIZES), seed=len(found)), read(1.3 * SIZES)))
    return found


@pytest.mark.parametrize("rare", [0.0, 0.1])
def test_nine_of_ten_readings_that_were_not_fitted_are_held(rare):
    rng = np.random.default_rng(7)
    held, before, alone = [], [], []
    for _ in range(REPETITIONS // 10):
        tables = halves(rng, tables=10, rare=rare)
        every = with_pooled_scatter([one for one, _ in tables])
        for (one, away), told in zip(tables, every, strict=True):
            for fitted, shares in ((told, held), (one, before), (with_pooled_scatter([one])[0], alone)):
                low, high = fitted.interval(away)
                shares += list((low < away.measured) & (away.measured < high))
    assert 0.85 < np.mean(held) < 0.95
    assert 0.85 < np.mean(alone) < 0.96
    assert np.mean(before) < 0.90 - 0.4 * rare


def test_telling_fits_together_moves_no_value_and_no_constants_interval():
    tables = halves(np.random.default_rng(8), tables=5, rare=0.0)
    for (one, away), told in zip(tables, with_pooled_scatter([one for one, _ in tables]), strict=True):
        assert told.constants == one.constants
        assert np.array_equal(told.predict(away), one.predict(away))


def test_of_fits_of_one_sort_none_is_thought_to_have_no_scatter():
    rng = np.random.default_rng(9)
    *tables, lucky = (
        fit(LINE, Data.table((2.0 + 3.0 * SIZES) * np.exp(scatter * rng.standard_normal(8)), n=SIZES))
        for scatter in (0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.01)
    )
    assert with_pooled_scatter([*tables, lucky])[-1].scatter > 1.3 * with_pooled_scatter([lucky])[0].scatter
