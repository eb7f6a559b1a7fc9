"""What commands that run something have in common: playing scenarios, checking them, writing files."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

import typer

if TYPE_CHECKING:
    from simperf.engine.simulation import Simulation
    from simperf.results import Result
    from simperf.scenario import Scenario

__all__ = ["note", "play", "progress", "typed", "verify_outputs", "write_outputs"]

_ANY = (("",), "", "")
_PROFILE = ((".toml",), "the file's name does not say TOML", "FILE.toml")


def note(text: str) -> None:
    """Say something that is not the result."""
    typer.echo(text, err=True)


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
    """Run a scenario; an exception in the code of its program is said with its line.

    Parameters
    ----------
    scenario : Scenario
    record, unused
        As in `simperf.run`.

    Raises
    ------
    SimperfError
        As `simperf.run`; and for what the program itself raises.
    """
    from simperf.errors import InputError, MachineError, ProgramError, SimperfError, UnknownNameError
    from simperf.run import run

    try:
        with _clock() as watch:
            return run(scenario, record=record, watch=watch, unused=unused)
    except (InputError, MachineError, ProgramError, UnknownNameError) as error:
        from simperf.scenario.placing import placed

        raise placed(error, scenario) from error
    except SimperfError:
        raise
    except Exception as error:
        code = unwrap(scenario.program.function).__code__
        if not any(frame.filename == code.co_filename for frame in traceback.extract_tb(error.__traceback__)):
            raise
        from simperf.scenario.python_program import failure

        raise failure(error, scenario.program) from error


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


def verify_outputs(
    *,
    trace: Path | None = None,
    plot: Path | None = None,
    save: Path | None = None,
    map_file: Path | None = None,
    report: Path | None = None,
    page: Path | None = None,
    output: Path | None = None,
    profile: Path | None = None,
    text: Path | None = None,
    folder: Path | None = None,
    kind: str = "overview",
) -> None:
    """Refuse, before anything is run, a file that could not be written after, and a kind of picture without one.

    Raises
    ------
    InputError
        All that is wrong with the names.
    """
    from simperf.errors import InputError, Problem
    from simperf.files import is_special
    from simperf.outputs import DATA, PAGE, PICTURE

    problems = []
    outputs = (  # how the names of files may end, and what to say when they do not
        *(("--trace", trace, DATA), ("--plot", plot, PICTURE), ("--save", save, DATA)),
        *(("--map", map_file, PICTURE), ("--report", report, PAGE), ("FILE", page, PAGE)),
        *(("--output", output, DATA), ("--output", profile, _PROFILE), ("--output", text, _ANY)),
    )
    for option, path, _ in outputs:
        if path is None or is_special(path):
            continue
        if path.is_dir():
            problems.append(Problem("this is a directory, a file is expected", file=option, key=str(path)))
        elif not path.absolute().parent.is_dir():
            problems.append(Problem(f"there is no folder {str(path.parent)!r}", file=option, key=str(path)))
        elif not os.access(path.absolute().parent, os.W_OK):
            problems.append(Problem(f"no files may be written in {str(path.parent)!r}", file=option, key=str(path)))
    for option, path, (known, message, expected) in outputs:
        if path is None or path.is_dir() or (is_special(path) and option in ("--trace", "--save", "--output")):
            continue
        if not path.name.lower().endswith(known):
            problems.append(Problem(message, file=option, key=str(path), expected=expected))
    named = [(option, path) for option, path, _ in outputs if path is not None and not is_special(path)]
    for index, (option, path) in enumerate(named):
        twin = next((other for other, one in named[:index] if one.absolute() == path.absolute()), "")
        if twin:
            problems.append(Problem(f"{twin} writes the same file", file=option, key=str(path)))
    if folder is not None and folder.exists() and not folder.is_dir():
        problems.append(Problem("this is a file, a folder is expected", file="--plots", key=str(folder)))
    if plot is None and kind != "overview":
        problems.append(Problem("a kind of picture without a picture", file="--plot-kind", expected="--plot FILE too"))
    if problems:
        raise InputError(problems)


def write_outputs(
    result: Result,
    *,
    trace: Path | None = None,
    plot: Path | None = None,
    kind: str = "overview",
    save: Path | None = None,
) -> None:
    """Write the files that were asked for, each whole or not at all."""
    if save is not None:
        result.save(save)
        note(f"wrote {save}: `simperf show {save}` prints it")
    if trace is not None:
        from simperf.report.trace import save_trace

        save_trace(result, trace)
        note(f"wrote {trace}: open it at https://ui.perfetto.dev")
    if plot is not None:
        from simperf.report.plots import plot as draw

        draw(result, plot, kind)
        note(f"wrote {plot}")
