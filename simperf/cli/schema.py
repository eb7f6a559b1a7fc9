"""`simperf schema`: the JSON Schema of every kind of file, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Annotated

import typer

from simperf.cli.completion import file_kinds

__all__ = ["schema"]


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="[KIND]",
            help="scenario, job, model, layout, stack, plan, layouts, result, profile, server, gpu, ...",
            autocompletion=file_kinds,
        ),
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file."""
    import json

    from simperf.study.file_schemas import file_schema

    typer.echo(json.dumps(file_schema(kind), indent=2, ensure_ascii=False))
