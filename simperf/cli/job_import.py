"""`simperf import`: a training job that one has already, as a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.options import Set

__all__ = ["import_"]

#: notes that are printed; all of them stand in the file
_MOST_NOTES = 20


def import_(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A file of Megatron-LM, NeMo, torchtitan or DeepSpeed."),
    ] = None,
    arguments: Annotated[
        str,
        typer.Option(
            "--arguments", metavar="TEXT", help="Arguments of Megatron-LM, or key=value of NeMo, instead of a file."
        ),
    ] = "",
    framework: Annotated[
        str, typer.Option("--framework", metavar="NAME", help="Whose file it is; auto: what it looks like.")
    ] = "auto",
    on: Annotated[
        str, typer.Option("--on", metavar="NAME", help="A server or cluster of the catalog; default: dgx-h100.")
    ] = "",
    gpus: Annotated[
        int, typer.Option("--gpus", metavar="N", min=0, max=10**7, help="GPUs of the job; 0: as the file says.")
    ] = 0,
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="Model of a DeepSpeed job: of the zoo, or a config.json.")
    ] = "",
    variable: Annotated[
        list[str] | None,
        typer.Option("--variable", metavar="NAME=VALUE", help="A variable that a script gets; may be repeated."),
    ] = None,
    changes: Set = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Scenario to write; default: print it.")
    ] = None,
) -> None:
    """Make a scenario of a job of Megatron-LM, NeMo, torchtitan or DeepSpeed, with comments on what is assumed."""
    import shlex

    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.errors import InputError, Problem
    from simperf.frameworks import import_job
    from simperf.study.starting_files import add_schema

    if (file is None) == (not arguments):
        message = "a file is given, too" if arguments else "neither a file nor arguments are given"
        raise InputError(Problem(message, file="--arguments", expected="FILE, or --arguments TEXT"))
    try:
        source = str(file) if file is not None else shlex.split(arguments)
    except ValueError as error:
        message, expected = f"no list of arguments: {error}", "closed quotes"
        raise InputError(Problem(message, file="--arguments", expected=expected)) from None
    verify_outputs(profile=output, reads=[file] if file is not None else [])
    given = _variables(variable or [])
    found = import_job(source, framework, on=on, gpus=gpus, model=model, variables=given, changes=changes or ())
    for one in found.notes[:_MOST_NOTES]:
        note(one)
    if len(found.notes) > _MOST_NOTES:
        note(f"and {len(found.notes) - _MOST_NOTES} more, which the file lists")
    if output is None:
        typer.echo(found.text, nl=False)
        return
    found.save(output)
    add_schema(output, "scenario")
    note(f"wrote {output}: simperf run {output}")


def _variables(given: list[str]) -> dict[str, str]:
    """Variables of a script by name."""
    from simperf.errors import InputError, Problem

    pairs = [one.partition("=") for one in given]
    odd = ["".join(one) for one in pairs if not one[1] or not (one[0].isidentifier() or one[0].isdigit())]
    if odd:
        expected = "NAME=VALUE"
        raise InputError([Problem("no variable", file="--variable", value=one, expected=expected) for one in odd])
    return {name: value for name, _, value in pairs}
