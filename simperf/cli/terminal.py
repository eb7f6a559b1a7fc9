"""Messages on the terminal: notes, progress, the command line, and how far a run has come."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Literal

import typer

if TYPE_CHECKING:
    from simperf.engine.simulation import Simulation
    from simperf.results import Result
    from simperf.scenario import Scenario

__all__ = ["note", "note_code", "play", "progress", "typed"]


def note(text: str) -> None:
    """Say something that is not the result."""
    from simperf.errors import printable

    typer.echo(printable(text), err=True)


def note_code(file: str, changes: Sequence[str] = ()) -> None:
    """Say which Python file a scenario runs, before it is run; a file that cannot be read is told when it is loaded."""
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
    """Pass names on; on a terminal say which one is being worked on."""
    shown = sys.stderr.isatty()
    listed = list(names)
    for index, name in enumerate(listed, 1):
        if shown and len(listed) > 1:
            typer.echo(f"\r\x1b[K[{index}/{len(listed)}] {name}", nl=False, err=True)
        yield name
    if shown and len(listed) > 1:
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
