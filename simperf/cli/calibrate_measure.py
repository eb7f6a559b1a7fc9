"""`simperf calibrate measure`: what this machine takes for everything that the model has a constant for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["measure"]


def measure(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help=".json or .json.gz; continued if it is there."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda:0")] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points: two minutes instead of ten.")] = False,
    threads: Annotated[
        int, typer.Option("--threads", min=0, help="Of one operation on the CPU; 0: as torch chooses.")
    ] = 0,
    only: Annotated[str, typer.Option("--only", metavar="FAMILY,...", help="Some families of series only.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew, whatever is in the file.")] = False,
    families: Annotated[bool, typer.Option("--list", help="Name the families of series, and end.")] = False,
) -> None:
    """Time operations, copies, collectives and whole training steps of this machine with torch; continues a file."""
    from simperf.calibrate.measure import task
    from simperf.calibrate.measure.session import Interrupted
    from simperf.calibrate.measuring import measure as run_measure
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.signals import interruptible
    from simperf.cli.terminal import note
    from simperf.errors import InputError, Problem

    if families:
        typer.echo("\n".join(task.FAMILIES))
        return
    if output is None:
        raise InputError(Problem("minutes of readings need a file", key="--output", expected="-o machine.json"))
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    task.check_families(wanted)
    verify_outputs(output=output)
    with interruptible() as ending:
        try:
            run_measure(
                output,
                device=device,
                quick=quick,
                threads=threads,
                only=wanted,
                fresh=fresh,
                tell=note,
                progress=_Progress,
            )
        except Interrupted as stop:
            again = "the same command" + (" without --fresh" if fresh else "")
            note(f"interrupted: {output} has {len(stop.dataset)} points; {again} continues")
            raise typer.Exit(ending.code) from None
    note(f"next: simperf calibrate fit {output} -o profile.toml")


class _Progress:
    """A bar on a terminal; a line a family elsewhere. All on stderr."""

    def __init__(self, count: int) -> None:
        import sys

        self.count, self.done, self.family = count, 0, ""
        self.bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=count)

    def __enter__(self) -> _Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, family: str, series: str, points: int) -> None:
        self.done += points
        if self.bar is not None:
            self.bar.update(self.task, description=series, completed=self.done)
        elif family != self.family:
            typer.echo(f"[{self.done}/{self.count}] {family}", err=True)
        self.family = family
