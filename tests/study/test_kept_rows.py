"""Journals and caches are files like all others: what is no row of a point is refused, or made anew."""

import contextlib
import json
import os
import sqlite3

import pytest

from simperf.errors import InputError
from simperf.study.sweep import sweep

DEEP = "[" * 200_000
#: what a row may not be, by what is changed
WRONG = {
    "no keys": {},
    "a list": [],
    "brackets": DEEP,
    "metrics as a list": {"metrics": []},
    "metrics as numbers": {"metrics": {"rate": 3}},
    "time as a text": {"time": "3 s"},
    "time below 0": {"time": -5.0},
    "time that is no number": {"time": float("nan")},
    "time without an end": {"time": float("inf")},
    "time below its lower bound": {"time": 1e-9, "floor": 1.0},
    "another set": {"set": {"program.n": 77}},
    "another seed": {"seed": 5},
    "a key too many": {"timme": 1.0},
    "an error that is none": {"error": 3},
    "draws that nobody asked for": {"draws": [1.0]},
    "a rate below 0": {"metrics": {"rate": [-1.0, "1/s"]}},
    "a regime that there is not": {"regime": "-3 s"},
    "work that no float holds": {"work": {"operations": [10**400, "1"]}},
    "digits": '{"point": ' + "9" * 5000 + "}",
}


@pytest.fixture
def base(own):
    return own


def swept(base, folder, **options):
    output = folder / "t.jsonl"
    return sweep(base, {"program.n": [1, 2, 3]}, output=output, **{"cache": False, **options})


def written(wrong, row):
    if isinstance(wrong, str):
        return wrong
    return json.dumps(wrong if isinstance(wrong, list) or not wrong else {**row, **wrong})


@pytest.fixture
def kept(base, tmp_path, monkeypatch):
    """The lines of a journal with all points of a sweep, and the path under which it is looked for."""
    lines = []
    monkeypatch.setattr("simperf.study.table.Table.save", lambda *_: lines.extend(path.read_bytes().splitlines(True)))
    path = tmp_path / "t.jsonl.journal"
    swept(base, tmp_path)
    assert len(lines) == 4
    path.write_bytes(b"".join(lines))
    return path, [line.decode() for line in lines]


@pytest.mark.parametrize("name", WRONG)
def test_a_line_that_is_no_point_is_refused_by_its_number(base, kept, tmp_path, name):
    path, lines = kept
    lines[2] = written(WRONG[name], json.loads(lines[2])) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(InputError, match=r"journal:3: this line is no point of the study: (.|\n)*--fresh"):
        swept(base, tmp_path)
    assert path.read_text() == "".join(lines)
    assert len(swept(base, tmp_path, fresh=True)) == 3


def test_a_point_that_stands_twice_is_refused(base, kept, tmp_path):
    path, lines = kept
    path.write_text("".join([*lines, lines[2]]))
    with pytest.raises(InputError, match=r"journal:5: .*the point stands twice"):
        swept(base, tmp_path)


def test_a_last_line_that_is_torn_is_made_anew(base, kept, tmp_path):
    path, lines = kept
    path.write_text("".join(lines)[:-20])
    assert [row["time"] for row in swept(base, tmp_path).rows] == [json.loads(line)["time"] for line in lines[1:]]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_journal_that_is_no_file(base, tmp_path, kind):
    path = tmp_path / "t.jsonl.journal"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    told = {"pipe": "a pipe", "device": "a device", "folder": "a directory"}[kind]
    with pytest.raises(InputError, match=f"journal: this is {told}, not a file"):
        swept(base, tmp_path)


@pytest.mark.parametrize("name", WRONG)
def test_a_cached_row_that_is_none_is_made_anew(base, tmp_path, monkeypatch, name):
    monkeypatch.setenv("SIMPERF_CACHE", str(tmp_path / "cache"))
    first = swept(base, tmp_path, cache=True)
    with contextlib.closing(sqlite3.connect(tmp_path / "cache" / "points.sqlite")) as table, table:
        rows = table.execute("SELECT key, row FROM points").fetchall()
        assert len(rows) == 3
        changed = [(written(WRONG[name], json.loads(row)), key) for key, row in rows]
        table.executemany("UPDATE points SET row = ? WHERE key = ?", changed)
    assert swept(base, tmp_path, cache=True).rows == first.rows
    with contextlib.closing(sqlite3.connect(tmp_path / "cache" / "points.sqlite")) as table:
        assert sorted(table.execute("SELECT key, row FROM points")) == sorted(rows)


def test_a_cache_of_something_else_is_no_cache(base, tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "points.sqlite").write_bytes(b"x" * 9999)
    monkeypatch.setenv("SIMPERF_CACHE", str(tmp_path / "cache"))
    assert len(swept(base, tmp_path, cache=True)) == 3
