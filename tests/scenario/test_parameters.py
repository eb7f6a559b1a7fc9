"""Parameters of programs: typed by the signature, quantities with units, also inside lists and tables."""

from typing import Any, Literal

import pytest

from simperf.errors import SimperfError
from simperf.files import TomlFile
from simperf.programs import PROGRAMS, Parameter, ProgramSpec
from simperf.programs.adapters import adapter, read_parameters
from simperf.units import Bytes, Ratio, Seconds, format_quantity


def sample(  # noqa: PLR0913 - a parameter of each kind
    m: Any,
    *,
    n: int = 1,
    offset: int = -1,
    t: Seconds = 1e-6,
    sizes: list[Bytes] = [1.0],  # noqa: B006
    share: Ratio = 0.5,
    factor: float = 1.0,
    how: Literal["a", "b"] = "a",
    flag: bool = False,
    names: list[str] = [],  # noqa: B006
    options: dict[str, Any] = {},  # noqa: B006
):
    yield None


SPEC = ProgramSpec.of("sample", sample)


def read(data):
    problems = []
    values = read_parameters(SPEC, data, TomlFile("f", {}, ""), ("program",), problems)
    return values, [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("n", 5, 5),
        ("offset", -5, -5),
        ("t", "5 us", 5e-6),
        ("t", 0, 0.0),
        ("sizes", ["1 kB", "1 KiB"], [1e3, 1024.0]),
        ("share", 0.8, 0.8),
        ("share", "80 %", 0.8),
        ("factor", 2, 2.0),
        ("factor", -2.5, -2.5),
        ("how", "b", "b"),
        ("flag", True, True),
        ("names", ["x"], ["x"]),
        ("options", {"a": 1, "b": [1]}, {"a": 1, "b": [1]}),
    ],
)
def test_values(name, written, value):
    values, problems = read({name: written})
    assert problems == []
    assert values[name] == (pytest.approx(value, rel=1e-12) if name == "t" else value)
    assert type(values[name]) is type(value)
    assert set(values) == set(SPEC.parameters), "the others have their defaults"


@pytest.mark.parametrize(
    ("name", "written", "word"),
    [
        ("n", 1.5, "a whole number"),
        ("n", "5", "a whole number"),
        ("n", True, "a whole number"),
        ("n", -1, "cannot be negative"),
        ("n", 10**13, "far too large"),
        ("t", "5 MB", "a time is expected"),
        ("t", 5, "the unit is missing"),
        ("t", "-5 us", "cannot be negative"),
        ("t", "1e40 s", "far too large"),
        ("t", True, "a time is expected"),
        ("t", ["5 us"], "a time is expected"),
        ("sizes", ["1 kB", "1 kb"], "differ by 8"),
        ("sizes", "1 kB", "a list in [ ]"),
        ("factor", "2", "a number"),
        ("how", "c", "one of a, b"),
        ("flag", 1, "true or false"),
        ("flag", "true", "true or false"),
        ("names", [1], "a text in quotes"),
        ("options", [1], "a table in { }"),
        ("nn", 1, "has no parameter 'nn'"),
    ],
)
def test_refused(name, written, word):
    _, problems = read({name: written})
    assert len(problems) == 1
    assert word in problems[0]
    assert f"program.{name}" in problems[0]


def test_an_entry_of_a_list_is_named():
    _, problems = read({"sizes": ["1 kB", "1 kb"]})
    assert "program.sizes[1]" in problems[0]


def test_an_annotation_that_no_file_can_say():
    with pytest.raises(SimperfError, match="which a file cannot say"):
        adapter(Parameter("when", type("Odd", (), {}), None, ""))


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_default_of_every_program_is_what_its_annotation_says(name):
    for parameter in PROGRAMS[name].parameters.values():
        unit = next((u for u in getattr(parameter.annotation, "__metadata__", ()) if hasattr(u, "dimension")), None)
        written = parameter.default
        if unit is not None and written:
            written = format_quantity(written, unit.dimension, digits=12)
        if unit is not None and unit.above_0 and not written:
            continue  # it stands for a key that is left out
        read_back = adapter(parameter).validate_python(written)
        assert read_back == pytest.approx(parameter.default) if unit else read_back == parameter.default
