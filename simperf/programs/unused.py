"""Parameters that were given and would have no effect: refused, so that nobody takes their absence for a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.programs.registry import PROGRAMS

__all__ = ["Unless", "refuse_unused", "together", "unused"]


class Unless(NamedTuple):
    """Parameters that have an effect only under a condition.

    Parameters
    ----------
    used : bool
        Whether the condition holds.
    names : sequence of str
        The parameters.
    why : str
        Why they have no effect where it does not.
    expected : str
        What would give them one.
    """

    used: bool
    names: tuple[str, ...]
    why: str
    expected: str


def unused(program: str, given: Mapping[str, Any], rules: Iterable[Unless]) -> list[Problem]:
    """Parameters that differ from their defaults although they have no effect.

    Parameters
    ----------
    program : str
        Name of a registered program.
    given : mapping
        Value of each of its parameters.
    rules : iterable of Unless
    """
    parameters = PROGRAMS[program].parameters
    return [
        Problem(rule.why, key=name, value=str(given[name]), expected=f"{rule.expected}, or no {name}")
        for rule in rules
        for name in rule.names
        if not rule.used and given[name] != parameters[name].default
    ]


def refuse_unused(program: str, given: Mapping[str, Any], rules: Iterable[Unless]) -> None:
    """Refuse what `unused` finds.

    Raises
    ------
    InputError
        All of it.
    """
    with together(unused(program, given, rules)):
        pass


@contextmanager
def together(problems: Sequence[Problem]) -> Iterator[None]:
    """Tell problems that were found before together with those of an `InputError` inside.

    Raises
    ------
    InputError
        If there are any.
    """
    try:
        yield
    except InputError as error:
        raise InputError([*problems, *error.problems]) from None
    if problems:
        raise InputError(problems)
