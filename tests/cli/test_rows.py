"""`simperf.cli.rows`: the same rows as a table, JSON and CSV."""

import csv
import io
import json

import pytest

from simperf.cli.rows import write_rows

ROWS = [{"name": "a, b", "count": 10, "text": "[bold]x[/bold]"}, {"name": "c", "count": 2, "text": "y\nz"}]


@pytest.mark.parametrize("output", ["json", "csv"])
def test_read_back(capsys, output):
    write_rows(ROWS, output)
    out = capsys.readouterr().out
    rows = json.loads(out) if output == "json" else list(csv.DictReader(io.StringIO(out)))
    assert [{**row, "count": int(row["count"])} for row in rows] == ROWS


def test_a_table_shows_text_as_it_is(capsys):
    write_rows(ROWS, "table")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "count", "text"]
    assert lines[1].split("  ")[0] == "a, b"
    assert "[bold]x[/bold]" in lines[1]
    assert lines[1].index("10") + 1 == lines[2].index("2"), "numbers stand at the right"


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_no_rows(capsys, output):
    write_rows([], output)
    assert capsys.readouterr().err == ""


def test_csv_names_units_and_json_does_not(capsys):
    write_rows([{"name": "a", "time": 1.5, "share": 0.5}], "csv", units={"time": "s", "share": "1"})
    assert capsys.readouterr().out == "name,time [s],share\na,1.5,0.5\n"
    write_rows([{"name": "a", "time": 1.5}], "json", units={"time": "s"})
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "time": 1.5}]


def test_a_name_stays_in_one_piece_wherever_it_stands(capsys):
    name, text = "planner-failures-and-more", "words " * 40
    write_rows([{"number": 1, "name": name, "title": text, "question": text}], "table")
    assert name in capsys.readouterr().out
