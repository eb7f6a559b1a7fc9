"""The guide for teachers: what each lesson is for, how long it takes, and the answers, which the simulator gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simperf.teach.exercise import Language
from simperf.teach.lesson import Lesson

__all__ = ["guide", "guide_rows"]

_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "title": "Lessons of simperf: a guide for teachers",
        "minutes": "{} minutes, section {}",
        "goals": "Afterwards students can:",
        "predict": "They predict first",
        "surprise": "What surprises",
        "exercises": "Exercises and answers",
        "answer": "Answer",
        "mistake": "If it is wrong",
        "reading": "To read",
        "total": "{} lessons, {} minutes in all.",
    },
    "zh": {
        "title": "simperf 课程：教师指南",
        "minutes": "{} 分钟，章节 {}",
        "goals": "学完之后，学生能够：",
        "predict": "先让学生预测",
        "surprise": "出人意料之处",
        "exercises": "练习与答案",
        "answer": "答案",
        "mistake": "答错时的提示",
        "reading": "阅读",
        "total": "共 {} 课，{} 分钟。",
    },
}


def guide_rows(lessons: Sequence[Lesson], language: Language) -> list[dict[str, Any]]:
    """A row for each exercise: the lesson, its minutes, the question and the answer, simulated."""
    return [
        {
            "lesson": lesson.name,
            "minutes": lesson.minutes,
            "exercise": number,
            "question": exercise.words[language].text,
            "answer": exercise.right(),
            "why": exercise.words[language].explain,
        }
        for lesson in lessons
        for number, exercise in enumerate(lesson.exercises, 1)
    ]


def guide(lessons: Sequence[Lesson], language: Language) -> str:
    """The guide as Markdown: goals, minutes, predictions, and exercises with their answers.

    Parameters
    ----------
    lessons : sequence of Lesson
    language : str
    """
    words = _WORDS[language]
    lines = [f"# {words['title']}"]
    if len(lessons) > 1:
        lines += ["", words["total"].format(len(lessons), sum(one.minutes for one in lessons))]
    for lesson in lessons:
        text = lesson.text[language]
        lines += ["", f"## {lesson.order}. {text.title} (`{lesson.name}`)", ""]
        lines += [words["minutes"].format(lesson.minutes, lesson.section), "", text.question, "", words["goals"], ""]
        lines += [f"- {goal}" for goal in text.goals]
        lines += [
            "",
            f"**{words['predict']}.** {text.predict}",
            "",
            f"**{words['surprise']}.** {text.surprise.strip()}",
        ]
        lines += ["", f"### {words['exercises']}", ""]
        for number, exercise in enumerate(lesson.exercises, 1):
            said = exercise.words[language]
            lines += [f"{number}. {said.text}", "", f"   **{words['answer']}: {exercise.right()}.** {said.explain}", ""]
            lines += [f"   *{words['mistake']}:* {said.hint}", ""]
        lines += [f"**{words['reading']}:** " + "; ".join(f"[{name}]({url})" for name, url in text.reading.items())]
    return "\n".join(lines) + "\n"
