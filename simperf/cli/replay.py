"""`simperf replay`: a recorded training step, on the GPU that it was recorded on or on other hardware."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simperf.cli.options import Format, Trace, Verbose

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["replay", "replay_scenario"]


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="TRACE...", help="What torch's profiler wrote: .json or .json.gz, one a rank."),
    ],
    on: Annotated[
        str,
        typer.Option("--on", metavar="NAME", help="A GPU, server or cluster of the catalogue; default: as recorded."),
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
    from simperf.errors import InputError, Problem
    from simperf.hardware import Catalog
    from simperf.report.tables import format_result
    from simperf.scenario import make_scenario

    verify_outputs(trace=trace, save=save, reads=files)
    if collectives and (not on or on in Catalog.load().names("gpu")):
        message = f"has no effect: {'a GPU' if on else 'without --on a step'} has no network of its own"
        expected = "--on NAME of a server or a cluster too"
        raise InputError(Problem(message, file="--collectives", value=collectives, expected=expected))
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


def replay_scenario(files: Sequence[Path], on: str, options: dict[str, Any]) -> dict[str, Any]:
    """The scenario that simulates traces.

    Parameters
    ----------
    files : sequence of Path
    on : str
        A GPU, a server or a cluster of the catalogue; empty for as recorded.
    options : dict
        Of the program.
    """
    from simperf.hardware import Catalog

    program = {"use": "recorded-step", "trace": [str(one.absolute()) for one in files], **options}
    scenario: dict[str, Any] = {
        "scenario": {
            "title": f"{files[0].name} on {on}" if on else files[0].name,
            "answer": {"metric": "time per step"},
        },
        "program": program,
    }
    if on in Catalog.load().names("gpu"):
        gpus = f"gpu{{0..{len(files) - 1}}}" if len(files) > 1 else "gpu0"
        scenario["machine"] = {
            "node": [{"id": gpus, "gpu": on}, {"id": "cpu0", "cpu": "xeon-8168"}],
            "link": [{"a": gpus, "b": "cpu0", "part": "pcie3-x16"}],
        }
        if len(files) > 1:
            program["collectives"] = "recorded"  # no network is named
    elif on:
        scenario["machine"] = {"use": on}
    return scenario
