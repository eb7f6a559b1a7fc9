"""The page that the notebooks of all lessons share: language, prediction, settings, pictures, curve and exercises.

A notebook has what is its own: the program, its settings, what is simulated for them, and what is drawn of a run.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from simperf.errors import SimperfError
from simperf.report.language import named, spoken
from simperf.report.plots import draw_comparison
from simperf.results import Result
from simperf.teach.exercise import Language
from simperf.teach.lesson import LANGUAGES, find_lesson
from simperf.teach.outcome import Judgement
from simperf.teach.pictures import draw_curves, draw_points, picture
from simperf.teach.settings import Menu, Settings, Slider, Switch, control, defaults

__all__ = ["UNPREDICTED", "Menu", "Page", "Slider", "Switch", "language_switch"]

#: instead of a prediction: the outcome is shown without one, as on an exported page
UNPREDICTED = "-"

_HEADS: dict[Language, dict[str, str]] = {
    "en": {
        "summary": "Summary",
        "exercises": "Exercises",
        "answer": "Your answer",
        "reading": "Read on",
        "predict": "Predict first",
        "prediction": "Prediction, Enter",
        "choose": "Your prediction",
        "first": "The result appears when you have made a prediction. A guess will do.",
        "headline": "{}: {}",
        "curve": "{outcome}, by {setting}",
    },
    "zh": {
        "summary": "小结",
        "exercises": "练习",
        "answer": "你的答案",
        "reading": "延伸阅读",
        "predict": "先预测",
        "prediction": "输入你的预测，然后按回车",
        "choose": "你的预测",
        "first": "做出预测之后才显示结果。猜测也可以。",
        "headline": "{}：{}",
        "curve": "{outcome}随{setting}的变化",
    },
}


def language_switch() -> Any:
    """A choice of language; its value is ``"en"`` or ``"zh"``."""
    import marimo as mo

    return mo.ui.radio({name: code for code, name in LANGUAGES.items()}, value=LANGUAGES["en"], inline=True)


class Page:
    """A lesson in one language, as its notebook shows it.

    Parameters
    ----------
    name : str
        Of the lesson.
    language : str
        What `language_switch` says.
    kept : dict, optional
        Keeps settings and the prediction while the language changes.

    Attributes
    ----------
    lesson : Lesson
    text : Text
        Its words in the language.
    """

    def __init__(self, name: str, language: Language, kept: dict[str, Any] | None = None) -> None:
        self.lesson = find_lesson(name)
        self.language = language
        self.text = self.lesson.text[language]
        self._kept = {} if kept is None else kept
        self._heads = _HEADS[language]
        self._settings: Settings = {}
        self._outcomes: dict[tuple[Any, ...], float | None] = {}
        self._said: Judgement | None = None

    draw_curves = staticmethod(draw_curves)
    draw_points = staticmethod(draw_points)
    draw_comparison = staticmethod(draw_comparison)

    def say(self, english: str) -> str:
        """A word of the notebook in the page's language: the lesson's ``words`` or those of pictures."""
        if english in self.text.words or self.language == "en":
            return self.text.words.get(english, english)
        with spoken(self.language, drawn=False):
            return named(english)

    def opening(self, program: Callable[..., Any], *more: Callable[..., Any]) -> Any:
        """Title, question, and the program that the lesson is about; `more` functions unfold at a click."""
        import marimo as mo

        text = self.text
        head = mo.md(f"# {self.lesson.order}. {text.title}\n\n**{text.question}**\n\n{text.program}")
        folded = [mo.accordion({each.__name__: mo.md(_source(each)) for each in more})] if more else []
        return mo.vstack([head, mo.md(_source(program)), *folded])

    def controls(self, settings: Settings) -> Any:
        """The settings as sliders, choices and switches with labels; the value is a mapping by their names."""
        import marimo as mo

        self._settings = settings
        values = defaults(settings) | self._kept.get("settings", {})

        def keep(changed: Mapping[str, Any]) -> None:
            self._kept["settings"] = dict(changed)

        made = {
            name: control(one, values[name], label=self.text.controls[name], say=self.say)
            for name, one in settings.items()
        }
        return mo.ui.dictionary(made, on_change=keep)

    def prediction(self) -> Any:
        """A field for the reader's prediction, which `predicted` waits for."""
        import marimo as mo

        def keep(value: Any) -> None:
            self._kept["prediction"] = value

        known = self._kept.get("prediction")
        if self.lesson.outcome.values:
            options = {self.say(one): one for one in self.lesson.outcome.values}
            chosen = next((key for key, one in options.items() if one == known), None)
            return mo.ui.dropdown(options, value=chosen, label=self._heads["choose"], on_change=keep)
        return mo.ui.text(value=known or "", placeholder=self._heads["prediction"], on_change=keep)

    def asked(self, prediction: Any, chosen: Any) -> Any:
        """The question before the first run, with the field of `prediction`, and the controls below."""
        import marimo as mo

        question = mo.md(f"**{self._heads['predict']}.** {self.text.predict}")
        row = mo.hstack([chosen[name] for name in self._settings], wrap=True, justify="start", gap=1)
        box = mo.vstack([question, prediction]).style({"border-left": "4px solid #0072B2", "padding-left": "1rem"})
        return mo.vstack([box, row])

    def predicted(self, prediction: Any, outcome: Callable[..., float | str]) -> None:
        """Stop the cell until there is a prediction, and judge it by the outcome of the settings at first."""
        import marimo as mo

        if self._kept.get("prediction") == UNPREDICTED:
            return
        given = prediction.value
        mo.stop(not given, mo.md(self._heads["first"]))
        truth = outcome(**defaults(self._settings))
        said = self.say(truth) if isinstance(truth, str) else truth
        self._said = self.lesson.outcome.judge(self.say(given), said, self.language)
        mo.stop(not self._said.readable, mo.callout(mo.md(self._said.message), kind="warn"))

    def shown(
        self,
        value: float | str,
        draw: Callable[..., Any],
        *given: Any,
        facts: Iterable[str] = (),
        **named: Any,
    ) -> Any:
        """View of an outcome: the prediction, the outcome, the picture of ``draw(*given, **named)``, and what it shows.

        Parameters
        ----------
        value : float or str
            The outcome: a number in SI units, or words.
        draw : callable
            Makes a figure.
        facts : iterable of str
            More for the headline.
        """
        import marimo as mo

        number = value if isinstance(value, str) else self.lesson.outcome.written(value)
        headline = ", ".join([self._heads["headline"].format(self.text.outcome, number), *facts])
        parts = [mo.md(f"## {headline}"), self._picture(functools.partial(draw, *given, **named), "run")]
        if self._said is not None:
            parts.insert(0, mo.callout(mo.md(self._said.message), kind="success" if self._said.ok else "neutral"))
        return mo.vstack([*parts, mo.md(self.text.surprise)])

    def curve(self, outcome: Callable[..., float], chosen: Mapping[str, Any], along: str, name: str = "") -> Any:
        """The outcome against one of the sliders, the others as they are; where there is none the curve has a gap.

        Parameters
        ----------
        outcome : callable
            Gives the number for settings by name.
        chosen : mapping
            The settings' values.
        along : str
            Name of the slider.
        name : str
            Of the number, where it is not the outcome of the headline.
        """
        import marimo as mo

        slider = self._settings[along]
        assert isinstance(slider, Slider)
        first = defaults(self._settings)
        points = {value: self.known(outcome, {**chosen, along: value}) for value in slider.points(chosen[along])}
        known = {value: found for value, found in points.items() if found is not None}
        if not known:
            return mo.md("")
        factor, unit = self.lesson.outcome.scale(list(known.values()))
        mine = self._said.value if self._said and {**chosen, along: 0} == {**first, along: 0} else None
        label, name = self.text.controls[along], name or self.text.outcome
        drawn = functools.partial(
            draw_curves,
            {name: [(value, found / factor) for value, found in known.items()]},
            x=label,
            y=f"{name} ({unit})",
            here=(chosen[along], known[chosen[along]] / factor) if chosen[along] in known else None,
            mine=(first[along], mine / factor) if mine is not None else None,
            log="x" if slider.log else "",
        )
        head = self._heads["curve"].format(outcome=name, setting=label)
        return mo.vstack([mo.md(f"### {head}"), self._picture(drawn, "curve", head)])

    def named(self, result: Result) -> Result:
        """A result whose name is in the page's language, for pictures."""
        return replace(result, name=self.say(result.name))

    def known(self, outcome: Callable[..., float], settings: Mapping[str, Any]) -> float | None:
        """The outcome of settings, simulated once as long as the page is open; None where the run fails."""
        key = tuple(sorted(settings.items()))
        if key not in self._outcomes:
            try:
                self._outcomes[key] = outcome(**settings)
            except SimperfError:  # too little memory, no plan: there is no outcome
                self._outcomes[key] = None
        return self._outcomes[key]

    def _picture(self, draw: Callable[..., Any], name: str, text: str = "") -> Any:
        import marimo as mo

        words = self.text.words
        name, text = f"{self.lesson.name}-{name}", text or self.text.picture
        return mo.Html(picture(draw, self.language, name=name, text=text, words=words))

    def exercises(self) -> Any:
        """A field for the answer to each exercise; its value is the list of answers."""
        import marimo as mo

        fields: list[Any] = []
        for number, exercise in enumerate(self.lesson.exercises, 1):
            label = f"{number}. {exercise.words[self.language].text}"
            if exercise.values:
                fields.append(mo.ui.dropdown([str(value) for value in exercise.values], label=label, full_width=True))
            else:
                fields.append(mo.ui.text(label=label, placeholder=self._heads["answer"], full_width=True))
        return mo.ui.array(fields)

    def closing(self, answers: Any) -> Any:
        """Summary to be remembered, the fields of `exercises` under each other, and what to read."""
        import marimo as mo

        summary = "\n".join(f"- {line}" for line in self.text.summary)
        reading = "\n".join(f"- [{title}]({address})" for title, address in self.text.reading.items())
        parts = [mo.md(f"## {self._heads['summary']}\n\n{summary}"), mo.md(f"## {self._heads['exercises']}"), *answers]
        return mo.vstack([*parts, mo.md(f"## {self._heads['reading']}\n\n{reading}")])

    def verdicts(self, answers: Any) -> Any:
        """Verdicts of the checkers on the answers that were given."""
        import marimo as mo

        found = []
        for number, (exercise, answer) in enumerate(zip(self.lesson.exercises, answers.value, strict=True), 1):
            if answer:
                verdict = exercise.check(str(answer), self.language)
                said = mo.md(f"{number}. {verdict.message}")
                found.append(mo.callout(said, kind="success" if verdict.ok else "warn"))
        return mo.vstack(found) if found else mo.md("")


def _source(program: Callable[..., Any]) -> str:
    """The text of a program, as it stands in the notebook, as Markdown."""
    code = textwrap.dedent(inspect.getsource(program)).removeprefix("@app.function\n").strip()
    return f"```python\n{code}\n```"
