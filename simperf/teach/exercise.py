"""Exercises: a question, and a check that asks the simulator instead of a key of answers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from simperf.errors import InputError, Problem, UnitError, UnknownNameError
from simperf.results import Result
from simperf.run import run
from simperf.scenario import load_scenario
from simperf.units import format_quantity, parse

__all__ = ["Exercise", "Feedback", "Language", "LessonModel", "Measure", "Words"]

Language = Literal["en", "zh"]
_MESSAGES = {
    "en": {
        "right": "Right: {value}. {explain}",
        "wrong": "Not {answer}. {hint}",
        "unreadable": "{answer!r} cannot be read as an answer: {why}.",
    },
    "zh": {
        "right": "正确：{value}。{explain}",
        "wrong": "不是 {answer}。{hint}",
        "unreadable": "无法理解答案 {answer!r}：{why}。",
    },
}


class LessonModel(BaseModel):
    """A table of a lesson's files: no other keys than its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Words(LessonModel):
    """Texts of an exercise in one language."""

    text: str
    hint: str
    explain: str


class Measure(LessonModel):
    """A number that a run gives: a scenario with changes, and the name of the metric.

    `over` is another one by which it is divided, for questions such as "how many times faster".
    """

    scenario: str
    set: dict[str, str | int | float | bool | list[Any]] = {}
    variant: str = ""
    metric: str = "time"
    over: Measure | None = None

    def value(self) -> tuple[float, str]:
        """The simulated number and its unit.

        Raises
        ------
        UnknownNameError
            The run has no such metric, or the file no such variant.
        """
        number, unit = _metric(_played(self.scenario, _frozen(self.set), self.variant), self.metric)
        if self.over is None:
            return number, unit
        return number / self.over.value()[0], "1"


class Feedback(NamedTuple):
    """Feedback of a checker on an answer."""

    ok: bool
    message: str


@dataclass(frozen=True)
class Exercise:
    """A question and its check.

    Parameters
    ----------
    words : dict
        `Words` by language.
    measure : Measure
        What the right answer is read off.
    values : tuple
        Empty for a quantity; else the candidates that are put under the key `key` in turn, of which the one
        with the lowest (or highest) measure is right.
    key, best : str
    rtol : float
        How far off a quantity may be [1].
    wrong : tuple of str
        Answers that people give and the check must refuse.
    """

    words: dict[Language, Words]
    measure: Measure
    values: tuple[str | int | float, ...] = ()
    key: str = ""
    best: Literal["lowest", "highest"] = "lowest"
    rtol: float = 0.02
    wrong: tuple[str, ...] = ()

    def right(self) -> str:
        """The right answer, simulated."""
        if self.values:
            return str(self._winner())
        value, unit = self.measure.value()
        return format_quantity(value, unit)

    def check(self, answer: str, language: Language = "en") -> Feedback:
        """Judge an answer as a person typed it; what cannot be read is reported, not judged."""
        words, messages = self.words[language], _MESSAGES[language]
        try:
            ok = self._same(answer.strip())
        except (UnitError, ValueError) as error:
            return Feedback(False, messages["unreadable"].format(answer=answer, why=error))
        if ok:
            return Feedback(True, messages["right"].format(value=self.right(), explain=words.explain))
        return Feedback(False, messages["wrong"].format(answer=answer.strip(), hint=words.hint))

    def _same(self, answer: str) -> bool:
        if self.values:
            shown = {str(value).casefold() for value in self.values}
            if answer.casefold() not in shown:
                raise ValueError("one of " + ", ".join(str(value) for value in self.values))
            return answer.casefold() == str(self._winner()).casefold()
        value, unit = self.measure.value()
        given = float(answer.rstrip("x×倍 ")) if unit == "1" else parse(answer, unit)
        return abs(given - value) <= self.rtol * abs(value)

    def _winner(self) -> str | int | float:
        def score(candidate: str | int | float) -> float:
            changed = {**self.measure.set, self.key: candidate}
            return self.measure.model_copy(update={"set": changed}).value()[0]

        return (min if self.best == "lowest" else max)(self.values, key=score)


class ExerciseTable(LessonModel):
    """An ``[[exercise]]`` of a lesson's file."""

    en: Words
    zh: Words
    measure: Measure
    values: tuple[str | int | float, ...] = ()
    key: str = ""
    best: Literal["lowest", "highest"] = "lowest"
    rtol: Annotated[float, Field(gt=0, lt=0.5)] = 0.02
    wrong: Annotated[tuple[str, ...], Field(min_length=5)]

    def build(self) -> Exercise:
        """The exercise."""
        words: dict[Language, Words] = {"en": self.en, "zh": self.zh}
        return Exercise(words, self.measure, self.values, self.key, self.best, self.rtol, self.wrong)


Frozen = tuple[tuple[str, Any], ...]


def _frozen(changes: dict[str, Any]) -> Frozen:
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in changes.items())


@functools.lru_cache(maxsize=256)
def _played(scenario: str, changes: Frozen, variant: str) -> Result:
    texts = [f"{key}={_literal(value)}" for key, value in changes]
    loaded = load_scenario(scenario, texts)
    if variant:
        named = {each.name: each for each in loaded.variants}
        if variant not in named:
            raise UnknownNameError("variant", variant, named)
        loaded = named[variant]
    return run(replace(loaded, answer=None))  # an exercise asks for a number of its own


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _metric(result: Result, name: str) -> tuple[float, str]:
    if name == "time":
        return result.time, "s"
    if name not in result.metrics:
        known = ["time", *result.metrics]
        raise InputError(Problem("the run has no such metric", value=repr(name), expected=f"one of {known}"))
    metric = result.metrics[name]
    return metric.value, metric.unit
