"""`simperf replay`: a recorded training step, on the GPU that it was recorded on or on other hardware."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from simperf.cli.options import Format, Trace, Verbose

__all__ = ["replay"]


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="TRACE...", help="What torch's profiler wrote: .json or .json.gz, one a rank."),
    ],
    on: Annotated[
        str,
        typer.Option("--on", metavar="NAME", help="A GPU, server or cluster of the catalog; default: as recorded."),
    ] = "",
    recorded_on: Annotated[
        str, typer.Option("--recorded-on", metavar="GPU", help="GPU of the recording, if the trace does not say it.")
    ] = "",
    step: Annotated[int, typer.Option("--step", metavar="N", min=-1, help="Step of the profiler; default: all.")] = -1,
    collectives: Annotated[
        Literal["network", "recorded"] | None,
        typer.Option("--collectives", help="On the network of --on, which is the default, or as long as recorded."),
    ] = None,
    host_speed: Annotated[
        float, typer.Option("--host-speed", metavar="FACTOR", help="How many times as fast the host is.")
    ] = 1.0,
    output: Format = "table",
    verbose: Verbose = False,
    trace: Trace = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the whole result: .json or .json.gz.")
    ] = None,
) -> None:
    """Simulate a recorded training step again: what it would take on another GPU, network or host."""
    from dataclasses import replace

    from simperf.cli.outputs import verify_outputs, write_outputs
    from simperf.cli.terminal import play
    from simperf.errors import InputError
    from simperf.report.tables import format_result
    from simperf.scenario import make_scenario
    from simperf.scenario.replay import replay_scenario

    verify_outputs(trace=trace, save=save, reads=files)
    options: dict[str, Any] = {"step": step, "host_speed": host_speed}
    options |= {"recorded_on": recorded_on} if recorded_on else {}
    options |= {"collectives": collectives} if collectives else {}
    try:
        result = play(make_scenario(replay_scenario(files, on, options)))
    except InputError as error:
        flags = {name: "--" + name.replace("_", "-") for name in options}
        raise InputError([replace(one, key=flags.get(one.key, one.key)) for one in error.problems]) from None
    typer.echo(format_result(result, output, verbose=verbose))
    write_outputs(result, trace=trace, save=save)
