"""Screening and variance shares, on sums whose answer is known."""

import pytest

from simperf import make_scenario
from simperf.errors import InputError, SimperfError
from simperf.study.sensitivity import sensitivity

pytest.importorskip("SALib")
#: T = n (t1 + t2 + t3) + t3 when every operation is waited for, and the last one once more
SUM = {"execution": {"mode": "synchronous"}, "program": {"use": "async-chain", "n": 4}}
RANGES = ["program.t1=1..2 us", "program.t2=1..10 us", "program.t3=1..4 us"]


def test_morris_on_a_sum_gives_each_range_and_no_spread():
    found = sensitivity(make_scenario(SUM), RANGES, method="morris", samples=6, cache=False)
    assert [one.key for one in found.influences] == ["program.t2", "program.t3", "program.t1"]
    assert [one.total for one in found.influences] == pytest.approx([4 * 9e-6, 5 * 3e-6, 4 * 1e-6], rel=1e-6)
    assert all(one.alone < 1e-9 for one in found.influences)
    assert found.runs == 6 * 4
    assert "<table>" in found._repr_html_()


def test_sobol_on_a_sum_gives_the_shares_of_the_variance():
    found = sensitivity(make_scenario(SUM), RANGES, method="sobol", samples=128, cache=False)
    # variance of a uniform range goes with its square: (4 * 9)^2, (5 * 3)^2, (4 * 1)^2
    totals = {one.key: one.total for one in found.influences}
    assert totals["program.t2"] == pytest.approx(1296 / 1537, abs=0.12)
    assert totals["program.t3"] == pytest.approx(225 / 1537, abs=0.06)
    assert totals["program.t1"] == pytest.approx(16 / 1537, abs=0.03)


def test_another_number_may_be_looked_at():
    found = sensitivity(make_scenario(SUM), RANGES, samples=3, metric="operations per second", cache=False)
    assert found.unit == "1/s"


@pytest.mark.parametrize(
    ("vary", "options", "words"),
    [
        (["program.t1=1..2 us"], {}, "two ranges or more"),
        (["program.t1=1..2 us", "program.n=1,2"], {}, "a range is expected"),
        (RANGES, {"method": "sobol", "samples": 12}, "power of 2"),
        (RANGES, {"method": "moris"}, "no such method"),
        (RANGES, {"metric": "beauty", "samples": 2}, "no such metric"),
    ],
)
def test_what_cannot_be_asked(vary, options, words):
    with pytest.raises(InputError, match=words):
        sensitivity(make_scenario(SUM), vary, cache=False, **options)


def test_points_that_cannot_be_run_are_said():
    data = {"program": {"use": "streams", "n": 4}}
    with pytest.raises(SimperfError, match="cannot be run"):
        sensitivity(make_scenario(data), ["program.demand=0.5..1.5", "program.t2=1..2 us"], samples=4, cache=False)
