"""`simperf.scenario.checking`: results held against what a scenario expects, and against what others measured."""

import pytest

import simperf
from simperf.errors import InputError
from simperf.scenario.checking import WordCheck, check_comparison, check_expectations, check_measurements

ASYNC = {
    "machine": {"use": "book-4gpu"},
    "program": {"use": "async-chain", "n": 100, "t1": "1 us", "t2": "20 us", "t3": "10 us"},
}


def held(check=check_expectations, **tables):
    scenario = simperf.make_scenario({**ASYNC, **tables})
    return check(scenario, simperf.run(scenario))


def test_a_time_within_its_tolerance_is_as_expected_and_beside_it_is_not():
    time = simperf.run(simperf.make_scenario(ASYNC)).time
    for value, ok in ((time, True), (time * 1.001, False)):
        (found,) = held(expect={"time": {"value": f"{value} s", "rtol": 1e-6}})
        assert found.ok is ok
    (found,) = held(expect={"time": {"min": f"{0.9 * time} s", "max": f"{0.95 * time} s"}})
    assert not found.ok


def test_a_regime_is_a_word():
    (found,) = held(expect={"regime": "compute-bound"})
    assert isinstance(found, WordCheck)
    assert found.ok
    assert not WordCheck("regime", 0.5, "1", found="memory-bound", wanted="compute").ok


def test_all_names_that_the_result_does_not_have_are_told_at_once():
    with pytest.raises(InputError) as caught:
        held(expect={"metrics.speed": "1 1/s", "metrics.colour": "1 1/s"})
    assert len(caught.value.problems) == 2


def test_measurements_are_held_apart_from_expectations():
    tables = {"expect": {"time": {"min": "0 s"}}, "measured": {"time": {"value": "1 s", "source": "a table"}}}
    (expected,) = held(**tables)
    (measured,) = held(check_measurements, **tables)
    assert expected.ok
    assert not measured.ok


def test_times_of_variants_are_compared_by_their_names():
    compare = [{"name": "short", "set": {"program.n": 50}}, {"name": "long", "set": {"program.n": 200}}]
    for low, ok in ((3.5, True), (4.5, False)):
        expect = {"compare": {"long/short": {"min": low}}}
        scenario = simperf.make_scenario({**ASYNC, "compare": compare, "expect": expect})
        results = {}
        for variant in compare:
            one = {**ASYNC, "program": {**ASYNC["program"], "n": variant["set"]["program.n"]}}
            results[variant["name"]] = simperf.run(simperf.make_scenario(one))
        (found,) = check_comparison(scenario, results)
        assert found.ok is ok
