"""Commands that are ended at a random moment by each signal; `python -m tests.faults.kills` does it more often."""

import os
import socket
import sqlite3
import sys
from dataclasses import replace

import pytest

from tests.faults import kills
from tests.faults.kills import TARGETS, cached, check_end, check_kept, check_nothing_is_left, endure
from tests.faults.processes import Command
from tests.polling import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")


@pytest.mark.parametrize(
    "name", ["sweep", *(pytest.param(name, marks=pytest.mark.long) for name in ("sweep-local", "plan"))]
)
def test_nothing_is_lost_and_nothing_is_left(name):
    if lacks := TARGETS[name].missing():
        pytest.skip(lacks)
    endure(name, times=1, seed=int(os.environ.get("SIMPERF_TEST_SEED", "1")))


OURS = 'Traceback (most recent call last):\n  File "/x/simperf/cli/run.py", line 3, in run\nKeyboardInterrupt\n'
STARTING = (
    "Traceback (most recent call last):\n"
    '  File "/python/multiprocessing/spawn.py", line 122, in spawn_main\nEOFError: Ran out of input\n'
)
FIRST = OURS.replace("cli/run.py", "__main__.py")


@pytest.mark.parametrize(
    ("which", "code", "err"),
    [
        ("SIGINT", 130, ""),
        ("SIGTERM", 143, "interrupted after 3 points"),
        ("SIGHUP", -1, ""),
        ("SIGKILL", -9, ""),
        ("SIGINT", -2, FIRST),
        ("SIGKILL", -9, STARTING),
    ],
)
def test_an_end_that_is_right(which, code, err):
    check_end(which, code, err)


@pytest.mark.parametrize(
    ("which", "code", "err"),
    [
        ("SIGINT", 1, ""),
        ("SIGTERM", 1, ""),
        ("SIGKILL", 1, ""),
        ("SIGINT", 143, ""),
        ("SIGTERM", 130, ""),
        ("SIGKILL", 137, ""),
        ("SIGINT", 2, "error: s.toml"),
        ("SIGINT", 130, "This is a defect of simperf"),
        ("SIGINT", 130, OURS),
        ("SIGINT", -2, OURS),
        ("SIGINT", 130, FIRST),
        ("SIGTERM", -15, FIRST),
        ("SIGTERM", 143, STARTING),
        ("SIGKILL", -9, STARTING.replace("EOFError", "OSError")),
        ("SIGINT", -2, FIRST.replace("KeyboardInterrupt", "OSError")),
    ],
)
def test_an_end_that_is_wrong_is_found(which, code, err):
    with pytest.raises(AssertionError):
        check_end(which, code, err)


@pytest.mark.parametrize(("before", "seen", "now", "waited"), [(3, 4, 4, True), (3, 3, 3, False), (0, 2, 10**6, True)])
def test_progress_that_is_right(before, seen, now, waited):
    check_kept(before, seen, now, waited=waited)


@pytest.mark.parametrize(("before", "seen", "now", "waited"), [(3, 3, 3, True), (3, 3, 2, False), (3, 5, 4, False)])
def test_points_that_are_lost_or_none_that_is_won_are_found(before, seen, now, waited):
    with pytest.raises(AssertionError, match="kept"):
        check_kept(before, seen, now, waited=waited)


def test_a_command_that_keeps_nothing_makes_no_progress(monkeypatch):
    stuck = ("limits", "d2l/async", "--set", "program.n=20000", "--vary", "program.t1=1..9:9 us")
    target = replace(TARGETS["sweep"], words=stuck, kept=lambda _: 3, result=lambda *_: "", files=frozenset())
    monkeypatch.setitem(kills.TARGETS, "idle", target)
    monkeypatch.setattr(kills, "ENOUGH", 0.1)
    monkeypatch.setattr(kills, "TIMES", 0.0)
    monkeypatch.setattr(kills, "_undisturbed", lambda *_, **__: "")
    with pytest.raises(AssertionError, match="nothing was kept beside 3"):
        endure("idle", times=1, seed=1, signals=("SIGKILL",))


def test_runs_in_the_cache_are_counted(tmp_path):
    assert cached(tmp_path) == 0
    folder = tmp_path / "cache" / "simperf"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "points.sqlite") as base:
        assert cached(tmp_path) == 0
        base.execute("CREATE TABLE points (key TEXT PRIMARY KEY, row TEXT NOT NULL)")
        base.executemany("INSERT INTO points VALUES (?, ?)", [("a", "{}"), ("b", "{}")])
    base.close()
    assert cached(tmp_path) == 2


_SERVE = """
import os, socket, time
one = socket.create_server(("127.0.0.1", 0))
os.fork()
open("ready", "w").close()
time.sleep(60)
"""


def test_a_process_or_a_port_that_stays_is_found(tmp_path):
    command = Command(["-c", _SERVE], tmp_path)
    try:
        wait_until((tmp_path / "ready").exists, "a server")
        sockets = command.sockets()
        assert len(sockets) == 1
        command.process.kill()
        with pytest.raises(AssertionError, match="are left"):
            check_nothing_is_left(command, tmp_path, killed=True, sockets={}, within=0.2)
    finally:
        command.clear()
    check_nothing_is_left(command, tmp_path, killed=True, sockets=sockets)
    with socket.create_server(("127.0.0.1", 0)) as own:
        inode = os.readlink(f"/proc/self/fd/{own.fileno()}")[len("socket:[") : -1]
        with pytest.raises(AssertionError, match="ports are still open"):
            check_nothing_is_left(command, tmp_path, killed=True, sockets={inode: 1})


def test_a_half_written_file_is_found(tmp_path):
    command = Command(["-c", "pass"], tmp_path)
    command.end()
    (tmp_path / "x.json.1.part").touch()
    check_nothing_is_left(command, tmp_path, killed=True, sockets={})
    with pytest.raises(AssertionError, match="half-written"):
        check_nothing_is_left(command, tmp_path, killed=False, sockets={})
    command.clear()
