"""Lessons: texts whole in both languages, notebooks that run, and exercises whose checkers can tell."""

import inspect
import re
import runpy
import subprocess
import sys

import pytest

from simperf.errors import InputError, UnknownNameError
from simperf.teach import Lesson, find_lesson, lessons

LESSONS = [find_lesson(name) for name in lessons()]
#: what stands in Latin letters in Chinese pictures, too
NAMES = {
    *("cpu", "gpu", "GPU", "hub", "plx", "stream", "eager", "DDP", "NVLink", "PCIe", "Gbit", "sxm", "xlarge"),
    *("FLOP", "TFLOP", "USD", "min", "int", "tensor", "vector", "elementwise", "ResNet", "ImageNet", "Young", "Daly"),
    "ZeRO",
}
EXERCISES = [pytest.param(e, id=f"{lesson.name}-{i}") for lesson in LESSONS for i, e in enumerate(lesson.exercises, 1)]


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_checker_accepts_the_right_answer_and_refuses_five_wrong_ones(exercise):
    right = exercise.right()
    for language in ("en", "zh"):
        accepted = exercise.check(f" {right} ", language)
        assert accepted.ok, accepted.message
        assert exercise.words[language].explain in accepted.message
        for wrong in exercise.wrong:
            refused = exercise.check(wrong, language)
            assert not refused.ok, wrong
            assert exercise.words[language].hint in refused.message, (wrong, refused.message)
    assert len(set(exercise.wrong)) >= 5


@pytest.mark.parametrize("exercise", EXERCISES)
def test_what_cannot_be_read_is_told_and_not_judged(exercise):
    verdict = exercise.check("no idea", "en")
    assert not verdict.ok
    assert "cannot be read" in verdict.message


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_both_languages_say_it_all(lesson):
    assert lesson.exercises
    for language in ("en", "zh"):
        text = lesson.text[language]
        assert all((text.title, text.question, text.program.strip(), text.surprise.strip(), text.picture))
        assert len(text.summary) >= 3
    chinese = lesson.text["zh"]
    for part in (chinese.title, chinese.question, chinese.surprise, *chinese.summary):
        assert re.search(r"[\u4e00-\u9fff]", part), part
    for exercise in lesson.exercises:
        for part in (exercise.words["zh"].text, exercise.words["zh"].hint, exercise.words["zh"].explain):
            assert re.search(r"[\u4e00-\u9fff]", part), part


def test_lessons_are_numbered_without_gaps():
    assert [lesson.order for lesson in LESSONS] == list(range(1, len(LESSONS) + 1))
    assert find_lesson("1").name == LESSONS[0].name


def test_a_notebook_runs_as_a_script():
    pytest.importorskip("marimo", reason="marimo is not installed")
    words = [sys.executable, str(LESSONS[0].notebook)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Chosen:
    """A control of a notebook, at a value."""

    def __init__(self, value):
        self.value = value


def _played(lesson, **chosen):
    notebook = runpy.run_path(str(lesson.notebook))
    outputs, names = notebook["app"].run(defs={name: Chosen(value) for name, value in chosen.items()})
    return notebook["program"], names, "".join(output.text for output in outputs if output is not None)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_every_cell_of_the_notebook_runs(lesson):
    pytest.importorskip("marimo", reason="marimo is not installed")
    program, names, page = _played(lesson)
    assert names["page"].lesson.name == lesson.name
    assert len(names["answers"].value) == len(lesson.exercises)
    assert page.count("<svg role") == 2  # for a wide page and for a phone
    body = inspect.getsource(program).removeprefix("@app.function\n").strip().splitlines()[1:]
    assert len(body) <= 15  # about ten lines


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_its_picture_is_chinese_but_for_names_and_units(lesson):
    pytest.importorskip("marimo", reason="marimo is not installed")
    *_, page = _played(lesson, language="zh")
    words = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert any(re.search(r"[\u4e00-\u9fff]", word) for word in words)
    assert set(re.findall(r"[A-Za-z]{3,}", " ".join(words))) <= NAMES


def test_a_plan_that_nothing_meets_is_said_not_raised():
    pytest.importorskip("marimo", reason="marimo is not installed")
    *_, page = _played(find_lesson("planner-cluster"), language="zh", days=0.01, budget=100, nodes=1)
    assert "没有方案同时满足期限与预算" in page
    assert "<svg role" not in page


def test_an_unknown_lesson_and_a_broken_file(tmp_path):
    with pytest.raises(UnknownNameError, match="asynchrony"):
        find_lesson("asynchronie")
    path = tmp_path / "broken.toml"
    path.write_text('order = "one"\nsection = "12.2"\n[en]\ntitle = 3\n')
    with pytest.raises(InputError) as caught:
        Lesson.load(path)
    keys = [problem.key for problem in caught.value.problems]
    assert {"order", "en.title", "zh", "exercise"} <= set(keys)
    assert caught.value.problems[keys.index("en.title")].line == 4
