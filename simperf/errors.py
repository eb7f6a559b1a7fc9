"""The exception tree: everything that a user can cause derives from `SimperfError`.

An error of a user's making says where (file, line, key), what was read, what was
expected and the nearest valid name. A file's problems are collected and raised
together in one `InputError`, so that they can be mended in one go.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "DeviceMemoryError",
    "ExpectationError",
    "FloorError",
    "InputError",
    "MachineError",
    "Problem",
    "ProgramError",
    "SimperfError",
    "UnitError",
    "UnknownNameError",
    "nearest",
]


class SimperfError(Exception):
    """Base of every error that simperf raises on purpose; `exit_code` is the command's."""

    exit_code: int = 2


class UnitError(SimperfError, ValueError):
    """A quantity has no unit, an unknown one, or one of the wrong dimension."""


class UnknownNameError(SimperfError, LookupError):
    """A name that is in no catalog or registry; the message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        super().__init__(f"unknown {kind} {name!r}{nearest(name, self.known)}")


class MachineError(SimperfError):
    """A machine that cannot exist: unwired, contradictory, or without a route."""


class ProgramError(SimperfError):
    """A program that uses a verb or a device in a way that has no meaning."""


class FloorError(SimperfError):
    """A simulated time below its physical floor: a defect of the model, never an answer."""

    exit_code = 1


class ExpectationError(SimperfError):
    """A result that does not meet the numbers that its scenario file carries."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input, and what would be right.

    Parameters
    ----------
    message : str
        What is wrong, in words that a newcomer can act on.
    file : str
        Path of the input, empty if it came from Python or the command line.
    line : int
        Line in `file`, 1-based; 0 if unknown.
    key : str
        Dotted path of the value, such as ``machine.link[2].bandwidth``.
    value : str
        What was read.
    expected : str
        What would be right.
    """

    message: str
    file: str = ""
    line: int = 0
    key: str = ""
    value: str = ""
    expected: str = ""

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.file and self.line else "")
        text = ": ".join(part for part in (place, self.key, self.message) if part)
        if self.value:
            text += f" (read: {self.value})"
        if self.expected:
            text += f"\n    expected: {self.expected}"
        return text


class InputError(SimperfError):
    """All problems of one input, together."""

    def __init__(self, problems: Sequence[Problem] | Problem) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class DeviceMemoryError(InputError):
    """What a program holds does not fit on a device: as bad an input as any other; names what asks for too much."""

    def __init__(self, problems: Sequence[Problem] | Problem | str) -> None:
        super().__init__(Problem(problems) if isinstance(problems, str) else problems)


def nearest(name: str, known: Iterable[str], *, show: int = 12) -> str:
    """Say which known name is meant, or list them if none is close.

    Examples
    --------
    >>> nearest("v10", ["v100", "a100"])
    "; did you mean 'v100'?"
    >>> nearest("v100", ["v100-sxm2-16gb", "t4"])
    "; did you mean 'v100-sxm2-16gb'?"
    >>> nearest("zzz", ["v100", "a100"])
    '; known: a100, v100'
    """
    names = sorted(known)
    lowered = {n.lower(): n for n in names}
    within = sorted((n for n in lowered if len(name) > 2 and name.lower() in n), key=len)
    close = list(dict.fromkeys(within + difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.6)))[:3]
    if close:
        return "; did you mean " + " or ".join(repr(lowered[c]) for c in close) + "?"
    if not names:
        return "; none is known"
    more = f", ... ({len(names)} in all)" if len(names) > show else ""
    return "; known: " + ", ".join(names[:show]) + more
