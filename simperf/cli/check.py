"""`simperf check`: read files without running them, or hold them to what they expect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.completion import scenario_names

__all__ = ["check"]


def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Scenarios (files or shipped names), plans, models, layouts, or files of parts and stacks.",
            autocompletion=scenario_names,
        ),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run them too, and hold the results to their [expect].")] = False,
    shipped: Annotated[bool, typer.Option("--shipped", help="Check every scenario that comes with simperf.")] = False,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--folder", metavar="FOLDER", help="A folder with parts that the files may name; may be repeated."
        ),
    ] = None,
) -> int:
    """Check files: every problem of each, with file, line and key. No code of a file is run without --run."""
    from simperf.cli.terminal import note, note_code, play
    from simperf.errors import SimperfError
    from simperf.scenario import shipped_scenarios
    from simperf.study.check import check_file

    names = [*(files or ()), *(shipped_scenarios() if shipped else ())]
    if not names:
        raise typer.BadParameter("name a file, or use --shipped")
    code = 0
    for name in names:
        try:
            if run:
                note_code(name)
            found = check_file(name, folder or (), run=run, play=play)
        except SimperfError as error:
            for problem in getattr(error, "problems", (error,)):
                note(f"error: {problem}")
            code = max(code, error.exit_code)
        else:
            typer.echo("\n".join(found.lines))
            code = max(code, 0 if found.ok else 1)
    return code
