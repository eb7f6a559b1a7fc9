"""`simperf run`: simulate one scenario and say where the time went."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simperf.cli.completion import scenario_names
from simperf.cli.options import (
    Engine,
    Force,
    Format,
    Kind,
    Language,
    Plot,
    Report,
    Samples,
    Seed,
    Set,
    Trace,
    TraceRanks,
    Verbose,
    WhatIfOption,
    forced,
    refuse_alone,
    refuse_beside,
)

if TYPE_CHECKING:
    from simperf.results import Result
    from simperf.scenario import Scenario

__all__ = ["run"]

#: options that have no effect on a what-if question
_NOT_ASKED = ("samples", "verbose", "engine", "trace", "trace_ranks", "plot", "kind", "save", "live", "pace")


def run(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A scenario's file, or a name of `simperf scenarios list`.",
            autocompletion=scenario_names,
        ),
    ],
    changes: Set = None,
    force: Force = False,
    samples: Samples = 0,
    engine: Engine = "serial",
    variant: Annotated[
        str, typer.Option("--variant", metavar="NAME", help="Run this [[compare]] variant of the file.")
    ] = "",
    output: Format = "table",
    verbose: Verbose = False,
    trace: Trace = None,
    trace_ranks: TraceRanks = "",
    plot: Plot = None,
    kind: Kind = "overview",
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the whole result: .json or .json.gz.")
    ] = None,
    report: Report = None,
    language: Language = "en",
    live: Annotated[bool, typer.Option("--live", help="Show the simulated machine at work, in this terminal.")] = False,
    pace: Annotated[str, typer.Option("--pace", metavar="TIME", help="How long --live takes.")] = "10 s",
    seed: Seed = None,
    questions: WhatIfOption = None,
) -> int:
    """Run one scenario: its time, where it goes, what limits it, and whether it is what the file expects."""
    from simperf.cli.outputs import read_ranks, verify_outputs, write_outputs, write_report
    from simperf.cli.terminal import note, note_code, play, typed
    from simperf.errors import SimperfError
    from simperf.report.tables import format_result
    from simperf.scenario import check_error, check_expectations, load_scenario
    from simperf.scenario.load import pick_variant

    refuse_alone(context, {"engine": "samples", "pace": "live", "trace_ranks": "trace", "language": "report"})
    if questions:
        refuse_beside(context, "questions", _NOT_ASKED)
    verify_outputs(trace=trace, plot=plot, save=save, kind=kind, report=report)
    seconds, ranks = _pace(pace), read_ranks(trace_ranks)
    note_code(file, changes or ())
    scenario = load_scenario(file, forced(changes, force), seed=seed)
    if variant:
        scenario = pick_variant(scenario, variant, option="--variant")
    if questions:
        from simperf.report.what_if import what_if_output
        from simperf.study.what_if import what_if

        asked = what_if(scenario, questions, play=play)
        typer.echo(what_if_output(asked, output))
        if report is not None:
            write_report(
                report,
                lambda pages: pages.what_if_report(asked, machine=scenario.machine, command=typed()),
                language,
            )
        return 0
    try:
        result = _predict(scenario, samples, engine) if samples else play(scenario)
    except SimperfError as error:
        if not any(check.ok for check in check_error(scenario, error)):
            raise
        note(f"as expected, the run ends with: {error}")
        return 0
    if live:
        from simperf.report.live import play_back

        play_back(result, seconds)
    checks = check_expectations(scenario, result)
    typer.echo(format_result(result, output, checks=checks, verbose=verbose))
    write_outputs(result, trace=trace, ranks=ranks, plot=plot, kind=kind, save=save)
    if report is not None:
        from simperf.study.scaling import fewer

        line, remarks = fewer(scenario, result, play=play)
        lines = [line] if line is not None else []
        shown = {"machine": scenario.machine, "command": typed(), "scaling": lines, "remarks": remarks}
        write_report(report, lambda pages: pages.result_report(result, **shown), language)
    if scenario.overridden and (variant or scenario.data.get("expect")):
        note("the file's [expect] is not checked, as the command line changes what is run")
    if scenario.variants:
        count = len(scenario.variants)
        note(f"the file has {count} variant{'s' if count > 1 else ''}: `simperf compare {file}` runs all")
    return 0 if all(check.ok for check in checks) else 1


def _predict(scenario: Scenario, samples: int, engine: str) -> Result:
    from simperf.cli.terminal import play
    from simperf.study.uncertainty import predict

    return predict(scenario, samples=samples, executor=engine, play=play)


def _pace(text: str) -> float:
    """How long the run is shown [s]."""
    from simperf.errors import InputError, Problem, UnitError
    from simperf.units import parse

    try:
        seconds = parse(text, "s")
    except UnitError as error:
        raise InputError(Problem(str(error), file="--pace", value=repr(text))) from None
    if not 0 < seconds <= 3600:
        raise InputError(Problem("a time above 0 is expected, an hour at most", file="--pace", value=repr(text)))
    return seconds
