"""Results held against expectations: tolerances, ranges, words, ratios, and names that are not there."""

import pytest

from simperf.engine.recorder import Span
from simperf.errors import DeviceMemoryError, InputError
from simperf.results import Metric, Result
from simperf.scenario import make_scenario
from simperf.scenario.checking import check_comparison, check_error, check_expectations

SPANS = (Span("gpu0/stream0", "k", 0.0, 0.06, "compute"),)
RESULT = Result("r", 0.06, floors={"bandwidth": 0.05}, metrics={"busbw": Metric(1e9, "B/s")}, spans=SPANS)


def scenario(expect, **tables):
    return make_scenario({"program": {"use": "async-chain"}, "expect": {"kind": "regression"} | expect, **tables})


def verdicts(expect):
    return [check.ok for check in check_expectations(scenario(expect), RESULT)]


@pytest.mark.parametrize(
    ("expect", "ok"),
    [
        ({"time": "60 ms"}, True),
        ({"time": "60.0001 ms"}, False),
        ({"time": {"value": "60.0001 ms", "rtol": 1e-5}}, True),
        ({"time": {"value": "61 ms", "atol": "2 ms"}}, True),
        ({"time": {"value": "63 ms", "atol": "2 ms"}}, False),
        ({"time": {"min": "60 ms", "max": "60 ms"}}, True),
        ({"time": {"min": "61 ms"}}, False),
        ({"time": {"max": "59 ms"}}, False),
        ({"metrics.busbw": "8 Gbit/s"}, True),
        ({"metrics.busbw": "1 Gbit/s"}, False),
        ({"breakdown.compute": "60 ms"}, True),
        ({"breakdown.idle": "0 s"}, True),
        ({"floor.bandwidth": "50 ms"}, True),
        ({"floor": "50 ms"}, True),
        ({"regime": "compute-bound"}, True),
        ({"regime": "memory-bound"}, False),
        ({"error": "out of memory"}, False),
    ],
)
def test_verdicts(expect, ok):
    assert verdicts(expect) == [ok]


def test_a_miss_says_both_numbers():
    (miss,) = check_expectations(scenario({"time": "80 ms"}), RESULT)
    assert "60.00 ms" in str(miss)
    assert "80.00 ms" in str(miss)
    (word,) = check_expectations(scenario({"regime": "memory-bound"}), RESULT)
    assert str(word) == "regime is not as expected: compute-bound, expected memory-bound"


def test_numbers_that_are_not_there_are_bad_input_all_at_once():
    with pytest.raises(InputError) as caught:
        check_expectations(scenario({"metrics.busbv": "1 GB/s", "metrics.busbw": "1 s", "floor.x": "1 s"}), RESULT)
    first, second, third = caught.value.problems
    assert "did you mean 'metrics.busbw'" in first.message
    assert "a bandwidth is expected" in second.message
    assert third.key == "expect.floor.x"


def test_an_error_may_be_what_is_expected():
    wanted = scenario({"error": "out of memory"})
    assert next(one.text for one in wanted.expectations if one.key == "error") == "out of memory"
    assert [c.ok for c in check_error(wanted, DeviceMemoryError("gpu0 is out of memory"))] == [True]
    assert [c.ok for c in check_error(wanted, DeviceMemoryError("gpu0 is on fire"))] == [False]
    assert check_error(scenario({}), DeviceMemoryError("gpu0 is out of memory")) == []


def test_ratios_of_variants():
    names = {"a": Result("a", 1.0), "b/c": Result("b/c", 4.0)}
    compare = [{"name": name} for name in names]
    table = {"compare": {"a/b/c": {"max": 0.3}, "b/c / a": {"value": 4.0}, "a / a": {"max": 0.5}}}
    found = check_comparison(scenario(table, compare=compare), names)
    assert [(check.value, check.ok) for check in found] == [(0.25, True), (4.0, True), (1.0, False)]
    with pytest.raises(InputError, match=r"'d' is no variant that ran"):
        check_comparison(scenario({"compare": {"a/d": {"max": 1}}}, compare=compare), names)
    assert check_expectations(scenario(table, compare=compare), RESULT) == [], "ratios are no matter of one run"
