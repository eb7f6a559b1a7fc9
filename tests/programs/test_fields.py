"""`simperf.programs.fields`: programs that take a dataclass, and the dataclasses in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from simperf.errors import InputError, Problem
from simperf.programs import PROGRAMS
from simperf.programs.fields import Fields, keys
from simperf.programs.parameters import Unless
from simperf.run import run_placed
from simperf.scenario import load_scenario
from simperf.units import Seconds


@dataclass(frozen=True)
class Pace:
    """How fast.

    Parameters
    ----------
    every : float
        time between two
    first : float
        time of the first
    """

    every: Seconds = 1.0
    first: Seconds = 0.0
    kept: str = "as it is"

    def __post_init__(self):
        if self.first < 0.0:
            raise InputError(Problem("0 or more is expected", key="first", value=f"{self.first:g}"))


@dataclass(frozen=True)
class Inner:
    pace: Pace = field(default=Pace(2.0, kept="the owner's"), metadata=keys("every", start="first"))
    names: tuple[str, ...] = ("a",)


@dataclass(frozen=True)
class Outer:
    counts: Mapping[str, int] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)
    n: int = 3

    def __post_init__(self):
        if self.n < 1:
            raise InputError(Problem("1 or more is expected", key="n", value=str(self.n)))


def rules(given):
    return [Unless(given["n"] > 5, ("names",), "nobody is named", "n above 5")]


def test_fields_of_all_dataclasses_are_parameters_in_their_order():
    fields = Fields(Outer)
    assert {name: one.default for name, one in fields.parameters.items()} == {
        "counts": {},
        "every": 2.0,
        "start": 0.0,
        "names": ["a"],
        "n": 3,
    }
    assert fields.parameters["counts"].annotation == dict[str, int]
    assert fields.parameters["every"].annotation == Seconds
    assert fields.parameters["start"].doc == "time of the first"
    assert fields.parameters["start"].section == "Pace"


def test_values_make_the_dataclasses_and_what_no_file_sets_stays():
    made = Fields(Outer).made({"start": 0.5, "names": ["b", "c"], "n": 1})
    assert made == Outer({}, Inner(Pace(2.0, 0.5, "the owner's"), ("b", "c")), 1)
    assert Fields(Outer).made({}) == Outer()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"start": -1.0}, ["start"]),
        ({"n": 0}, ["n"]),
        ({"names": []}, ["names"]),
        ({"n": 0, "names": []}, ["n", "names"]),
    ],
)
def test_what_is_wrong_is_told_by_the_parameters_name(given, told):
    with pytest.raises(InputError) as caught:
        Fields(Outer, rules).made(given)
    assert [problem.key for problem in caught.value.problems] == told


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_program_is_made_of_its_defaults(name):
    spec = PROGRAMS[name]
    if spec.options is None:
        assert len(spec.parameters) <= 10, "a program of that many parameters takes a dataclass"
    elif name != "parameter-server":  # which needs layers or a model
        spec.options.made({})


def test_an_error_names_the_key_in_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[program]\nuse = "failing-job"\nduration = "3 days"\ntimeout = "1 s"\nheartbeat = "10 s"\n')
    with pytest.raises(InputError, match=r"mine.toml:4: program.timeout: it is shorter"):
        run_placed(load_scenario(path))
