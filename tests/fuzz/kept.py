"""Finished points that a command keeps, as files to start from: the journal of a sweep, and the cache."""

import contextlib
import json
import os
import sqlite3
import tempfile
from functools import lru_cache
from pathlib import Path
from unittest import mock

import tomli_w

from simperf.cli import main
from simperf.study.journal import canonical
from tests.fuzz.searches import SEARCH
from tests.fuzz.source import Source
from tests.fuzz.sources import sources

__all__ = ["CACHE", "kept"]

#: name of the cache's file in its folder
CACHE = "points.sqlite"
SWEEP = ("sweep", "d2l/async", "--vary", "program.n=10,20,30", "--fast")
JOURNAL = "o.jsonl.journal"
#: what an interrupted search of layouts leaves, and the commands that continue it
SEARCHED = "o.json.journal"
_SEARCHES = tuple(
    ("plan", "plan.toml", "--output", "o.json", "--no-cache", *more) for more in ((), ("--format", "csv"))
)


class Journal(Source):
    """Lines of JSON."""

    def tree(self):
        """The study and its rows."""
        return [json.loads(line) for line in self.raw.splitlines()]

    def written(self, tree):
        """Each entry as a line."""
        return b"".join(canonical(row).encode() + b"\n" for row in tree)


class Rows(Source):
    """The table of the cache."""

    def tree(self):
        """Rows with their keys."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / CACHE
            path.write_bytes(self.raw)
            with contextlib.closing(sqlite3.connect(path)) as base:
                found = base.execute("SELECT key, row FROM points ORDER BY key").fetchall()
        return [{"key": key, "row": json.loads(row)} for key, row in found]

    def written(self, tree):
        """A table with the rows that have a key."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / CACHE
            with contextlib.closing(sqlite3.connect(path)) as base, base:
                base.execute("CREATE TABLE points (key TEXT PRIMARY KEY, row TEXT NOT NULL)")
                rows = [(str(one.get("key")), canonical(one.get("row"))) for one in tree if isinstance(one, dict)]
                base.executemany("INSERT OR REPLACE INTO points VALUES (?, ?)", rows)
            return path.read_bytes()


@lru_cache(maxsize=1)
def kept():
    """Sources of both kinds."""
    plan = sources()["plan"][0].raw
    swept = (*SWEEP, "--no-cache", "-o", "o.jsonl")
    shown = tuple((*SWEEP, "--format", each) for each in ("table", "json", "csv"))
    planned = (("plan", "plan.toml"), ("plan", "plan.toml", "--format", "json"))
    return {
        "journal": [
            Journal("journal", JOURNAL, _journal(swept), (swept, (*swept, "--format", "csv")), {}),
            Journal("journal", SEARCHED, _searched(), _SEARCHES, {"plan.toml": tomli_w.dumps(SEARCH)}),
        ],
        "cache": [
            Rows("cache", CACHE, _cache(SWEEP, {}), shown, {}),
            Rows("cache", CACHE, _cache(planned[0], {"plan.toml": plan}), planned, {"plan.toml": plan.decode()}),
        ],
    }


def _journal(words):
    """What a sweep keeps until its table is written."""
    found = []

    def keep(*_):
        found.append(Path(JOURNAL).read_bytes())

    with mock.patch("simperf.study.table.Table.save", keep), _folder():
        main(list(words))
    return found[0]


def _searched():
    """What a search of layouts keeps until it is written."""
    found = []

    def keep(*_):
        found.append(Path(SEARCHED).read_bytes())

    with mock.patch("simperf.study.layouts.LayoutPlan.save", keep), _folder() as folder:
        (folder / "plan.toml").write_bytes(tomli_w.dumps(SEARCH).encode())
        main(list(_SEARCHES[0]))
    return found[0]


def _cache(words, files):
    """What a command leaves in the cache."""
    with _folder() as folder, mock.patch.dict(os.environ, {"SIMPERF_CACHE": str(folder)}):
        for name, raw in files.items():
            (folder / name).write_bytes(raw)
        main(list(words))
        return (folder / CACHE).read_bytes()


@contextlib.contextmanager
def _folder():
    """A folder of its own, in which nothing is said."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
        contextlib.chdir(folder),
    ):
        yield Path(folder)
