"""Parameters of programs that play a job: sections, stacks, and problems that are told together."""

from dataclasses import dataclass

import pytest

from simperf.errors import InputError, Problem
from simperf.programs.job_options import JobOptions, Section, gathered, stack_of
from simperf.programs.parameters import Parameter, Unless
from simperf.programs.stack_file import load_stack, stacks
from simperf.training.stack import Stack
from simperf.workload.layer_kernels import LayerKernels


@dataclass(frozen=True)
class Pace:
    """How fast.

    Parameters
    ----------
    every : int
        between two
    first : tuple of int
        the first ones
    """

    every: int = 1
    first: tuple[int, ...] = ()

    def __post_init__(self):
        if self.every < 1:
            raise InputError(Problem("1 or more is expected", key="every", value=str(self.every)))


SECTION = Section.of(Pace, "first", defaults={"every": 5}, pace="every")


def options(**more):
    """A program of a pace and a count, which has an effect beside a pace above 1 alone."""
    return JobOptions(
        [SECTION, Parameter("count", int, 0, "how many"), Parameter("count", int, 9, "not taken")],
        lambda given: [Unless(given["pace"] > 1, ("count",), "nothing is counted", "pace above 1")],
        lambda given: (SECTION.made(given), given["count"]),
        strategies=("ddp",),
        **more,
    )


def test_fields_are_parameters_under_their_own_names_or_others():
    found = {one.name: one for one in SECTION.parameters()}
    assert set(found) == {"first", "pace"}
    assert found["pace"].default == 5, "the section's, and not the type's"
    assert found["first"].default == [], "files say lists for tuples"
    assert found["pace"].doc == "between two"


def test_a_section_makes_its_type_and_tells_problems_by_the_parameters_names():
    assert SECTION.made({"pace": 2, "first": [1, 2]}) == Pace(2, (1, 2))
    with pytest.raises(InputError) as caught:
        SECTION.made({"pace": 0, "first": []})
    assert [one.key for one in caught.value.problems] == ["pace"]


def test_of_two_parameters_of_one_name_the_first_is_taken():
    found = options()
    assert list(found.parameters) == ["stack", "first", "pace", "count"]
    assert found.parameters["count"].default == 0
    assert found.names == {(Pace, "first"): "first", (Pace, "every"): "pace"}


def test_a_job_is_made_of_what_is_given_and_defaults():
    assert options().made({"pace": 3, "count": 2}) == (Pace(3), 2)
    assert options().made({}) == (Pace(5), 0)


def test_what_has_no_effect_and_what_has_no_meaning_are_told_together():
    with pytest.raises(InputError) as caught:
        options().made({"pace": 0, "count": 2})
    assert [one.key for one in caught.value.problems] == ["count", "pace"]


def test_a_stack_is_of_a_strategy_and_is_there():
    other = next(name for name in stacks() if load_stack(name).strategy not in ("", "ddp"))
    with pytest.raises(InputError, match="nothing for ddp"):
        options().made({"stack": other})
    with pytest.raises(InputError, match="unknown") as caught:
        options().made({"stack": "nothing-like-it"})
    assert [one.key for one in caught.value.problems] == ["stack"]


def test_without_a_stack_parts_are_as_they_are_given():
    assert stack_of({"stack": ""}, kernels=LayerKernels()) == Stack()


def test_problems_are_gathered_before_those_inside():
    outer = [Problem("first", key="a")]
    with pytest.raises(InputError) as caught, gathered(outer):
        raise InputError(Problem("second", key="b"))
    assert [one.key for one in caught.value.problems] == ["a", "b"]
    with gathered(outer):
        pass
