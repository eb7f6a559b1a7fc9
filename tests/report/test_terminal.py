import io
import sys

import pytest
from rich.text import Text

from simperf.report.terminal import bar, fold_message, to_text, unicode_output


class Screen(io.StringIO):
    """A standard output that is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_colour_on_a_terminal_unless_the_user_says_no(monkeypatch, no_color, colored):
    monkeypatch.setattr(sys, "stdout", Screen())
    monkeypatch.setenv("NO_COLOR", no_color)
    assert ("\x1b[" in to_text(Text("result", style="green"))) is colored


@pytest.mark.parametrize(("said", "width"), [(None, 80), ("", 80), ("wide", 80), ("120", 120), ("3", 40)])
def test_no_colour_into_a_file_and_80_columns_unless_the_user_says_another_number(monkeypatch, said, width):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.delenv("COLUMNS", raising=False)
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)
    text = to_text(Text("word " * 80, style="green"))
    assert "\x1b" not in text
    assert width - 5 < max(map(len, text.splitlines())) <= width


def test_brackets_of_names_are_no_markup():
    assert to_text(Text("rate [B/s] of [red]link[/red]"), color=False) == "rate [B/s] of [red]link[/red]"


@pytest.mark.parametrize(("encoding", "block"), [("utf-8", True), ("UTF8", True), ("ascii", False), (None, False)])
def test_blocks_only_where_they_can_be_shown(monkeypatch, encoding, block):
    screen = Screen()
    screen.encoding = encoding
    monkeypatch.setattr(sys, "stdout", screen)
    assert unicode_output() is block
    assert bar(1.0, 2, unicode=unicode_output()) == ("██" if block else "##")


def test_a_message_folds_on_a_terminal_and_keeps_its_lines_in_a_pipe(monkeypatch):
    known = ", ".join(f"machine-{number}" for number in range(20))
    start = "error: s.toml:2: machine.use: unknown machine 'nonesuch'; known: "
    text = f"{start}{known}\n    expected: /a/long/path-of-one-piece"
    assert fold_message(text) == text
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    first, *others, last = fold_message(text).splitlines()
    assert first.startswith(start)
    assert max(map(len, (first, *others))) <= 80
    assert all(line.startswith("    machine-") for line in others)
    assert last == "    expected: /a/long/path-of-one-piece"
