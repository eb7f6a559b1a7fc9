"""Reading ``[expect]`` tables: forms that mean the same, and what is refused."""

import pytest

from simperf.files import TomlFile
from simperf.scenario.expectation import TOLERANCE, read_expectations


def read(table, **options):
    problems = []
    if isinstance(table, dict) and not options:
        table = {"kind": "regression"} | table
    found = read_expectations(table, TomlFile("f", {}, ""), ("expect",), problems, **options)
    return found, [str(problem) for problem in problems]


def test_the_forms():
    found, problems = read(
        {
            "time": "60 ms",
            "metrics.peak memory": {"value": "2 GB", "rtol": 0.01, "kind": "published", "source": "a book"},
            "breakdown.compute": {"min": "1 ms", "max": "2 ms"},
            "utilisation.gpu0": {"min": "90 %"},
            "floor": {"max": "1 s"},
            "regime": "compute-bound",
            "error": "out of memory",
        }
    )
    assert problems == []
    time, memory, compute, used, floor, regime, error = found
    assert (time.key, time.value, time.rtol) == ("time", "60 ms", TOLERANCE)
    assert (memory.value, memory.rtol, memory.source) == ("2 GB", 0.01, "a book")
    assert (compute.low, compute.high, compute.value) == ("1 ms", "2 ms", None)
    assert (used.key, used.low, used.high) == ("utilisation.gpu0", "90 %", None)
    assert (floor.key, floor.high) == ("floor", "1 s")
    assert (regime.text, error.text) == ("compute-bound", "out of memory")


def test_tables_and_dotted_keys_say_the_same():
    flat, _ = read({"metrics.busbw": "1 GB/s", "floor.bandwidth": "1 ms", "compare.a/b": {"max": 0.5}})
    nested, problems = read(
        {"metrics": {"busbw": "1 GB/s"}, "floor": {"bandwidth": "1 ms"}, "compare": {"a/b": {"max": 0.5}}}
    )
    assert problems == []
    assert [(e.key, e.value, e.high) for e in flat] == [(e.key, e.value, e.high) for e in nested]


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"tme": "1 s"}, "did you mean 'time'?"),
        ({"metric.x": "1 s"}, "did you mean 'metrics'?"),
        ({"metrics.": "1 s"}, "unknown expectation"),
        ({"time": "1 GB"}, "a time is expected"),
        ({"time": 5}, "the unit is missing"),
        ({"time": True}, "a time is expected"),
        ({"time": {"valu": "1 s"}}, "did you mean 'value'?"),
        ({"time": {"value": "1 s", "min": "1 s"}}, "either a value, or min and max"),
        ({"time": {"kind": "published", "source": "x"}}, "either a value, or min and max"),
        ({"time": {"value": "1 s", "rtol": "1 %"}}, "a number is expected"),
        ({"time": {"min": "0.2 s", "max": "1e-33 s"}}, "expect.time.max: the expected range is empty"),
        (
            {"metrics.busbw": {"min": "2 GB/s", "max": "1 GB/s"}},
            "expect.metrics.busbw.max: the expected range is empty",
        ),
        ({"metrics.count": {"min": 2, "max": 1}}, "expect.metrics.count.max: the expected range is empty"),
        ({"time": {"value": "1 s", "atol": "-1 s"}}, "expect.time.atol: 0 or more is expected"),
        ({"time": {"value": "1 s", "rtol": 1.5}}, "less than 1"),
        ({"time": {"value": "1 s", "atol": "1 B"}}, "a time is expected"),
        ({"metrics.x": "1 Gb/s"}, "differ by 8"),
        ({"metrics.x": "fast"}, "a quantity with a known unit"),
        ({"metrics.x": {"min": "1 parsec"}}, "a quantity with a known unit"),
        ({"breakdown.computing": "1 s"}, "did you mean 'compute'"),
        ({"regime": "compute"}, "did you mean 'compute-bound'?"),
        ({"regime": 3}, "a text is expected"),
        ({"compare.a/b": "1 s"}, "plain number is expected"),
        ({"time": {"value": "1 s", "kind": "pin"}}, "no kind of expectation"),
        ({"time": {"value": "1 s", "kind": "closed-form"}}, "did you mean 'closed form'?"),
        ({"time": {"value": "1 s", "kind": 3}}, "a text is expected"),
        ({"time": {"value": "1 s", "kind": "closed form", "source": ""}}, "a text is expected"),
        ({"time": {"value": "1 s", "kind": "closed form"}}, "'closed form' needs a source"),
        ({"time": {"value": "1 s", "source": "a book"}}, "a regression has no source"),
        ({"kind": "pin", "time": "1 s", "floor": "1 s"}, "no kind of expectation"),
        ({"kind": "published", "time": "1 s"}, "'published' needs a source"),
        ("60 ms", "a table in { } is expected"),
    ],
)
def test_refused(table, word):
    _, problems = read(table)
    assert len(problems) == 1
    assert word in problems[0]


def test_a_value_that_does_not_say_of_what_kind_it_is_is_refused():
    problems = []
    toml = TomlFile("f.toml", {}, "")
    read_expectations({"time": "1 s", "regime": "idle"}, toml, ("expect",), problems)
    assert [(one.file, one.key) for one in problems] == [("f.toml", "expect.time"), ("f.toml", "expect.regime")]
    for one in problems:
        assert "does not say of what kind it is" in str(one)
        assert 'kind = "regression", kind = "closed form" or kind = "published"' in str(one)


def test_kind_and_source_of_the_value_come_before_those_of_the_table_and_of_the_scenario():
    table = {
        "kind": "closed form",
        "time": {"value": "1 s", "source": "n t"},
        "floor": {"value": "1 s", "kind": "published", "source": "a paper"},
        "metrics.x": {"value": "1 B", "kind": "regression"},
        "metrics.y": "1 B",
    }
    found, problems = read(table, source="a book")
    assert problems == []
    closed, regression = "closed form", "regression"
    wanted = [(closed, "n t"), ("published", "a paper"), (regression, ""), (closed, "a book")]
    assert [(one.kind, one.source) for one in found] == wanted
    found, _ = read(table | {"source": "2 n"}, source="a book")
    assert found[-1].source == "2 n"


def test_what_was_measured_has_no_kind():
    found, problems = read({"time": "1 s"}, measured=True)
    assert not problems
    assert found[0].kind == ""
    assert "of no other kind" in read({"time": {"value": "1 s", "kind": "published"}}, measured=True)[1][0]
    assert "unknown expectation" in read({"time": "1 s", "kind": "published"}, measured=True)[1][0]
