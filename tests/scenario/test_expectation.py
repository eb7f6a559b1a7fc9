"""Reading ``[expect]`` tables: forms that mean the same, and what is refused."""

import pytest

from simperf.files import TomlFile
from simperf.scenario.expectation import TOLERANCE, read_expectations


def read(table):
    problems = []
    found = read_expectations(table, TomlFile("f", {}, ""), ("expect",), problems)
    return found, [str(problem) for problem in problems]


def test_the_forms():
    found, problems = read(
        {
            "time": "60 ms",
            "metrics.peak memory": {"value": "2 GB", "rtol": 0.01, "source": "a book"},
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
        ({"time": {"source": "x"}}, "either a value, or min and max"),
        ({"time": {"value": "1 s", "rtol": "1 %"}}, "a number is expected"),
        ({"time": {"value": "1 s", "rtol": 1.5}}, "less than 1"),
        ({"time": {"value": "1 s", "atol": "1 B"}}, "a time is expected"),
        ({"metrics.x": "1 Gb/s"}, "differ by 8"),
        ({"metrics.x": "fast"}, "a quantity with a known unit"),
        ({"metrics.x": {"min": "1 parsec"}}, "a quantity with a known unit"),
        ({"breakdown.computing": "1 s"}, "did you mean 'compute'"),
        ({"regime": "compute"}, "did you mean 'compute-bound'?"),
        ({"regime": 3}, "a text is expected"),
        ({"compare.a/b": "1 s"}, "plain number is expected"),
        ("60 ms", "a table in { } is expected"),
    ],
)
def test_refused(table, word):
    _, problems = read(table)
    assert len(problems) == 1
    assert word in problems[0]
