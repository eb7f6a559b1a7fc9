"""The outcome of a lesson: the number that its settings change, and what a reader predicts of it before it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from simperf.errors import UnitError
from simperf.teach.exercise import Language
from simperf.units import format_quantity, parse

__all__ = ["Judgement", "Outcome", "OutcomeTable"]

Unit = Literal["s", "B", "1", "%", "USD", "1/s"]
#: axes of curves: what a value is divided by, and the name of the unit, the largest that is not above the values first
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
}
_WORDS = {
    "en": {
        "right": "You predicted {given}: it is {value}.",
        "more": "You predicted {given}. It is {value}: your prediction is {times:.2g} times that.",
        "less": "You predicted {given}. It is {value}: {times:.2g} times your prediction.",
        "choice": "You predicted {given}. It is {value}.",
        "unreadable": "{given!r} cannot be read as a prediction: {why}.",
    },
    "zh": {
        "right": "你的预测是 {given}，结果是 {value}：正确。",
        "more": "你的预测是 {given}，结果是 {value}：预测值是它的 {times:.2g} 倍。",
        "less": "你的预测是 {given}，结果是 {value}：是预测值的 {times:.2g} 倍。",
        "choice": "你的预测是 {given}，结果是 {value}。",
        "unreadable": "无法理解预测 {given!r}：{why}。",
    },
}


@dataclass(frozen=True)
class Judgement:
    """Judgement of a prediction.

    Parameters
    ----------
    readable, ok : bool
        Whether it can be read, and whether it is right.
    message : str
    value : float or None
        The predicted number, in SI units; None for a choice.
    """

    readable: bool
    ok: bool
    message: str
    value: float | None = None


@dataclass(frozen=True)
class Outcome:
    """The number that a lesson is about, or one of several names.

    Parameters
    ----------
    unit : str
        Of the number: ``"s"``, ``"B"``, ``"1"`` (so many times), ``"%"`` (a share), ``"USD"`` or ``"1/s"``.
    values : tuple of str
        Names one of which is predicted, instead of the number.
    rtol : float
        How far off a prediction may be that counts as right [1].
    """

    unit: Unit
    values: tuple[str, ...] = ()
    rtol: float = 0.1

    def written(self, value: float) -> str:
        """A number with its unit.

        Examples
        --------
        >>> Outcome("s").written(0.06), Outcome("%").written(0.273), Outcome("1").written(1.8)
        ('60.00 ms', '27.3 %', '1.80x')
        """
        if self.unit in ("s", "B"):
            return format_quantity(value, self.unit)
        if self.unit == "1/s":
            return f"{value:,.1f}/s"
        return {"1": f"{value:.2f}x", "%": f"{100 * value:.1f} %", "USD": f"{value:,.0f} USD"}[self.unit]

    def scale(self, values: list[float]) -> tuple[float, str]:
        """Factor that values are divided by on an axis, and the unit that they are then in."""
        top = max(values, default=0.0)
        for factor, name in _SCALES.get(self.unit, ()):
            if top >= factor:
                return factor, name
        return (
            (0.01, "%") if self.unit == "%" else (1.0, {"1": "x", "USD": "USD", "1/s": "1/s"}.get(self.unit, self.unit))
        )

    def judge(self, given: str, truth: float | str, language: Language) -> Judgement:
        """Judgement of a prediction as a person typed it, beside what the simulation gives."""
        words = _WORDS[language]
        if isinstance(truth, str):
            ok = given.casefold() == truth.casefold()
            return Judgement(True, ok, words["right" if ok else "choice"].format(given=given, value=truth))
        try:
            value = self._read(given)
        except (UnitError, ValueError) as error:
            return Judgement(False, False, words["unreadable"].format(given=given, why=error))
        shown = {"given": self.written(value), "value": self.written(truth)}
        if abs(value - truth) <= self.rtol * abs(truth):
            return Judgement(True, True, words["right"].format(**shown), value)
        ratio = value / truth if truth else float("inf")
        kind, times = ("more", ratio) if ratio > 1 else ("less", 1 / ratio)
        return Judgement(True, False, words[kind].format(**shown, times=times), value)

    def _read(self, given: str) -> float:
        text = given.strip()
        if self.unit in ("s", "B"):
            value = parse(text, self.unit)
        else:
            value = float(text.rstrip("x×倍% ").removesuffix("USD").removesuffix("/s").strip("$ ").replace(",", ""))
            value = value / 100 if self.unit == "%" else value
        if not 0 < value < float("inf"):
            raise ValueError("a number above 0 is expected")
        return value


class OutcomeTable(BaseModel):
    """``[outcome]`` of a lesson's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    unit: Unit = "s"
    values: tuple[str, ...] = ()
    rtol: Annotated[float, Field(gt=0, lt=0.5)] = 0.1

    def build(self) -> Outcome:
        """The outcome."""
        return Outcome(self.unit, self.values, self.rtol)
