"""Ranking: by what is asked for, never by the time of different amounts of work, with ties shown as ties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.analysis.ranking import Entrant, common_answer, rank, rank_results, same
from simperf.analysis.verdict import verdict
from simperf.answer import Answer
from simperf.results import Metric, Result

RATE = Answer("samples per second", "higher")


def trained(name, time, samples, *, answer=RATE, **more):
    rate = {"samples per second": Metric(samples / time, "1/s")}
    return Result(name, time, metrics=rate, work={"samples": Metric(samples, "1")}, answer=answer, **more)


def test_a_rate_ranks_what_takes_as_long_for_more_work():
    one, eight = trained("one GPU", 1.0, 96), trained("eight GPUs", 1.1, 768)
    found = rank_results([one, eight])
    assert found.ranks == (2, 1)
    assert found.headline == "Highest samples per second: eight GPUs, 698.2 /s"
    assert found.ratio(0) == pytest.approx(96 / (768 / 1.1))
    assert str(verdict(eight, one)) == "0.138x the samples per second"


def test_times_of_different_amounts_of_work_are_not_ranked():
    found = rank_results([trained("one", 1.0, 96, answer=None), trained("eight", 1.1, 768, answer=None)])
    assert found.ranks == (None, None)
    assert found.best == ()
    assert "samples: 96 to 768" in found.refusal
    assert 'answer = { metric = "samples per second" }' in found.refusal
    asked = Answer("time", "lower")
    assert rank_results([trained("one", 1.0, 96, answer=asked), trained("eight", 1.1, 768, answer=asked)]).refusal


def test_times_of_the_same_work_are_ranked_and_what_does_not_say_joins():
    found = rank_results([trained("slow", 2.0, 96, answer=None), trained("fast", 1.0, 96, answer=None)])
    assert found.headline == "Fastest: fast, 1.000 s"
    assert found.ratio(0) == 2.0
    assert rank_results([Result("old", 2.0), trained("new", 1.0, 96, answer=None)]).best == (1,)


def test_equal_to_rounding_is_a_tie():
    found = rank_results([Result("ring", 0.3), Result("bidirectional-ring", 0.1 + 0.2), Result("tree", 0.4)])
    assert found.best == (0, 1)
    assert found.headline == "Fastest: ring = bidirectional-ring, 300.0 ms"
    assert found.ranks == (1, 1, 3)
    assert not found.by_intervals
    many = rank_results([Result(str(number), 1.0) for number in range(9)])
    assert many.headline == "Fastest: 0 = 1 = 2 = 6 others, 1.000 s"


def test_intervals_that_overlap_are_a_tie():
    ends = {"time": (0.9, 1.2)}, {"time": (1.1, 1.4)}, {"time": (1.3, 1.6)}
    results = [Result(str(number), 1.0 + 0.2 * number, intervals=each) for number, each in enumerate(ends)]
    found = rank_results(results)
    assert found.ranks == (1, 1, 2)
    assert found.headline == "Fastest: 0 ~ 1, 1.000 s; their intervals overlap"
    assert str(verdict(results[0], results[1])) == "not distinguishable"


def test_intervals_of_the_answer_count_not_those_of_the_time():
    def made(name, time, samples):
        rate = samples / time
        ends = {"time": (0.5 * time, 2 * time), "samples per second": (0.99 * rate, 1.01 * rate)}
        return trained(name, time, samples, intervals=ends)

    assert rank_results([made("a", 1.0, 100), made("b", 1.0, 110)]).best == (1,)


def test_scenarios_that_ask_for_different_numbers_have_no_winner():
    found = rank_results([trained("a", 1.0, 96), trained("b", 1.0, 96, answer=Answer("cost", "lower"))])
    assert "ask for different numbers: samples per second (higher is better); cost (lower is better)" in found.refusal
    assert "which 'old' does not have" in rank_results([trained("a", 1.0, 96), Result("old", 1.0)]).refusal
    assert common_answer([None, None]) == (Answer(), "")


def test_what_lacks_its_answer_is_left_out_where_others_have_it():
    lacking = Result("alone", 0.5, answer=RATE)
    found = rank_results([lacking, trained("a", 1.0, 96), trained("b", 1.0, 48)])
    assert found.ranks == (None, 1, 2)
    assert found.ratio(0) is None
    assert "which 'alone' does not have" in rank_results([lacking, lacking]).refusal


def test_nothing_to_rank():
    assert rank_results([]).headline == ""
    none = rank([Entrant("failed", None), Entrant("odd", math.nan)], Answer(), unit="s")
    assert (none.ranks, none.headline, none.ratio(0)) == ((None, None), "", None)
    zero = rank([Entrant("a", 0.0), Entrant("b", 1.0)], Answer(), unit="s")
    assert (zero.ratio(0), zero.ratio(1)) == (1.0, None)


NUMBERS = st.floats(0.01, 100.0)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=12), st.sampled_from(["higher", "lower"]))
def test_a_rank_counts_what_is_better_beyond_doubt(rows, better):
    entrants = [Entrant(str(i), value, (value - down, value + up)) for i, (value, down, up) in enumerate(rows)]
    found = rank(entrants, Answer("x", better), unit="1")

    def beats(one, other):
        low, high = (one, other) if better == "lower" else (other, one)
        return low.interval[1] < high.interval[0] and not same(low.interval[1], high.interval[0])

    expected = tuple(1 + sum(beats(other, one) for other in entrants) for one in entrants)
    assert found.ranks == expected
    assert found.best
    values = [entrants[place].value for place in found.best]
    assert entrants[found.reference].value == (max if better == "higher" else min)(values)
