"""`simperf plan`: which machines train a model in time and within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.options import Engine, Force, Format, Report, Samples

__all__ = ["plan"]


def plan(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan's file (TOML).")],
    explain: Annotated[
        int, typer.Option("--explain", metavar="N", min=0, help="Show candidate N in detail, and what limits it.")
    ] = 0,
    engine: Engine = "serial",
    samples: Samples = 0,
    force: Force = False,
    everything: Annotated[bool, typer.Option("--all", help="List every candidate.")] = False,
    output: Format = "table",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw time and cost.")] = None,
    report: Report = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Take runs that were made before.")] = True,
) -> int:
    """Rank the machines that train a model by a deadline and within a budget, and say why the others lose."""
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.sweep import Shown
    from simperf.cli.terminal import note, play, typed
    from simperf.report.limits import format_limits
    from simperf.report.plans import format_candidate, plan_output, plot_plan
    from simperf.study.limits import limits
    from simperf.study.planning import load_request
    from simperf.study.planning import plan as make_plan

    verify_outputs(plot=plot, report=report)
    shown = Shown()
    try:
        found = make_plan(load_request(file, force=force), engine=engine, samples=samples, cache=cache, progress=shown)
    finally:
        shown.end()
    if explain:
        scenario = found.scenario(explain)
        typer.echo(format_candidate(found, explain, format_limits(limits(scenario, engine=engine, play=play))))
    else:
        typer.echo(plan_output(found, output, all_rows=everything))
    if plot is not None:
        plot_plan(found, plot)
        note(f"wrote {plot}")
    if report is not None:
        from simperf.report.html import plan_report, save_page

        first = found.scenario(1)
        save_page(plan_report(found, command=typed(), winner=play(first), machine=first.machine), report)
        note(f"wrote {report}: open it in a browser")
    return 0
