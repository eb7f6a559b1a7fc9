"""A lesson: texts in English and Chinese beside a notebook, and its exercises."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from simperf.errors import InputError, SimperfError, UnknownNameError
from simperf.files import TomlFile, read_toml
from simperf.teach.exercise import Exercise, ExerciseTable, Language, LessonModel
from simperf.teach.outcome import Outcome, OutcomeTable

__all__ = ["LANGUAGES", "Lesson", "Text", "find_lesson", "lessons", "lessons_folder"]

#: the languages of every lesson, and how each calls itself
LANGUAGES: dict[Language, str] = {"en": "English", "zh": "简体中文"}


class Text(LessonModel):
    """A lesson's words in one language; Markdown.

    `outcome` says what the number in the headline is, and `predict` asks for it before it is shown, with the settings
    that the page opens with. `controls` are labels of the settings, by their names in the notebook. `reading` are
    sections of the textbook and papers with their addresses. `words` are those of the notebook and of its pictures that
    are not in the common phrase book, from the English.
    """

    title: str
    goals: tuple[str, ...]
    question: str
    outcome: str
    predict: str
    program: str
    surprise: str
    picture: str
    summary: tuple[str, ...]
    controls: dict[str, str]
    reading: dict[str, Annotated[str, Field(pattern=r"^https://\S+$")]]
    words: dict[str, str] = Field(default_factory=dict)


class _LessonTable(LessonModel):
    order: int
    section: str
    minutes: Annotated[int, Field(gt=0, le=240)]
    outcome: OutcomeTable
    en: Text
    zh: Text
    exercise: tuple[ExerciseTable, ...]


@dataclass(frozen=True)
class Lesson:
    """One lesson.

    Parameters
    ----------
    name : str
    order : int
        Its place in the course, from 1.
    section : str
        Of the book that it follows.
    minutes : int
        That it takes in class, exercises included.
    outcome : Outcome
        The number that its settings change, and that is predicted.
    notebook : Path
        The reactive notebook, a plain Python file.
    text : dict of str to Text
        By language.
    exercises : tuple of Exercise
    """

    name: str
    order: int
    section: str
    minutes: int
    outcome: Outcome
    notebook: Path
    text: dict[Language, Text]
    exercises: tuple[Exercise, ...]

    @classmethod
    def load(cls, path: Path) -> Lesson:
        """Read a lesson's text file; the notebook of the same name stands beside it.

        Raises
        ------
        InputError
            The file does not hold a lesson; all that is wrong is named.
        """
        toml = read_toml(path)
        try:
            table = _LessonTable.model_validate(toml.data)
        except ValidationError as error:
            raise InputError(_problems(error, toml)) from None
        texts: dict[Language, Text] = {"en": table.en, "zh": table.zh}
        exercises = tuple(each.build() for each in table.exercise)
        notebook = path.with_suffix(".py")
        outcome = table.outcome.build()
        return cls(path.stem, table.order, table.section, table.minutes, outcome, notebook, texts, exercises)


def _problems(error: ValidationError, toml: TomlFile) -> list:  # type: ignore[type-arg]
    return [
        toml.problem(tuple(each["loc"]), each["msg"], value=each["input"] if each["type"] != "missing" else "")
        for each in error.errors()
    ]


def lessons_folder() -> Path:
    """The folder that lessons, and the playground, are shipped in."""
    package = Path(str(files("simperf")))
    for folder in (package / "_shipped" / "lessons", package.parent / "docs" / "lessons"):
        if folder.is_dir():
            return folder
    raise SimperfError("this installation has no lessons: one from a wheel, or from a checkout, is expected")


def lessons() -> dict[str, Path]:
    """Name to text file of each lesson, in the order of the course."""
    found = [Lesson.load(path) for path in sorted(lessons_folder().glob("*.toml"))]
    return {lesson.name: lesson.notebook.with_suffix(".toml") for lesson in sorted(found, key=lambda each: each.order)}


def find_lesson(name: str) -> Lesson:
    """The lesson of that name or number.

    Raises
    ------
    UnknownNameError
        There is none; the message offers the nearest.
    """
    known = lessons()
    if name.isdigit() and 1 <= int(name) <= len(known):
        name = list(known)[int(name) - 1]
    if name not in known:
        raise UnknownNameError("lesson", name, known)
    return Lesson.load(known[name])
