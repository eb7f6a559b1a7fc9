"""`simperf calibrate measure`: what this machine takes for everything that the model has a constant for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["measure"]

#: time after which a family that takes turns with others is named again [s]
_AGAIN = 20.0


def measure(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help=".json or .json.gz; continued if it is there."),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="cpu or cuda:0; default: cpu, of --set training a GPU if there is one.")
    ] = "",
    set_: Annotated[
        Literal["machine", "training"],
        typer.Option("--set", help="All the model has a constant for, or kernels of training, most useful first."),
    ] = "machine",
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="N", help="End in time, and name what was not measured.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points: two minutes instead of ten.")] = False,
    threads: Annotated[
        int, typer.Option("--threads", min=0, help="Of one operation on the CPU; 0: as torch chooses.")
    ] = 0,
    only: Annotated[str, typer.Option("--only", metavar="FAMILY,...", help="Some families of series only.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again, whatever is in the file.")] = False,
    families: Annotated[bool, typer.Option("--list", help="Name the families of series, and end.")] = False,
) -> None:
    """Time operations, copies, collectives and training steps here with torch; an interrupted file is continued."""
    from simperf.calibrate.measure.session import Interrupted
    from simperf.calibrate.measure.task import check_families
    from simperf.calibrate.measuring import TRAINING_FILE, families_of
    from simperf.calibrate.measuring import measure as run_measure
    from simperf.cli import interruptible
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.errors import InputError, Problem

    if families:
        typer.echo("\n".join(families_of(set_)))
        return
    if output is None and set_ == "training":
        output = Path(TRAINING_FILE)
    if output is None:
        raise InputError(Problem("minutes of readings need a file", key="--output", expected="-o machine.json"))
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    check_families(wanted, families_of(set_))
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
                set=set_,
                minutes=minutes,
                tell=note,
                progress=_Progress,
            )
        except Interrupted as stop:
            again = "the same command" + (" without --fresh" if fresh else "")
            note(f"interrupted: {output} has {len(stop.dataset)} points; {again} continues")
            raise typer.Exit(ending.code) from None
    note(f"next: simperf calibrate fit {output} -o profile.toml")


class _Progress:
    """A bar on a terminal; elsewhere a line a family, now and then if families take turns. All on stderr."""

    def __init__(self, count: int) -> None:
        import sys

        self.count, self.done, self.family = count, 0, ""
        self.told: dict[str, float] = {}
        self.bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
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
        elif family != self.family and self._due(family):
            typer.echo(f"[{self.done}/{self.count}] {family}", err=True)
        self.family = family

    def _due(self, family: str) -> bool:
        """Whether a family is to be named: it is new, or has not been for `_AGAIN`."""
        import time

        now, before = time.monotonic(), self.told.get(family)
        if before is not None and now - before < _AGAIN:
            return False
        self.told[family] = now
        return True
