"""What the notebooks of all lessons share: the switch of language, texts, and exercises with their checks."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from simperf.teach.exercise import Language
from simperf.teach.lesson import LANGUAGES, Lesson

__all__ = ["asked", "code", "exercises", "language_switch", "opening", "summary", "verdicts"]

_HEADS: dict[Language, dict[str, str]] = {
    "en": {"summary": "Summary", "exercises": "Exercises", "answer": "Your answer"},
    "zh": {"summary": "小结", "exercises": "练习", "answer": "你的答案"},
}


def language_switch() -> Any:
    """A choice of language; its value is ``"en"`` or ``"zh"``."""
    import marimo as mo

    return mo.ui.radio({name: code for code, name in LANGUAGES.items()}, value=LANGUAGES["en"], inline=True)


def opening(lesson: Lesson, language: Language) -> Any:
    """Title, question, and what stands before the program."""
    import marimo as mo

    text = lesson.text[language]
    return mo.md(f"# {lesson.order}. {text.title}\n\n**{text.question}**\n\n{text.program}")


def summary(lesson: Lesson, language: Language) -> Any:
    """What is to be remembered, as a list."""
    import marimo as mo

    lines = "\n".join(f"- {line}" for line in lesson.text[language].summary)
    return mo.md(f"## {_HEADS[language]['summary']}\n\n{lines}")


def exercises(lesson: Lesson, language: Language) -> Any:
    """A field for the answer to each exercise; its value is the list of answers."""
    import marimo as mo

    heads = _HEADS[language]
    questions = [exercise.words[language].text for exercise in lesson.exercises]
    fields = [
        mo.ui.dropdown([str(value) for value in exercise.values], label=f"{number}. {question}", full_width=True)
        if exercise.values
        else mo.ui.text(label=f"{number}. {question}", placeholder=heads["answer"], full_width=True)
        for number, (exercise, question) in enumerate(zip(lesson.exercises, questions, strict=True), 1)
    ]
    return mo.ui.array(fields)


def asked(answers: Any, language: Language) -> Any:
    """The fields of `exercises` under each other."""
    import marimo as mo

    return mo.vstack([mo.md(f"## {_HEADS[language]['exercises']}"), *answers])


def code(program: Callable[..., Any]) -> Any:
    """The text of a program, as it stands in the notebook."""
    import marimo as mo

    return mo.md(f"```python\n{textwrap.dedent(inspect.getsource(program)).strip()}\n```")


def verdicts(lesson: Lesson, answers: Any, language: Language) -> Any:
    """What the checkers say of the answers that were given."""
    import marimo as mo

    found = []
    for number, (exercise, answer) in enumerate(zip(lesson.exercises, answers.value, strict=True), 1):
        if answer:
            verdict = exercise.check(str(answer), language)
            found.append(mo.callout(mo.md(f"{number}. {verdict.message}"), kind="success" if verdict.ok else "warn"))
    return mo.vstack(found) if found else mo.md("")
