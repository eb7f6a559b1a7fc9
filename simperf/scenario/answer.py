"""``[scenario] answer``: which number of the result answers the question, as a file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from simperf.answer import TIME, Answer, Better, better_of
from simperf.errors import InputError, Problem, nearest
from simperf.files import TomlFile
from simperf.scenario.schema import AnswerTable

__all__ = ["Asked", "read_answer"]

_AT = ("scenario", "answer")


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer that a file names; it becomes an `Answer` when the metrics of the run are known.

    Parameters
    ----------
    metric : str
        ``"time"`` or the name of a metric.
    better : {"higher", "lower"} or None
        None takes what the metric's unit says.
    place : Problem
        Where the file says it; its message is empty.
    """

    metric: str
    better: Better | None = None
    place: Problem = field(default_factory=lambda: Problem("", key=".".join(_AT)))

    def of(self, units: Mapping[str, str]) -> Answer:
        """The answer of a run whose metrics have these SI units, by name.

        Raises
        ------
        InputError
            The run has no such metric, or its unit does not say which end is better.
        """
        if self.metric == TIME:
            return Answer(TIME, self.better or "lower")
        if self.metric not in units:
            known = ", ".join((TIME, *units))
            hint = nearest(self.metric, (TIME, *units), show=0)
            message = f"the result has no metric {self.metric!r}{hint if 'mean' in hint else ''}"
            raise InputError(self._problem(message, key="metric", value=repr(self.metric), expected=known))
        better = self.better or better_of(units[self.metric])
        if better is None:
            message = f"{self.metric!r} is a plain number: which end of it is better?"
            raise InputError(self._problem(message, key="better", expected='better = "higher" or better = "lower"'))
        return Answer(self.metric, better)

    def _problem(self, message: str, *, key: str, value: str = "", expected: str = "") -> Problem:
        return replace(self.place, message=message, key=f"{self.place.key}.{key}", value=value, expected=expected)


def read_answer(table: AnswerTable | None, toml: TomlFile) -> Asked | None:
    """Answer that ``[scenario] answer`` asks for; None where it is absent."""
    if table is None:
        return None
    return Asked(table.metric, table.better, toml.problem(_AT, ""))
