"""Each task of a new user is answered by what its page shows: the answer names what the task lists."""

import shlex

import pytest

from simperf.cli import main
from tests.usability.__main__ import run_task
from tests.usability.tasks import USERS, found, read_tasks

TASKS = [
    pytest.param(one, id=f"{one.user}-{one.number}", marks=pytest.mark.long if one.long else ()) for one in read_tasks()
]


def test_each_user_has_five_tasks():
    assert [(one.user, one.number) for one in read_tasks()] == [(user, n) for user in USERS for n in range(1, 6)]
    assert all(one.names or one.writes for one in read_tasks())


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_answered_by_the_commands_of_its_page(task, tmp_path, monkeypatch, capsys):
    if task.extra:
        pytest.importorskip(task.extra)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SIMPERF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SIMPERF_TRUTH", raising=False)
    task.prepare(tmp_path)
    for command in task.commands:
        assert command in task.shown.replace("\\\n", " "), f"{task.page} does not show {command}"
        words = ["serial" if word == "local" else word for word in shlex.split(command)[1:]]
        assert main(words) == 0, capsys.readouterr().err
    answer = capsys.readouterr().out
    assert task.missing(answer, tmp_path) == [], answer


def test_what_is_not_named_is_found(tmp_path):
    task = next(one for one in read_tasks() if one.writes and one.names)
    assert task.missing("", tmp_path) == [*task.names, *task.writes]
    assert found("^b.*d$", "a\nb\nc d\n")
    assert not found("^c$", "b\nc d\n")


def test_an_environment_without_the_program_fails_its_tasks(tmp_path):
    task = read_tasks()[-1]
    (tmp_path / "simperf").write_text("#!/bin/sh\necho nothing\n")
    (tmp_path / "simperf").chmod(0o755)
    _, lost = run_task(task, tmp_path)
    assert lost == list(task.names)
