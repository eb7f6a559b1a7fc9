"""Intervals, verdicts, and how likely one result beats another."""

import numpy as np
import pytest

from simperf.analysis.chance import beats, distinguishable, interval
from simperf.analysis.verdict import verdict
from simperf.engine.recorder import Span
from simperf.errors import InputError
from simperf.results import Metric, Result


def drawn(name, values):
    values = tuple(map(float, values))
    return Result(name, float(np.median(values)), draws={"time": values}, intervals={"time": interval(values)})


def test_an_interval_holds_ninety_per_cent():
    values = np.random.default_rng(0).normal(10, 1, 20_000)
    low, high = interval(values)
    assert (low, high) == pytest.approx((10 - 1.645, 10 + 1.645), abs=0.05)
    assert np.mean((values >= low) & (values <= high)) == pytest.approx(0.9, abs=0.001)


def test_draws_are_paired_so_that_what_both_have_in_common_does_not_blur():
    common = np.random.default_rng(1).normal(10, 2, 400)
    one, two = drawn("one", common), drawn("two", common + 0.1)
    assert beats(one, two).probability == 1.0
    assert beats(two, one).probability == 0.0
    assert distinguishable(one, two) is False
    # of unequal numbers nothing is known to be common
    three = drawn("three", common[:300] + 0.1)
    assert 0.45 < beats(one, three).probability < 0.6
    assert beats(one, three).pairs == 400 * 300


def test_the_chance_of_independent_normals_is_known():
    rng = np.random.default_rng(2)
    one, two = drawn("one", rng.normal(10, 1, 4000)), drawn("two", rng.normal(11, 1, 4000))
    # P(A < B) = Phi(1 / sqrt 2)
    assert beats(one, two).probability == pytest.approx(0.7602, abs=0.02)
    assert beats(one, two).probability + beats(two, one).probability == pytest.approx(1.0)


def test_a_rate_is_better_when_it_is_higher():
    one, two = (Result(n, 1.0, metrics={"rate": Metric(v, "1/s")}) for n, v in (("a", 5.0), ("b", 4.0)))
    assert beats(one, two, metric="rate").probability == 1.0
    assert beats(one, two).probability == 0.5
    with pytest.raises(InputError, match="no metric"):
        beats(one, two, metric="cost")


def test_intervals_that_lie_apart():
    one, two = drawn("one", range(100)), drawn("two", range(200, 300))
    assert distinguishable(one, two) is True
    assert distinguishable(one, Result("three", 1.0)) is None


def test_a_verdict_names_the_category_and_the_resource():
    fast = Result("fast", 2.0, spans=(Span("gpu0/stream0", "k", 0.0, 2.0, "compute"),))
    slow = Result("slow", 5.0, spans=(*fast.spans, Span("gpu0/to gpu1", "send", 2.0, 5.0, "communication")))
    found = verdict(fast, slow)
    assert (found.ratio, found.difference, found.category, found.loss) == (2.5, 3.0, "communication", 3.0)
    assert "2.50x slower; +3.000 s: communication +3.000 s" in str(found)
    assert str(verdict(fast, fast)) == "the same"
    assert "not distinguishable" in str(verdict(drawn("a", range(50)), drawn("b", range(1, 51))))


def test_a_verdict_adds_up_to_the_difference_and_explains_none_below_1_percent():
    def busy(name, compute, copy):
        spans = (
            Span("gpu0/stream0", "k", 0.0, compute, "compute"),
            Span("gpu0/to gpu1", "send", compute, compute + copy, "copy"),
        )
        return Result(name, compute + copy, spans=spans)

    found = verdict(busy("a", 8.0, 2.0), busy("b", 3.0, 9.0))
    assert (found.slower, found.parts) == (pytest.approx(2.0), "copy +7.000 s, compute -5.000 s")
    near = verdict(busy("a", 8.0, 2.0), busy("b", 3.0, 7.05))
    assert (near.category, near.parts) == ("copy", "")
    assert str(near) == "1.01x slower"
