"""`simperf sweep`: one scenario at many points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from simperf.cli.completion import scenario_names
from simperf.cli.options import Engine, Force, Format, Language, Report, Samples, Seed, Set, Vary, forced, refuse_alone

if TYPE_CHECKING:
    from simperf.hardware import Machine
    from simperf.results import Result
    from simperf.scenario import Scenario
    from simperf.study.table import Table

__all__ = ["sweep"]


def sweep(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A scenario's file, or a name of `simperf scenarios list`.",
            autocompletion=scenario_names,
        ),
    ],
    vary: Vary = None,
    design: Annotated[
        Literal["grid", "list", "lhs"],
        typer.Option("--design", help="Every combination, the lists side by side, or a Latin hypercube."),
    ] = "grid",
    points: Annotated[int, typer.Option("--points", metavar="N", min=0, help="Of a Latin hypercube.")] = 0,
    engine: Engine = "serial",
    output_file: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Keep the table: .jsonl, .json, .csv or .parquet."),
    ] = None,
    changes: Set = None,
    force: Force = False,
    samples: Samples = 0,
    output: Format = "table",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw: .png, .svg or .pdf.")] = None,
    kind: Annotated[
        Literal["auto", "lines", "scaling", "heatmap", "pareto"], typer.Option("--plot-kind", help="What to draw.")
    ] = "auto",
    report: Report = None,
    language: Language = "en",
    metric: Annotated[str, typer.Option("--metric", help="What lines and heat maps show, instead of the answer.")] = "",
    fast: Annotated[bool, typer.Option("--fast", help="Record no timelines: quicker, without regimes.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away what an interrupted sweep has kept.")] = False,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Take points that were run before.")] = True,
    seed: Seed = None,
) -> int:
    """Run a scenario at many points; what is done is kept, and the same command continues after an interruption."""
    from simperf.cli.outputs import verify_outputs, write_report
    from simperf.cli.terminal import StudyProgress, note, note_code, typed
    from simperf.errors import InputError, Problem
    from simperf.scenario import load_scenario
    from simperf.study.axes import LatinHypercube
    from simperf.study.sweep import journal_of
    from simperf.study.sweep import sweep as run_sweep

    refuse_alone(context, {"kind": "plot", "metric": "plot", "fresh": "output_file", "language": "report"})
    verify_outputs(plot=plot, report=report)
    if plot is not None and kind == "heatmap" and len(vary or ()) != 2:
        needed = 'two --vary, such as "program.gpus=1,2" and "program.batch=32,64"; or --plot-kind lines'
        raise InputError(Problem("a heat map is over two keys", file="--plot-kind", value=kind, expected=needed))
    if points and design != "lhs":
        raise InputError(Problem("a number of points belongs to --design lhs", file="--points", value=str(points)))
    note_code(file, changes or ())
    scenario = load_scenario(file, forced(changes, force), seed=seed)
    shown = StudyProgress()
    try:
        table = run_sweep(
            scenario,
            vary or [],
            design=LatinHypercube(points) if design == "lhs" else design,
            engine=engine,
            output=output_file,
            samples=samples,
            record=not fast,
            fresh=fresh,
            cache=cache,
            progress=shown,
        )
    except KeyboardInterrupt:
        shown.end()
        same = "the same command without --fresh" if fresh else "the same command"
        kept = f"; {journal_of(output_file)} keeps them, and {same} continues" if output_file else ""
        note(f"interrupted after {shown.done} points{kept}")
        return 130
    shown.end()
    _write(table, output, output_file)
    if plot is not None:
        from simperf.report.sweeps import plot_table

        plot_table(table, plot, kind, metric=metric)
        note(f"wrote {plot}")
    if report is not None:
        best, machine = _best(scenario, table)
        details = {"question": scenario.question, "command": typed(), "best": best, "machine": machine}
        write_report(report, lambda pages: pages.sweep_report(table, **details), language)
    if table.failed:
        note(f"{len(table.failed)} of {len(table)} points failed; their errors are in the table")
    return 1 if len(table.failed) == len(table) else 0


def _best(scenario: Scenario, table: Table) -> tuple[Result | None, Machine | None]:
    """The best point simulated once more, with its timeline, for a report."""
    from simperf.cli.terminal import play
    from simperf.study.points import make_tasks, point_scenario

    row = table.winner()
    if row is None:
        return None, None
    (task,) = make_tasks(scenario, [row["set"]])
    chosen = point_scenario({**task, "seed": row["seed"]})
    return play(chosen), chosen.machine


def _write(table: Table, output: str, file: Path | None) -> None:
    """The table on standard output; a file that was asked for is enough for a long one."""
    from simperf.cli.terminal import note
    from simperf.report.studies import format_table

    typer.echo(format_table(table, output))
    if file is not None:
        note(f"wrote {file}: {len(table)} points")
