"""`simperf.teach.static`: a lesson as one page, in one language, that needs nothing else."""

import re

import pytest

from simperf.teach.lesson import find_lesson

pytest.importorskip("marimo")


@pytest.mark.parametrize(("language", "word"), [("en", "Answer"), ("zh", "答案")])
def test_every_exercise_has_its_answer_folded_behind_it(language, word):
    from simperf.teach.static import static_page

    lesson = find_lesson("regimes")
    page = static_page(lesson, language)
    assert page.startswith("<!doctype html>")
    assert f'<html lang="{language}">' in page
    assert page.count(f"<summary>{word}</summary>") == len(lesson.exercises)
    assert lesson.text[language].title in page
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=|<img[^>]+src=.http", page)
