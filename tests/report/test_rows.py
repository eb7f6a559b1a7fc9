"""`simperf.report.rows`: the same rows as a table, JSON and CSV."""

import csv
import io
import json

import pytest

from simperf.report.rows import rows_text

ROWS = [{"name": "a, b", "count": 10, "text": "[bold]x[/bold]"}, {"name": "c", "count": 2, "text": "y\nz"}]


@pytest.mark.parametrize("output", ["json", "csv"])
def test_read_back(output):
    out = rows_text(ROWS, output)
    rows = json.loads(out) if output == "json" else list(csv.DictReader(io.StringIO(out)))
    assert [{**row, "count": int(row["count"])} for row in rows] == ROWS


def test_a_table_shows_text_as_it_is():
    lines = rows_text(ROWS, "table").splitlines()
    assert lines[0].split() == ["name", "count", "text"]
    assert lines[1].split("  ")[0] == "a, b"
    assert "[bold]x[/bold]" in lines[1]
    assert lines[1].index("10") + 1 == lines[2].index("2"), "numbers stand at the right"


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_no_rows(output):
    assert rows_text([], output).strip() in ("", "[]")


def test_csv_names_units_and_json_does_not():
    assert (
        rows_text([{"name": "a", "time": 1.5, "share": 0.5}], "csv", units={"time": "s", "share": "1"})
        == "name,time [s],share\na,1.5,0.5"
    )
    assert json.loads(rows_text([{"name": "a", "time": 1.5}], "json", units={"time": "s"})) == [
        {"name": "a", "time": 1.5}
    ]


def test_a_name_stays_in_one_piece_wherever_it_stands():
    name, text = "planner-failures-and-more", "words " * 40
    assert name in rows_text([{"number": 1, "name": name, "title": text, "question": text}], "table")
