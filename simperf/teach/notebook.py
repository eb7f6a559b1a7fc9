"""What the notebooks of all lessons share: the switch of language, texts, pictures, and exercises with their checks.

A notebook says what is its own: the program, its controls, and what is drawn of a run. The rest is a `Page`.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from simperf.report.language import phrasebook
from simperf.teach.exercise import Language
from simperf.teach.lesson import LANGUAGES, find_lesson
from simperf.teach.pictures import picture

__all__ = ["Page", "controls", "language_switch"]

_HEADS: dict[Language, dict[str, str]] = {
    "en": {"summary": "Summary", "exercises": "Exercises", "answer": "Your answer"},
    "zh": {"summary": "小结", "exercises": "练习", "answer": "你的答案"},
}


def language_switch() -> Any:
    """A choice of language; its value is ``"en"`` or ``"zh"``."""
    import marimo as mo

    return mo.ui.radio({name: code for code, name in LANGUAGES.items()}, value=LANGUAGES["en"], inline=True)


def controls(*elements: Any) -> Any:
    """Sliders, switches and choices beside each other, or below where there is no room."""
    import marimo as mo

    return mo.hstack(elements, wrap=True, justify="start", gap=1)


class Page:
    """A lesson in one language, as its notebook shows it.

    Parameters
    ----------
    name : str
        Of the lesson.
    language : str
        What `language_switch` says.

    Attributes
    ----------
    lesson : Lesson
    text : Text
        Its words in the language.
    """

    def __init__(self, name: str, language: Language) -> None:
        self.lesson = find_lesson(name)
        self.language = language
        self.text = self.lesson.text[language]
        self._heads = _HEADS[language]

    def say(self, english: str) -> str:
        """A word of the notebook in the page's language: of the lesson's own ``words``, or of the phrase book."""
        if english in self.text.words or self.language == "en":
            return self.text.words.get(english, english)
        return phrasebook(self.language).say(english)

    def opening(self, program: Callable[..., Any], *more: Callable[..., Any]) -> Any:
        """Title, question, and the program that the lesson is about; `more` functions unfold at a click."""
        import marimo as mo

        text = self.text
        head = mo.md(f"# {self.lesson.order}. {text.title}\n\n**{text.question}**\n\n{text.program}")
        folded = [mo.accordion({each.__name__: mo.md(_source(each)) for each in more})] if more else []
        return mo.vstack([head, mo.md(_source(program)), *folded])

    def shown(self, headline: str, draw: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """What came out: the headline, the picture that ``draw(*given, **named)`` makes, and what is to be seen."""
        import marimo as mo

        shown = picture(
            functools.partial(draw, *given, **named),
            self.language,
            name=self.lesson.name,
            text=self.text.picture,
            words=self.text.words,
        )
        return mo.vstack([mo.md(f"## {headline}"), mo.Html(shown), mo.md(self.text.surprise)])

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
        """What is to be remembered, and the fields of `exercises` under each other."""
        import marimo as mo

        lines = "\n".join(f"- {line}" for line in self.text.summary)
        summary = mo.md(f"## {self._heads['summary']}\n\n{lines}")
        return mo.vstack([summary, mo.md(f"## {self._heads['exercises']}"), *answers])

    def verdicts(self, answers: Any) -> Any:
        """What the checkers say of the answers that were given."""
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
