"""`simperf explain`: a step that torch's profiler recorded beside the simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.options import Force, Format, Language, Report, Seed, Set, forced, refuse_alone

__all__ = ["explain"]


def explain(
    context: typer.Context,
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="What torch's profiler wrote of one rank: .json or .json.gz.")
    ],
    file: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="The same job: a scenario's file, or a name of the shipped ones.")
    ],
    step: Annotated[
        int, typer.Option("--step", metavar="N", min=-1, help="Step of the profiler; default: the mean of all.")
    ] = -1,
    rank: Annotated[
        int, typer.Option("--rank", metavar="N", min=-1, help="Rank that is compared; default: the trace's.")
    ] = -1,
    changes: Set = None,
    force: Force = False,
    variant: Annotated[str, typer.Option("--variant", metavar="NAME", help="Take this [[compare]] variant.")] = "",
    output: Format = "table",
    report: Report = None,
    language: Language = "en",
    seed: Seed = None,
) -> None:
    """Say where a recorded step and the simulated one differ: by kernel family, communication, host and waits."""
    from rich.text import Text

    from simperf.cli.outputs import verify_outputs, write_report
    from simperf.cli.terminal import note, note_code, typed
    from simperf.json_format import json_text
    from simperf.report.rows import rows_text
    from simperf.report.studies import rows_view
    from simperf.report.terminal import to_text
    from simperf.scenario import load_scenario
    from simperf.scenario.load import pick_variant
    from simperf.study.explain import explain as explained

    refuse_alone(context, {"language": "report"})
    verify_outputs(report=report, reads=[trace])
    note_code(file, changes or ())
    scenario = load_scenario(file, forced(changes, force), seed=seed)
    if variant:
        scenario = pick_variant(scenario, variant, option="--variant")
    found = explained(trace, scenario, step=step, rank=rank)
    if output == "json":
        typer.echo(json_text(found.to_dict()))
    elif output == "csv":
        units = dict.fromkeys(("recorded", "simulated", "difference"), "s")
        typer.echo(rows_text(found.to_dict()["parts"], "csv", units=units))
    else:
        typer.echo(to_text(rows_view(*found.rows())))
        typer.echo(to_text(Text(found.told)))
    for one in found.notes:
        note(one)
    if report is not None:
        write_report(report, lambda pages: pages.difference_report(found, command=typed()), language)
