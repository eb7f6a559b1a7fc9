"""The exception tree: everything that a user can cause derives from `SimperfError`.

An error of a user's making says where (file, line, key), what was read, what was
expected and the nearest valid name. A file's problems are collected and raised
together in one `InputError`, so that they can be mended in one go.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

__all__ = [
    "CONTROL",
    "DeadlockError",
    "DeviceMemoryError",
    "EngineError",
    "FloorError",
    "InputError",
    "MachineError",
    "Problem",
    "ProgramError",
    "SimperfError",
    "UnitError",
    "UnknownNameError",
    "WorkerDiedError",
    "nearest",
    "nearest_divisors",
    "printable",
    "refuse_removed",
]


#: what a terminal would obey, other than tabs and ends of lines
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # the last stand for bytes that are no UTF-8
_LONGEST = 120  # characters of a name that a message repeats
_LONGEST_VALUE = 400  # and of a key or value, which may be a whole list


class SimperfError(Exception):
    """Base of every error that simperf raises on purpose; `exit_code` is the command's."""

    exit_code: int = 2


class UnitError(SimperfError, ValueError):
    """A quantity has no unit, an unknown one, or one of the wrong dimension."""


class UnknownNameError(SimperfError, LookupError):
    """A name that is in no catalog or registry; the message offers the nearest ones.

    Parameters
    ----------
    kind : str
        What was looked for.
    name : object
        What was read; a name, unless it is of another type.
    known : iterable of str
        Names that would do.
    other : str
        What else has this name.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str], *, other: str = "") -> None:
        self.kind, self.name, self.known, self.other = kind, name, sorted(known), other
        note = f", which is a {other}" if other else ""
        told = repr(name)
        told = told if len(told) <= _LONGEST else f"{told[:_LONGEST]}..."
        super().__init__(f"unknown {kind} {told}{note}{nearest(name, self.known)}")

    def __reduce__(self) -> tuple[Any, ...]:
        """So that it comes back from another process as it was."""
        return partial(type(self), other=self.other), (self.kind, self.name, self.known)


class MachineError(SimperfError):
    """A machine that cannot exist: unwired, contradictory, or without a route."""


class ProgramError(SimperfError):
    """A program that uses a verb or a device in a way that has no meaning."""


class DeadlockError(ProgramError):
    """A program that waits for something that never comes."""


class FloorError(SimperfError):
    """A simulated time below its lower bound: a defect of the model, never an answer."""

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
        text = ": ".join(part for part in (place, _short(self.key), self.message) if part)
        if self.value:
            text += f" (read: {_short(self.value)})"
        if self.expected:
            text += f"\n    expected: {self.expected}"
        return printable(text)


def printable(text: str) -> str:
    r"""A text that a terminal shows as it is: control characters are written as Python does, lines and tabs stay.

    Examples
    --------
    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    return CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


class InputError(SimperfError):
    """All problems of one input, together."""

    def __init__(self, problems: Sequence[Problem] | Problem) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        """So that it comes back from another process as it was."""
        return type(self), (self.problems,)


class DeviceMemoryError(InputError):
    """Error of a program that does not fit on a device: as bad an input as any other; names what asks for too much."""

    def __init__(self, problems: Sequence[Problem] | Problem | str) -> None:
        super().__init__(Problem(problems) if isinstance(problems, str) else problems)


def nearest(name: object, known: Iterable[str], *, show: int = 12) -> str:
    """Say which known name is meant, or list them if none is close.

    Examples
    --------
    >>> nearest("v10", ["v100", "a100"])
    "; did you mean 'v100'?"
    >>> nearest("v100", ["v100-sxm2-16gb", "t4"])
    "; did you mean 'v100-sxm2-16gb'?"
    >>> nearest("zzz", ["v100", "a100"])
    '; known: a100, v100'
    >>> nearest("d2l/asinc", ["d2l/async", "d2l/gpus"])
    "; did you mean 'd2l/async'?"
    """
    names = sorted(known)
    lowered = {n.lower(): n for n in names}
    given = str(name).lower()  # a value of another type may stand where a name is expected
    within = sorted(
        (n for n in lowered if len(given) > 2 and given in n), key=lambda n: (not n.startswith(given), len(n))
    )
    close = list(dict.fromkeys(within + _alike(given, list(lowered))))[:3]
    if close:
        return "; did you mean " + " or ".join(repr(lowered[c]) for c in close) + "?"
    if not names:
        return "; none is known"
    more = f", ... ({len(names)} in all)" if len(names) > show else ""
    return "; known: " + ", ".join(names[:show]) + more


def refuse_removed(function: str, given: Mapping[str, object], successors: Mapping[str, str]) -> None:
    """Refuse keywords that a function had once.

    Parameters
    ----------
    function : str
        Its name.
    given : mapping
        Keywords that it was called with and does not have.
    successors : mapping of str to str
        By old keyword, what is written instead.

    Raises
    ------
    InputError
        Each old keyword with its successor.
    TypeError
        A keyword that it never had.
    """
    for key in given:
        if key not in successors:
            raise TypeError(f"{function}() got an unexpected keyword argument {key!r}{nearest(key, successors)}")
    problems = [
        Problem(f"{function} has no such keyword any more", key=key, value=repr(value), expected=successors[key])
        for key, value in given.items()
    ]
    if problems:
        raise InputError(problems)


def _alike(name: str, known: Sequence[str]) -> list[str]:
    """Up to three names that are spelt alike; a folder that both are in, as in ``d2l/async``, does not count."""
    folder, slash, stem = name.rpartition("/")
    close = difflib.get_close_matches(name, known, n=3 if not slash else len(known) or 1, cutoff=0.6)
    if not slash:
        return close
    ratio = difflib.SequenceMatcher(None, b=stem)

    def spelt(other: str) -> bool:
        ratio.set_seq1(other.rpartition("/")[2])
        return ratio.ratio() >= 0.6

    return [other for other in close if not other.startswith(folder + slash) or spelt(other)][:3]


class EngineError(SimperfError):
    """An engine that does no more tasks: its processes do not start, or its scheduler or all workers are gone."""

    exit_code = 1


class WorkerDiedError(SimperfError):
    """The process that worked on a task died again and again: killed, or out of memory."""

    exit_code = 1


def nearest_divisors(whole: int, part: int, where: Callable[[int], bool] = bool) -> tuple[int, ...]:
    """The divisors of `whole` nearest to `part`, from below and from above, if there are any that `where` allows.

    Examples
    --------
    >>> nearest_divisors(12, 5), nearest_divisors(12, 100)
    ((4, 6), (12,))
    """
    small = [count for count in range(1, math.isqrt(whole) + 1) if whole % count == 0]
    divisors = [one for one in sorted({*small, *(whole // count for count in small)}) if where(one)]
    below = [count for count in divisors if count <= part][-1:]
    above = [count for count in divisors if count >= part][:1]
    return tuple(dict.fromkeys((*below, *above)))
