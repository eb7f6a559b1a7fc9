"""Long commands that are ended at random moments, and begun again until they are done.

Each command is played undisturbed first, then ended again and again in one folder: by Ctrl-C, SIGTERM, SIGHUP and
SIGKILL. Whatever moment it was, no process, no namespace and no half-written file stays, nothing that was done is lost,
and in the end the result is that of the undisturbed command.

    python -m tests.faults.kills --times 10 sweep-local measure
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.faults.processes import Command, wait_until

__all__ = ["SIGNALS", "TARGETS", "endure"]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")
ROOT = Path(__file__).parents[2]
#: how long processes may take to end after a command that was killed [s]
PATIENCE = 30.0
#: within which Python itself may still be starting [s]
_START = 1.0


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


def _cached(folder: Path) -> int:
    """Runs that are kept in the cache."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / "cache").rglob("*.jsonl")) or sum(
        path.stat().st_size for path in (folder / "cache").rglob("*") if path.is_file()
    )


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
        _cached,
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
        needs="lmfit",
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


def _check_nothing_is_left(command: Command, folder: Path, killed: bool) -> None:
    """No process that it has started, and, unless it was killed, no file that is not whole."""
    wait_until(lambda: not command.left(), f"processes {command.left()} are left", within=PATIENCE)
    parts = [path.name for path in folder.rglob("*.part")]
    assert killed or not parts, f"half-written files: {parts}"


def endure(
    name: str,
    *,
    times: int,
    seed: int,
    signals: tuple[str, ...] = SIGNALS,
    tell: Callable[[str], object] = lambda text: None,
) -> None:
    """Play a target undisturbed, then with every signal so many times, and once to its end.

    Raises
    ------
    AssertionError
        Something was lost, changed or left.
    """
    target, rng = TARGETS[name], random.Random(f"{name} {seed}")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        calm, folder = Path(one), Path(other)
        began, before = time.monotonic(), _namespaces()
        command = _start(target, calm)
        try:
            code, out, err = command.end()
            assert code == 0, err
            _check_nothing_is_left(command, calm, killed=False)
        finally:
            command.clear()
        took, wanted = time.monotonic() - began, target.result(calm, out)
        tell(f"{name}: {took:.1f} s undisturbed")
        order = [one for one in signals for _ in range(times)]
        rng.shuffle(order)
        kept, ends = 0, 0
        for number, which in enumerate(order):
            after = rng.uniform(0.0, took)
            command = _start(target, folder)
            try:
                code, _, err = command.signalled(getattr(signal, which), after)
                killed = which == "SIGKILL"
                right = (0, -signal.SIGKILL) if killed else (0, 128 + getattr(signal, which))
                # Python ends itself by SIGINT where an interrupt has passed through its exec(), as in a dataclass's
                # definition; and as the signal has it, or with 1, before anything of ours is there or after all is done
                others = (-signal.SIGINT, -getattr(signal, which), *((1,) if after < _START else ()))
                assert code in (*right, *others), (which, after, code, err[-2000:])
                assert "defect" not in err, err[-2000:]
                _check_nothing_is_left(command, folder, killed)
            finally:
                command.clear()
            now = target.kept(folder)
            assert now >= kept or not target.again, f"{which} after {after:.2f} s: {kept} were kept, {now} are"
            tell(f"{name}: {number + 1}/{len(order)} {which} after {after:.2f} s: code {code}, {now} kept")
            kept = now
            if code == 0:
                ends += 1
                assert target.result(folder, out) == wanted or name == "plan"
                for path in folder.iterdir():  # it is done: from the beginning
                    if path.is_file():
                        path.unlink()
                kept = 0 if name != "plan" else kept
        command = _start(target, folder)
        try:
            code, out, err = command.end()
            assert code == 0, err[-2000:]
            assert target.result(folder, out) == wanted
            _check_nothing_is_left(command, folder, killed="SIGKILL" in signals)
        finally:
            command.clear()
        there = {path.name for path in folder.iterdir()} - {"cache"}
        assert {path for path in there if not path.endswith(".part")} == target.files
        assert not _namespaces() - before
        tell(f"{name}: done, {ends} times before its end came")


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--times", type=int, default=10, help="ends by each signal")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.names or TARGETS:
        if lacks := TARGETS[name].missing():
            sys.stdout.write(f"{name}: not played: {lacks}\n")
            continue
        endure(name, times=given.times, seed=given.seed, tell=lambda text: sys.stdout.write(f"{text}\n"))


if __name__ == "__main__":
    _main()
