"""`simperf lesson guide`: goals, minutes and the answers that the lessons accept."""

import pytest

from simperf.cli import main
from simperf.teach import find_lesson, lessons
from simperf.teach.guide import guide, guide_rows


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_has_goals_predictions_and_answers_that_are_accepted(language):
    lesson = find_lesson("asynchrony")
    text, said = guide([lesson], language), lesson.text[language]
    assert all(part in text for part in (said.title, said.predict, *said.goals, *said.reading.values()))
    for row, exercise in zip(guide_rows([lesson], language), lesson.exercises, strict=True):
        assert exercise.check(row["answer"], language).ok
        assert f"{row['answer']}." in text


def test_minutes_of_all_lessons_are_added_up():
    some = [find_lesson(name) for name in list(lessons())[:2]]
    assert f"2 lessons, {sum(one.minutes for one in some)} minutes in all." in guide(some, "en")


def test_the_command_writes_a_file_and_refuses_an_unknown_lesson(tmp_path, capsys):
    target = tmp_path / "guide.md"
    assert main(["lesson", "guide", "asynchrony", "--output", str(target)]) == 0
    assert target.read_text("utf-8").startswith("# Lessons of simperf")
    assert main(["lesson", "guide", "asynchrony", "--format", "csv"]) == 0
    assert "400.0 ms" in capsys.readouterr().out
    assert main(["lesson", "guide", "asynchroni"]) == 2


@pytest.mark.parametrize("width", [80, 120])
def test_a_guide_on_a_screen_folds_at_words(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["lesson", "guide", "asynchrony"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "](http" not in line]  # links stay whole
    assert 0.8 * width < max(map(len, lines)) <= width
