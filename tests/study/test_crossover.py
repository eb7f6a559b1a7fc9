"""Where the limit changes: equal to the analytic crossover."""

import pytest

from simperf import make_scenario
from simperf.errors import InputError
from simperf.study.crossover import flips
from simperf.study.limits import limits

CHAIN = {"program": {"use": "async-chain", "n": 50, "t2": "20 us", "t3": "0 s"}}


@pytest.mark.parametrize("by", ["resource", "regime"])
@pytest.mark.parametrize("end", ["100 us", "100 us:5:log"])
def test_the_frontend_limits_from_where_launching_takes_as_long_as_the_kernel(by, end):
    # T = n max(t1, t2): the crossover is at t1 = t2
    (found,) = flips(make_scenario(CHAIN), f"program.t1=1..{end}", by=by, cache=False)
    assert found.value == pytest.approx(20.0, rel=1e-5)
    assert found.width <= 1e-6 * 20.1
    labels = {"resource": ("program.t2", "program.t1"), "regime": ("compute-bound", "overhead-bound")}[by]
    assert (found.before, found.after) == labels
    assert "program.t1 = 20" in str(found)


def test_a_whole_number_flips_at_a_whole_number():
    data = {"program": {"use": "async-chain", "n": 100, "t1": "10 us", "t2": "1 us", "t3": "500 us"}}
    # T = n t1 + t2 + t3: from n t1 > t3, n > 50, launching limits
    (found,) = flips(make_scenario(data), "program.n=1..200", cache=False)
    assert found.value in (50, 51)
    assert (found.before, found.after) == ("program.t3", "program.t1")


def test_no_flip_where_the_same_limits_all_over():
    assert flips(make_scenario(CHAIN), "program.t1=1..10 us", cache=False) == []


def test_what_limits_at_the_ends_is_what_limits_says():
    (found,) = flips(make_scenario(CHAIN), "program.t1=1..100 us", cache=False)
    for value, name in (("5 us", found.before), ("60 us", found.after)):
        data = {"program": {**CHAIN["program"], "t1": value}}
        assert limits(make_scenario(data), cache=False).limiting.resource.name == name


@pytest.mark.parametrize(
    ("vary", "options", "words"),
    [
        ("program.t1=1 us,2 us", {}, "a range is expected"),
        ("program.tt=1..2 us", {}, "no parameter"),
        ("program.t1=1..2 us", {"by": "moon"}, "no such answer"),
        ("program.t1=1..2 us", {"scan": 1}, "2 values or more"),
    ],
)
def test_what_cannot_be_asked(vary, options, words):
    with pytest.raises(InputError, match=words):
        flips(make_scenario(CHAIN), vary, cache=False, **options)
