"""Messages on the terminal: notes, progress, the command line, and how far a run has come."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from simperf.engine.simulation import Simulation
    from simperf.results import Result
    from simperf.scenario import Scenario

__all__ = ["StudyProgress", "note", "note_code", "play", "progress", "track", "typed"]


Item = TypeVar("Item")


def note(text: str) -> None:
    """Say something that is not the result."""
    from simperf.errors import printable
    from simperf.report.terminal import fold_message

    typer.echo(fold_message(printable(text)), err=True)


def note_code(file: str, changes: Sequence[str] = ()) -> None:
    """Say which Python file a scenario runs, before it is run; an unreadable one is reported at its loading."""
    from simperf.errors import SimperfError
    from simperf.files import read_toml
    from simperf.scenario import find_scenario
    from simperf.scenario.overrides import parse_changes

    try:
        path = find_scenario(file)
        table = read_toml(path, bounded=False).data.get("program")
        changed = {one.path: one.value for one in parse_changes(list(changes))}
    except SimperfError:
        return
    named = changed.get(("program", "python"), table.get("python") if isinstance(table, dict) else None)
    if isinstance(named, str):
        own = os.path.join(os.path.dirname(path), named.rpartition(":")[0])
        if os.path.isfile(own):
            note(f"runs the code of {own}, which the scenario names")


def progress(names: Iterable[str]) -> Iterator[str]:
    """Pass names on; on a terminal say which one is being worked on, and how long the others will take."""
    from simperf.report.terminal import clock

    listed, began = list(names), monotonic()
    shown = sys.stderr.isatty() and len(listed) > 1
    for index, name in enumerate(listed, 1):
        done = index - 1
        left = f", {clock((monotonic() - began) / done * (len(listed) - done))} left" if done else ""
        if shown:
            typer.echo(f"\r\x1b[K[{index}/{len(listed)}] {name}{left}", nl=False, err=True)
        yield name
    if shown:
        typer.echo("\r\x1b[K", nl=False, err=True)


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Pass items on; on a terminal show how many are done, and an estimate of the time left."""
    if not sys.stderr.isatty() or len(items) < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("left"), console=Console(stderr=True), transient=True) as shown:
        yield from shown.track(items, description=what)


class StudyProgress:
    """Points that are done and time that is left of a study, on a terminal, at most ten times a second."""

    def __init__(self) -> None:
        self.done, self._terminal, self._last = 0, sys.stderr.isatty(), -1.0

    def __call__(self, progress: object) -> None:
        """Show how far it is."""
        from simperf.report.terminal import clock
        from simperf.study.sweep import Progress

        assert isinstance(progress, Progress)
        self.done = progress.done
        if not self._terminal or (progress.elapsed - self._last < 0.1 and progress.done < progress.total):
            return
        self._last = progress.elapsed
        left = progress.left
        text = f"[{progress.done}/{progress.total}]"
        text += f" {clock(left)} left" if left is not None and progress.done < progress.total else ""
        text += f", {progress.failed} failed" if progress.failed else ""
        typer.echo(f"\r\x1b[K{text}", nl=False, err=True)

    def end(self) -> None:
        """Clear the line."""
        if self._terminal:
            typer.echo("\r\x1b[K", nl=False, err=True)


def typed() -> str:
    """The command line as it was given, for a report that says how it was made."""
    return shlex.join(["simperf", *sys.argv[1:]])


def play(scenario: Scenario, *, record: bool = True, unused: Literal["refuse", "tell"] = "refuse") -> Result:
    """Run a scenario as `simperf.run.run_placed` does; on a terminal, say how far a long run has come."""
    from simperf.run import run_placed

    with _clock() as watch:
        return run_placed(scenario, record=record, watch=watch, unused=unused)


@contextmanager
def _clock() -> Iterator[Callable[[Simulation], object] | None]:
    """On a terminal, say once a second how far a long run has come."""
    if not sys.stderr.isatty():
        yield None
        return
    from threading import Event, Thread

    from simperf.units import format_quantity

    done, began = Event(), monotonic()
    seen: list[Simulation] = []

    def tell() -> None:
        while not done.wait(1.0):
            for simulation in seen:
                now, elapsed = format_quantity(simulation.now, "s"), monotonic() - began
                typer.echo(f"\r\x1b[K{now} simulated in {elapsed:.0f} s; Ctrl-C ends it", nl=False, err=True)

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield seen.append
    finally:
        done.set()
        thread.join()
        if monotonic() - began > 1.0:
            typer.echo("\r\x1b[K", nl=False, err=True)
