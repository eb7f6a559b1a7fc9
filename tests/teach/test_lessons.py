"""Lessons: texts whole in both languages, notebooks that run, and exercises whose checkers can tell."""

import ast
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import simperf
from simperf.errors import InputError, UnknownNameError
from simperf.teach import Lesson, find_lesson, lessons
from tests.teach.lesson_page import prediction as predicted

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
        assert len(text.goals) >= 2
        assert all(address.startswith("https://") for address in text.reading.values())
    chinese = lesson.text["zh"]
    assert chinese.controls.keys() == lesson.text["en"].controls.keys()
    sentences = (chinese.question, chinese.surprise, chinese.predict, *chinese.summary, *chinese.goals)
    for part in (chinese.title, chinese.outcome, *sentences):
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


def _played(lesson, language="en", prediction=None, **settings):
    """A lesson's notebook, its names and its page, with a prediction, and some settings that are not those at first."""
    notebook = runpy.run_path(str(lesson.notebook))
    kept = {"prediction": predicted(lesson) if prediction is None else prediction, "settings": settings}
    outputs, names = notebook["app"].run(defs={"language": Chosen(language), "kept": kept})
    return notebook["program"], names, "".join(output.text for output in outputs if output is not None)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_every_cell_of_the_notebook_runs(lesson):
    pytest.importorskip("marimo", reason="marimo is not installed")
    program, names, page = _played(lesson)
    assert names["page"].lesson.name == lesson.name
    assert len(names["answers"].value) == len(lesson.exercises)
    curve = "page.curve(" in lesson.notebook.read_text("utf-8")  # of others the picture itself is the curve
    assert page.count("<svg role") == 2 + 2 * curve  # for a wide page and for a phone
    assert lesson.text["en"].outcome in page
    body = inspect.getsource(program).removeprefix("@app.function\n").strip().splitlines()[1:]
    assert len(body) <= 15  # about ten lines


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_its_picture_is_chinese_but_for_names_and_units(lesson):
    pytest.importorskip("marimo", reason="marimo is not installed")
    *_, page = _played(lesson, language="zh")
    words = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert any(re.search(r"[\u4e00-\u9fff]", word) for word in words)
    assert set(re.findall(r"[A-Za-z]{3,}", " ".join(words))) <= NAMES


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_nothing_is_shown_before_a_prediction(lesson):
    pytest.importorskip("marimo", reason="marimo is not installed")
    *_, page = _played(lesson, prediction="")
    assert "<svg role" not in page
    assert lesson.text["en"].surprise.strip().splitlines()[0] not in page


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_programs_use_public_names_only(lesson):
    """What docs/reference documents: the names of `simperf`, and those of its packages."""
    documented = Path("docs/reference/packages.md").read_text("utf-8")
    tree = ast.parse(lesson.notebook.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("simperf"):
            for name in node.names:
                if node.module == "simperf":
                    assert name.name in simperf.__all__
                elif node.module != "simperf.teach.notebook":
                    assert f"from {node.module} import" in documented, node.module


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_labels_are_in_one_language(lesson):
    assert not re.search(r"[\u4e00-\u9fff]", lesson.notebook.read_text("utf-8"))
    for label in lesson.text["en"].controls.values():
        assert not re.search(r"[\u4e00-\u9fff]", label)


def test_a_prediction_is_judged_by_what_is_simulated():
    pytest.importorskip("marimo", reason="marimo is not installed")
    lesson = find_lesson("synchronisation")
    assert "You predicted 62.00 ms: it is 60.00 ms." in _played(lesson, prediction="62 ms")[-1]
    assert "your prediction is 2 times that" in _played(lesson, prediction="120 ms")[-1]
    unreadable = _played(lesson, prediction="a while")[-1]
    assert "cannot be read as a prediction" in unreadable
    assert "<svg role" not in unreadable


def test_a_plan_that_nothing_meets_is_said_not_raised():
    pytest.importorskip("marimo", reason="marimo is not installed")
    *_, page = _played(find_lesson("planner-cluster"), language="zh", days=0.08, budget=100, nodes=1)
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
