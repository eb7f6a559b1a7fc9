"""`simperf schema`: the JSON Schema of scenarios and parts, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["schema"]


def schema(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="scenario, server, cluster, gpu, cpu, link, ...")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file."""
    import json

    from simperf.scenario.json_schema import json_schema

    typer.echo(json.dumps(json_schema(kind), indent=2, ensure_ascii=False))
