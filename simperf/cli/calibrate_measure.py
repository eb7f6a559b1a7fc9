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
    from simperf.calibrate.machines import NOT_ON_HARDWARE
    from simperf.calibrate.measure import task
    from simperf.calibrate.measure.allocator import keep_memory
    from simperf.calibrate.measure.bench import Bench
    from simperf.calibrate.measure.clock import FULL, QUICK
    from simperf.calibrate.measure.facts import busy, machine_facts, version_facts
    from simperf.calibrate.measure.session import Interrupted, Session
    from simperf.calibrate.measure.stolen import disturbed, taken_away
    from simperf.cli.signals import interruptible
    from simperf.cli.work import note, verify_outputs
    from simperf.errors import InputError, Problem

    if families:
        typer.echo("\n".join(task.FAMILIES))
        return
    if output is None:
        raise InputError(Problem("minutes of readings need a file", key="--output", expected="-o machine.json"))
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    task.check_families(wanted)
    verify_outputs(output=output)
    kept, care = keep_memory(), QUICK if quick else FULL
    bench = Bench(device, threads=threads, quick=quick, care=care)
    words = ["simperf calibrate measure", f"--device {bench.device}", *(["--quick"] if quick else [])]
    words += [f"--threads {threads}"] * bool(threads) + [f"--only {','.join(wanted)}"] * bool(wanted)
    session = Session(
        output,
        machine=machine_facts(bench.torch, bench.device),
        versions=version_facts(bench.torch),
        conditions={"device": bench.device, "threads": bench.threads, "quick": quick, "memory_kept": kept},
        command=" ".join(words),
        fresh=fresh,
        seconds=care.session,
    )
    if session.resumed:
        note(f"{output} holds {session.resumed} points: they are kept, if calm (--fresh begins anew)")
    if bench.cuda:
        note(NOT_ON_HARDWARE)
    if busy():
        note(f"warning: {busy()}")
    listed = list(task.tasks(bench, wanted))
    count = sum(len(each.points) for _, each in listed if not isinstance(each, str))
    command = "the same command" + (" without --fresh" if fresh else "")
    with interruptible() as ending:
        try:
            with _Progress(count) as progress:
                data = session.run(listed, tell=progress)
        except Interrupted as stop:
            note(f"interrupted: {output} has {len(stop.dataset)} points; {command} continues")
            raise typer.Exit(ending.code) from None
    doubtful = sum(1 for point in data if point.warnings)
    for text in data.notes:
        note(f"note: {text}")
    note(
        f"wrote {output}: {len(data)} points of {len(data.series)} series in {float(data.made['seconds']):.0f} s"
        + (f", {doubtful} of them with wide spread or disturbed (see their warnings)" if doubtful else "")
    )
    if session.repeated:
        calm = sum(1 for point in data if point.key in session.repeated and not taken_away(point.stolen))
        note(f"measured again because it was disturbed: {len(session.repeated)} points, {calm} of them calm now")
    for title, reason in session.failed.items():
        note(f"could not be measured again, earlier readings stay: {title}: {reason}")
    if told := disturbed(data):
        late = "no time was left to measure all of them again; " if session.late else ""
        which = "those of these families" if wanted else "them"
        note(told + (f"; {late}{command} measures {which} again" if session.disturbed(listed) else ""))
    if 4 * doubtful > len(data):
        note("warning: constants of so unsteady readings mean little: measure again when nothing else runs (--fresh)")
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
