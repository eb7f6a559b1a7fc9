"""`simperf limits`: what a scenario's time is made of, and what would make it shorter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from simperf.cli.completion import scenario_names
from simperf.cli.options import Engine, Force, Format, Language, Report, Samples, Seed, Set, Vary, forced, refuse_alone

__all__ = ["limits"]


def limits(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A scenario's file, or a name of `simperf scenarios list`.",
            autocompletion=scenario_names,
        ),
    ],
    faster: Annotated[
        float,
        typer.Option("--faster", metavar="X", help="How many times as fast each resource is made, one at a time."),
    ] = 1.1,
    crossover: Annotated[
        str, typer.Option("--crossover", metavar="KEY=RANGE", help="Find where on this range the limit changes.")
    ] = "",
    by: Annotated[
        Literal["resource", "regime", "busiest"], typer.Option("--by", help="What --crossover calls the limit.")
    ] = "resource",
    vary: Vary = None,
    method: Annotated[
        Literal["morris", "sobol"], typer.Option("--method", help="How the influence of the ranges of --vary is found.")
    ] = "morris",
    trajectories: Annotated[
        int, typer.Option("--trajectories", metavar="N", min=2, help="Samples of that method.")
    ] = 16,
    changes: Set = None,
    force: Force = False,
    variant: Annotated[str, typer.Option("--variant", metavar="NAME", help="Take this [[compare]] variant.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="List resources that would change nothing, too.")] = False,
    samples: Samples = 0,
    engine: Engine = "serial",
    output: Format = "table",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the tornado.")] = None,
    report: Report = None,
    language: Language = "en",
    seed: Seed = None,
) -> int:
    """Say what limits a scenario: its critical path, and what each resource would bring if it were faster."""
    from simperf.cli.outputs import verify_outputs, write_report
    from simperf.cli.terminal import note, note_code, play, typed
    from simperf.report.limits import limits_output, plot_limits
    from simperf.scenario import load_scenario
    from simperf.scenario.load import pick_variant
    from simperf.study.crossover import flip_search
    from simperf.study.limits import limits as find_limits
    from simperf.study.sensitivity import screening

    refuse_alone(context, {"by": "crossover", "method": "vary", "trajectories": "vary", "language": "report"})
    verify_outputs(plot=plot, report=report)
    note_code(file, changes or ())
    scenario = load_scenario(file, forced(changes, force), seed=seed)
    if variant:
        scenario = pick_variant(scenario, variant, option="--variant")
    search = flip_search(scenario, crossover, by=by, faster=faster) if crossover else None
    screened = screening(scenario, vary, method=method, samples=trajectories) if vary else None
    found = find_limits(scenario, faster=faster, samples=samples, engine=engine, play=play)
    turns = search.play(engine=engine) if search else None
    influences = screened.play(engine=engine) if screened else None
    typer.echo(limits_output(found, output, flips=turns, influences=influences, all_rows=everything))
    if plot is not None:
        plot_limits(found, plot)
        note(f"wrote {plot}")
    if report is not None:
        shown = {"flips": turns, "influences": influences, "machine": scenario.machine, "command": typed()}
        write_report(report, lambda pages: pages.limits_report(found, **shown), language)
    if scenario.variants and not variant:
        note(f"the file has {len(scenario.variants)} variants: --variant NAME looks at one of them")
    return 0
