"""Key paths, assignments, and what they do to a file's data."""

import pytest

from simperf.errors import InputError
from simperf.files import TomlFile
from simperf.scenario.overrides import Override, apply, parse_assignment, parse_path, variant_overrides


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("machine.link[0].part", ("machine", "link", 0, "part")),
        ("machine.link.0.part", ("machine", "link", 0, "part")),
        ("program.ops[1][2]", ("program", "ops", 1, 2)),
        ('expect."metrics.peak memory"', ("expect", "metrics.peak memory")),
        ("cost.efficiency.gemm-fp32", ("cost", "efficiency", "gemm-fp32")),
        (" a . b ", ("a", "b")),
    ],
)
def test_paths(text, path):
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "[0].a", "a[x]", "a[0]b", 'a"b'])
def test_no_paths(text):
    with pytest.raises(ValueError, match="no key"):
        parse_path(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=5", 5),
        ("a=5.5", 5.5),
        ("a=true", True),
        ('a="5"', "5"),
        ("a=60 ms", "60 ms"),
        ("a=16 GB/s", "16 GB/s"),
        ("a=eager", "eager"),
        ("a=[1, 2]", [1, 2]),
        ("a={x = 1}", {"x": 1}),
        ("a=2024-01-01", "2024-01-01"),
        ("a=x=y", "x=y"),
        ("a=1\nb = 2", "1\nb = 2"),
    ],
)
def test_values_are_toml_or_text(text, value):
    assert parse_assignment(text).value == value


@pytest.mark.parametrize("text", ["", "a", "a=", "a= ", "=3", "a..b=3"])
def test_no_assignments(text):
    with pytest.raises(InputError, match="--set"):
        parse_assignment(text)


def applied(data, *texts):
    problems = []
    changed, _ = apply(data, TomlFile("f", data, ""), [parse_assignment(text) for text in texts], problems)
    return changed, [str(problem) for problem in problems]


def test_values_are_set_and_the_file_stays():
    data = {"a": {"b": 1, "list": [{"c": 1}, {"c": 2}]}}
    changed, problems = applied(data, "a.b=2", "a.list[1].c=3", "new.key=4", "a.b=5")
    assert problems == []
    assert changed == {"a": {"b": 5, "list": [{"c": 1}, {"c": 3}]}, "new": {"key": 4}}
    assert data == {"a": {"b": 1, "list": [{"c": 1}, {"c": 2}]}}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a.list[2].c=1", "entries 0 to 1"),
        ("a.list[2]=1", "entries 0 to 1"),
        ("a.list.c=1", "a.list[0]"),
        ("a.b.c=1", "a.b is a single value"),
        ("a.b.c.d=1", "a.b is a single value"),
        ("a[0]=1", "a is a table, not a list"),
        ("a.none[0].x=1", "has no list a.none"),
    ],
)
def test_places_that_are_not_there(text, word):
    data = {"a": {"b": 1, "list": [{"c": 1}, {"c": 2}]}}
    changed, problems = applied(data, text)
    assert changed == data
    assert word in problems[0]


def test_a_variant_may_write_tables_or_dotted_keys():
    toml, problems = TomlFile("f", {}, ""), []
    table = {"program": {"n": 1, "options": {"x": 1}}, "run.seed": 2}
    assert variant_overrides(table, ("compare", 0, "set"), toml, problems) == [
        Override(("program", "n"), 1, ("compare", 0, "set", "program", "n")),
        Override(("program", "options"), {"x": 1}, ("compare", 0, "set", "program", "options")),
        Override(("run", "seed"), 2, ("compare", 0, "set", "run.seed")),
    ]
    variant_overrides({"a..b": 1}, ("compare", 0, "set"), toml, problems)
    assert "no key" in problems[0].message
