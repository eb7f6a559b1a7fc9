"""Long commands that are ended at random moments, and begun again until they are done.

Each command is played undisturbed first, then ended again and again in one folder: by Ctrl-C, SIGTERM, SIGHUP and
SIGKILL. Whatever moment it was, no process, no namespace and no half-written file stays, nothing that was done is lost,
and in the end the result is that of the undisturbed command.

    python -m tests.faults.kills --times 10 sweep-local measure
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.faults.processes import Command, listening
from tests.polling import wait_until

__all__ = ["SIGNALS", "TARGETS", "cached", "check_end", "check_kept", "check_nothing_is_left", "endure"]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")
ROOT = Path(__file__).parents[2]
#: how long processes may take to end after a command that was killed [s]
PATIENCE = 30.0
#: within which a command must keep something more: a time [s], and times as long as all of it took [1]
ENOUGH, TIMES = 60.0, 5.0


@dataclass(frozen=True)
class Target:
    """A command that keeps what is done.

    Parameters
    ----------
    words : tuple of str
        Its arguments; ``{root}`` is this repository.
    result : callable
        What it has made in a folder, of the folder and its standard output; the same however often it was ended.
    kept : callable
        How much is kept in a folder; never less than before.
    files : frozenset of str
        What a folder holds in the end.
    text : mapping of str to str
        Files that are there before.
    again : bool
        Parts of what is done outlive an end; without, the command begins anew.
    needs : str
        A module without which it cannot be run.
    """

    words: tuple[str, ...]
    result: Callable[[Path, str], object]
    kept: Callable[[Path], int]
    files: frozenset[str]
    text: tuple[tuple[str, str], ...] = ()
    again: bool = True
    needs: str = ""

    def missing(self) -> str:
        """Why it cannot be run here; empty if it can."""
        if self.needs and find_spec(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.words[:2] == ("calibrate", "cluster"):
            from simperf.calibrate.cluster.requirements import missing

            return "; ".join(map(str, missing()))
        return ""


def _lines(folder: Path) -> int:
    """Points of a sweep that are kept: in its journal, or all of them in its table."""
    if (folder / "table.jsonl").exists():
        return 10**6
    journal = folder / "table.jsonl.journal"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def cached(folder: Path) -> int:
    """Runs that are kept in the cache."""
    path = folder / "cache" / "simperf" / "points.sqlite"
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as base:
        there = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'points'").fetchone()[0]
        return int(base.execute("SELECT count(*) FROM points").fetchone()[0]) if there else 0


def _points(folder: Path) -> int:
    """Points of a recording; a file that is not whole is an error."""
    path = folder / "recording.json"
    return len(json.loads(path.read_text("utf-8"))["measurements"]) if path.exists() else 0


def _keys(folder: Path, out: str) -> object:
    points = json.loads((folder / "recording.json").read_text("utf-8"))["measurements"]
    return sorted(json.dumps([point["series"], point["at"]], sort_keys=True) for point in points)


def _sweep(engine: str, needs: str = "") -> Target:
    words = ("sweep", "d2l/async", "--vary", "program.n=60000..60009:10", "--fast", "--no-cache")
    return Target(
        (*words, "--engine", engine, "-o", "table.jsonl"),
        lambda folder, out: (folder / "table.jsonl").read_bytes(),
        _lines,
        frozenset({"table.jsonl"}),
        needs=needs,
    )


_PLAN = """\
[plan]
model = "resnet50"
precision = "fp16"
samples = 1_281_167
epochs = 90
deadline = "24 h"
budget = "200 USD"
[candidates]
instances = ["p3-8xlarge", "p3-16xlarge", "p4d-24xlarge"]
nodes = [1, 2]
strategies = ["ddp"]
batch_per_gpu = [64, 128]
"""
_FIT = ("{root}/calibration/cpu-epyc-zen5-2c-1.json.gz", "-o", "profile.toml")
_CLUSTER = ("--hosts", "2", "--only", "send", "--priority", "ordinary")

TARGETS = {
    "sweep": _sweep("serial"),
    "sweep-local": _sweep("local:2"),
    "sweep-dask": _sweep("dask:2", "distributed"),
    "plan": Target(
        ("plan", "plan.toml", "--format", "json"),
        lambda folder, out: out,
        cached,
        frozenset({"plan.toml"}),
        text=(("plan.toml", _PLAN),),
    ),
    "measure": Target(
        ("calibrate", "measure", "-o", "recording.json", "--quick", "--only", "elementwise", "--device", "cpu"),
        _keys,
        _points,
        frozenset({"recording.json"}),
        needs="torch",
    ),
    "measure-training": Target(
        (
            *("calibrate", "measure", "-o", "recording.json", "--set", "training"),
            "--device",
            "cpu",
            "--only",
            "launches",
        ),
        _keys,
        _points,
        frozenset({"recording.json"}),
        needs="torch",
    ),
    "fit": Target(
        ("calibrate", "fit", *_FIT),
        lambda folder, out: (folder / "profile.toml").read_bytes(),
        lambda folder: (folder / "profile.toml").exists(),
        frozenset({"profile.toml"}),
        again=False,
        needs="scipy",
    ),
    "cluster": Target(
        (*("calibrate", "cluster", "-o", "recording.json", "--quick"), *_CLUSTER),
        _keys,
        _points,
        frozenset({"recording.json"}),
        needs="torch",
    ),
}


def _namespaces() -> set[str]:
    """Namespaces of boxed clusters; none where there is no such command."""
    try:
        done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
    except OSError:
        return set()
    return {line.split()[0] for line in done.stdout.splitlines() if line.startswith("simperf")}


def _start(target: Target, folder: Path) -> Command:
    for name, text in target.text:
        (folder / name).write_text(text, "utf-8")
    return Command(["-m", "simperf", *(word.format(root=ROOT) for word in target.words)], folder)


def check_end(which: str, code: int, err: str) -> None:
    """A command that was sent a signal has ended by itself, or with the code of that signal, and without a fault.

    Python ends itself by SIGINT where an interrupt has passed through its exec(), as in a dataclass's definition; and
    as the signal has it before our handlers are there and after they have gone. What Python says of an interrupt there
    names no file of ours but the first. A process that was just starting as its parent was killed finds nothing to
    read, and says so.
    """
    number = getattr(signal, which)
    right = (0, -number) if which == "SIGKILL" else (0, 128 + number, -number)
    assert code in right, (which, code, err[-2000:])
    assert "defect" not in err, err[-2000:]
    told = err.partition("Traceback (most recent call last)")[2]
    ours = re.search(r'File "[^"]*simperf/(?!__main__\.py")', told)
    interrupted = code == -signal.SIGINT and "KeyboardInterrupt" in told
    orphaned = code == -signal.SIGKILL and "in spawn_main" in told and "EOFError: Ran out of input" in told
    assert not told or ((interrupted or orphaned) and not ours), err[-2000:]


def check_kept(before: int, seen: int, now: int, *, waited: bool) -> None:
    """Nothing that was there before a command, or was seen while it ran, is lost; and it has added to that.

    Parameters
    ----------
    before, seen, now : int
        Kept before the command, at the moment of its signal, and after its end.
    waited : bool
        The command was let run until it had kept more, or had ended.
    """
    assert now >= max(before, seen), f"{before} were kept, then {seen}; now {now} are"
    assert now > before or not waited, f"{before} were kept, and no more are after a run that was long enough"


def check_nothing_is_left(
    command: Command, folder: Path, *, killed: bool, sockets: Mapping[str, int], within: float = PATIENCE
) -> None:
    """No process that it has started, no port on which it waits, and, unless it was killed, no half-written file."""
    wait_until(lambda: not command.left(), f"processes {command.left()} are left", within=within)
    ports = {sockets[one] for one in sockets.keys() & listening().keys()}
    assert not ports, f"ports are still open: {ports}"
    parts = [path.name for path in folder.rglob("*.part")]
    assert killed or not parts, f"half-written files: {parts}"


def _undisturbed(target: Target, folder: Path, *, killed: bool = False) -> object:
    """Play a command to its end: its result."""
    command = _start(target, folder)
    try:
        code, out, err = command.end()
        assert code == 0, err[-2000:]
        assert "Traceback" not in err, err[-2000:]
        check_nothing_is_left(command, folder, killed=killed, sockets={})
    finally:
        command.clear()
    return target.result(folder, out)


def _ended(target: Target, folder: Path, which: str, after: float, patience: float | None) -> tuple[int, str, int]:
    """Play a command that is sent a signal: its exit code, its standard output, and what is kept.

    Parameters
    ----------
    target : Target
    folder : path
    which : str
        The signal.
    after : float
        When, from its beginning, or from the first thing that it keeps [s].
    patience : float, optional
        How long to wait for the first thing that it keeps [s].
    """
    before, command = target.kept(folder), _start(target, folder)
    try:
        command.begin()
        if patience is not None:
            what = f"nothing was kept beside {before} in {patience:.0f} s"
            over = command.process.poll
            wait_until(lambda: target.kept(folder) > before or over() is not None, what, within=patience)
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.process.wait(after)
        seen, sockets = target.kept(folder), command.sockets()
        code, out, err = command.signalled(getattr(signal, which))
        check_end(which, code, err)
        check_nothing_is_left(command, folder, killed=which == "SIGKILL", sockets=sockets)
    finally:
        command.clear()
    now = target.kept(folder)
    if target.again:
        check_kept(before, seen, now, waited=patience is not None and not (code == 0 and now == before))
    return code, out, now


def endure(
    name: str,
    *,
    times: int,
    seed: int,
    signals: tuple[str, ...] = SIGNALS,
    tell: Callable[[str], object] = lambda text: None,
) -> None:
    """Play a target undisturbed, then with every signal so many times, and once to its end.

    Every second signal comes at a random moment of the whole; the others shortly after something was kept, so that each
    of these commands adds to what there is.

    Raises
    ------
    AssertionError
        Something was lost, changed or left, or a command that was let run kept nothing more.
    """
    target, rng = TARGETS[name], random.Random(f"{name} {seed}")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        calm, folder = Path(one), Path(other)
        began, namespaces = time.monotonic(), _namespaces()
        wanted = _undisturbed(target, calm)
        took = time.monotonic() - began
        tell(f"{name}: {took:.1f} s undisturbed")
        order = [one for one in signals for _ in range(times)]
        rng.shuffle(order)
        ends = 0
        for number, which in enumerate(order):
            waits = target.again and number % 2 == 0
            after = rng.uniform(0.0, 0.2 * took if waits else took)
            code, out, kept = _ended(target, folder, which, after, max(ENOUGH, TIMES * took) if waits else None)
            tell(f"{name}: {number + 1}/{len(order)} {which} after {after:.2f} s: code {code}, {kept} kept")
            if code == 0:
                ends += 1
                assert target.result(folder, out) == wanted
                _clear(folder)  # it is done: from the beginning
        assert _undisturbed(target, folder, killed="SIGKILL" in signals) == wanted
        there = {path.name for path in folder.iterdir()} - {"cache"}
        assert {path for path in there if not path.endswith(".part")} == target.files
        assert not _namespaces() - namespaces
        tell(f"{name}: done, {ends} times before its end came")


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--times", type=int, default=10, help="ends by each signal")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.names or TARGETS:
        if lacks := TARGETS[name].missing():
            sys.stdout.write(f"{name}: not simulated: {lacks}\n")
            continue
        endure(name, times=given.times, seed=given.seed, tell=lambda text: sys.stdout.write(f"{text}\n"))


if __name__ == "__main__":
    _main()
