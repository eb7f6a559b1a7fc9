"""Quantities of the command line: each refusal names its option, and all of them come at once."""

from __future__ import annotations

from simperf.errors import InputError, Problem, UnitError
from simperf.units import parse, parse_size

__all__ = ["Quantities"]


class Quantities:
    """Reads options one after the other and remembers what is wrong with them.

    Examples
    --------
    >>> read = Quantities()
    >>> read("50 GB/s", "B/s", option="--bandwidth")
    50000000000.0
    >>> read("5", "s", option="--latency")
    0.0
    >>> read.refuse()
    Traceback (most recent call last):
        ...
    simperf.errors.InputError: --latency: the unit is missing: write a time such as '5 us' (read: 5)
    """

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def __call__(self, text: str, dimension: str, *, option: str) -> float:
        """Read a quantity of `dimension`, 0 or more; 0 if it is none."""
        try:
            value = parse(text, dimension)
            if value < 0:
                raise UnitError("it cannot be negative")
        except UnitError as error:
            self._problems.append(Problem(str(error), key=option, value=text))
            return 0.0
        return value

    def size(self, text: str, *, option: str) -> int:
        """Read a message size as nccl-tests does; 0 if it is none."""
        try:
            return parse_size(text)
        except UnitError as error:
            self._problems.append(Problem(str(error), key=option, value=text))
            return 0

    def refuse(self) -> None:
        """Tell all that was wrong.

        Raises
        ------
        InputError
            Something was.
        """
        if self._problems:
            raise InputError(self._problems)
