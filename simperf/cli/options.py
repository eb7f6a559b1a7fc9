"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "Force",
    "Format",
    "Kind",
    "Language",
    "Plot",
    "Report",
    "Seed",
    "Set",
    "Trace",
    "TraceRanks",
    "Verbose",
    "WhatIfOption",
    "forced",
    "refuse_alone",
    "refuse_beside",
    "renamed",
    "typed_options",
]

Format = Annotated[
    Literal["table", "json", "csv"], typer.Option("--format", help="How to write the result; JSON and CSV in SI units.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help='Change a value of the file, as in program.nbytes="320 MB"; may be repeated.'
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Run even if there are too many events, points or samples.")]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", min=0, max=2**63 - 1, help="Seed of the random numbers, instead of the file's."
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write the timeline for ui.perfetto.dev: .json or .json.gz."),
]
TraceRanks = Annotated[
    str,
    typer.Option(
        "--trace-ranks", metavar="RANKS", help="Ranks that --trace shows, and nothing else, as in 0,8,17 or 0-3."
    ),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw a picture: .png, .svg or .pdf.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a page that needs no network: .html.")
]
Language = Annotated[
    Literal["en", "zh"], typer.Option("--language", help="Language of --report: English, or Simplified Chinese.")
]
Kind = Annotated[
    Literal["overview", "gantt", "queue", "memory", "roofline", "pipeline", "stages"],
    typer.Option("--plot-kind", help="What to draw."),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="KEY=VALUES",
        help='Values of a key: "program.gpus=8,16,32" or "program.nbytes=10..100 MB:5"; may be repeated.',
    ),
]
Engine = Annotated[
    str, typer.Option("--engine", metavar="ENGINE", help="Where points are run: serial, local[:N] or dask[:ADDRESS].")
]
Samples = Annotated[
    int,
    typer.Option(
        "--samples",
        metavar="N",
        min=0,
        max=2**63 - 1,
        help="Bootstrap samples of the calibrated constants, for intervals of 90 %.",
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show all metrics and resources, what is modelled, and every source.")
]
WhatIfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--what-if",
        metavar="CHANGES",
        help='Each change alone and all together, as "network=2x, host1=0.8x, precision=fp8, batch=0.5x, domain=72".',
    ),
]


def typed_options(context: typer.Context) -> list[str]:
    """Names of the parameters that were typed, in the order of the command."""
    source = context.get_parameter_source
    return [key for key in context.params if getattr(source(key), "name", "") == "COMMANDLINE"]


def renamed(old: str, new: str) -> Callable[[str], str]:
    """Refuse an option by a name that it had once."""

    def refuse(value: str) -> str:
        if value:
            from simperf.errors import InputError, Problem

            raise InputError(Problem("no such option any more", file=old, value=value, expected=f"{new} {value}"))
        return value

    return refuse


def refuse_alone(context: typer.Context, partners: Mapping[str, str]) -> None:
    """Refuse options that were typed without the one beside which they have an effect.

    Parameters
    ----------
    context : typer.Context
    partners : mapping of str to str
        By the name of a parameter, that of the other.

    Raises
    ------
    InputError
        Each of them.
    """
    typed = typed_options(context)
    if wrong := [key for key in partners if key in typed and partners[key] not in typed]:
        from simperf.errors import InputError, Problem

        flags = {one.name: max(one.opts, key=len) for one in context.command.params}
        raise InputError(
            [Problem("has no effect alone", file=flags[key], expected=f"{flags[partners[key]]} too") for key in wrong]
        )


def refuse_beside(context: typer.Context, option: str, others: Sequence[str]) -> None:
    """Refuse options that were typed beside one that they have no effect with.

    Raises
    ------
    InputError
        Each of them.
    """
    typed = typed_options(context)
    if wrong := [key for key in others if key in typed]:
        from simperf.errors import InputError, Problem

        flags = {one.name: max(one.opts, key=len) for one in context.command.params}
        message, expected = (
            f"has no effect with {flags[option]}",
            f"one of both: {flags[option]} prints a table of its own",
        )
        raise InputError([Problem(message, file=flags[key], expected=expected) for key in wrong])


def forced(changes: list[str] | None, force: bool) -> list[str]:
    """The values of ``--set``, and what ``--force`` stands for."""
    return [*(changes or ()), *(["run.force=true"] if force else ())]
