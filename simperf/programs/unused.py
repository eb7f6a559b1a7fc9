"""Parameters that were given and would have no effect: refused, so that nobody takes their absence for a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from simperf.errors import InputError, Problem
from simperf.programs.registry import PROGRAMS, Parameter, Rules, Unless

__all__ = ["deviates", "idle_problems", "refuse_unused", "slows", "together", "unused"]


def deviates(given: Mapping[str, Any], law: str = "jitter", deviation: str = "cv") -> Unless:
    """A deviation has an effect where times follow a law that has one."""
    return Unless(given[law] != "constant", (deviation,), "a constant time has no deviation", f'{law} = "lognormal"')


def slows(given: Mapping[str, Any]) -> Unless:
    """How slow and when has an effect where a link is slow."""
    changes = ("slow_share", "slow_from", "slow_until")
    return Unless(bool(given["slow_link"]), changes, "no link is slow", "slow_link = a link of the machine")


def unused(program: str, given: Mapping[str, Any]) -> list[Problem]:
    """Parameters that differ from their defaults although they have no effect.

    Parameters
    ----------
    program : str
        Name of a registered program, whose rules say what has no effect.
    given : mapping
        Value of each of its parameters.
    """
    return idle_problems(PROGRAMS[program].parameters, PROGRAMS[program].rules, given)


def idle_problems(parameters: Mapping[str, Parameter], rules: Rules, given: Mapping[str, Any]) -> list[Problem]:
    """The same for parameters with their rules, registered or not."""
    return [
        Problem(rule.why, key=name, value=str(given[name]), expected=f"{rule.expected}, or no {name}")
        for rule in rules(given)
        for name in rule.names
        if not rule.used and given[name] != parameters[name].default
    ]


def refuse_unused(program: str, given: Mapping[str, Any]) -> None:
    """Refuse what `unused` finds.

    Raises
    ------
    InputError
        All of it.
    """
    with together(unused(program, given)):
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
