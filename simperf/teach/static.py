"""A lesson as one page that needs nothing but itself: what its notebook shows, run once, with the answers folded."""

from __future__ import annotations

import re
import runpy
from html import escape

from simperf.teach.exercise import Language
from simperf.teach.lesson import Lesson
from simperf.teach.notebook import UNPREDICTED

__all__ = ["static_page"]

_WORDS: dict[Language, dict[str, str]] = {
    "en": {"answer": "Answer", "note": "With sliders: {}"},
    "zh": {"answer": "答案", "note": "带滑块：{}"},
}
#: what only the notebook's own scripts can show: sliders, fields, folded programs
_LIVE = re.compile(r"<(marimo-[a-z-]+)\b.*?</\1>", re.DOTALL)
_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem; overflow-wrap: anywhere; }
div, span { min-width: 0; }
.paragraph { display: block; margin: .8rem 0; }
pre { overflow-x: auto; padding: .8rem; background: rgb(127 127 127 / .12); font-size: .85rem; }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
details { margin: .3rem 0 1rem; }
@media (prefers-color-scheme: dark) { .simperf-picture svg { filter: invert(1) hue-rotate(180deg); } }
"""


class _Chosen:
    """The switch of a notebook's language, already set."""

    def __init__(self, value: Language) -> None:
        self.value = value


def static_page(lesson: Lesson, language: Language) -> str:
    """The lesson as HTML, in one language, without a network and without Python.

    Parameters
    ----------
    lesson : Lesson
    language : str
    """
    notebook = runpy.run_path(str(lesson.notebook))
    given = {"language": _Chosen(language), "kept": {"prediction": UNPREDICTED}}
    outputs, _ = notebook["app"].run(defs=given)
    shown = "".join(_LIVE.sub("", getattr(output, "text", "")) for output in outputs)
    words = _WORDS[language]
    items = []
    for exercise in lesson.exercises:
        said = exercise.words[language]
        answer = (
            f"<details><summary>{words['answer']}</summary>{escape(exercise.right())}. {escape(said.explain)}</details>"
        )
        items.append(f"<li>{escape(said.text)}{answer}</li>")
    note = words["note"].format(f"<code>simperf lesson open {lesson.name}</code>")
    title = escape(f"simperf: {lesson.text[language].title}")
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f"<head>{meta}<title>{title}</title><style>{_STYLE}</style></head>"
    body = f"<body>{shown}<ol>{''.join(items)}</ol><p>{note}</p></body>"
    return f'<!doctype html>\n<html lang="{language}">{head}{body}</html>\n'
