"""Commands by name: a command's module is imported when it is asked for, and help lists all in their order."""

import sys

import pytest
import typer
from typer.testing import CliRunner

from simperf.cli.command_table import CommandTable, lazy_group

FIRST, GROUP, BROKEN = "tests_command_first", "tests_command_group", "tests_command_broken"


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """Three commands, of which one is in a module that cannot be imported."""
    (tmp_path / f"{FIRST}.py").write_text('def say(word: str) -> None:\n    """Say a word."""\n    print(word)\n')
    (tmp_path / f"{GROUP}.py").write_text(
        "import typer\napp = typer.Typer()\n"
        "@app.command()\ndef one() -> None:\n    print('one')\n"
        "@app.command()\ndef two() -> None:\n    print('two')\n"
    )
    (tmp_path / f"{BROKEN}.py").write_text("raise ImportError('what nobody asked for')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield {"say": (FIRST, "say"), "count": (GROUP, "app"), "broken": (BROKEN, "run")}
    for name in (FIRST, GROUP, BROKEN):
        sys.modules.pop(name, None)


def test_a_command_is_imported_when_it_is_asked_for(homes):
    table = CommandTable(homes)
    assert list(table) == ["say", "count", "broken"]
    assert not {FIRST, GROUP, BROKEN} & set(sys.modules)
    assert table["say"].name == "say"
    assert FIRST in sys.modules
    assert GROUP not in sys.modules
    assert table["say"] is table["say"]
    with pytest.raises(ImportError, match="nobody"):
        table["broken"]
    with pytest.raises(KeyError):
        table["none"]


def test_commands_can_be_added_and_taken_away(homes):
    table = CommandTable(homes)
    table["more"] = command = table["say"]
    del table["broken"]
    assert list(table) == ["say", "count", "more"]
    assert table["more"] is command


def test_functions_and_apps_are_commands_of_a_group(homes):
    app = typer.Typer(cls=lazy_group(homes))
    app.callback()(lambda: None)
    run = CliRunner().invoke
    assert run(app, ["say", "hello"]).output == "hello\n"
    assert run(app, ["count", "two"]).output == "two\n"
    assert run(app, ["count", "three"]).exit_code == 2
    assert BROKEN not in sys.modules
