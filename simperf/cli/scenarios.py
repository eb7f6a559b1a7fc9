"""`simperf scenarios`: the scenarios that come with simperf."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.completion import scenario_names
from simperf.cli.help import CommandApp
from simperf.cli.options import Format

__all__ = ["app"]

app = CommandApp("List the scenarios that come with simperf, or copy one to change it.")


@app.command("list")
def list_scenarios(output: Format = "table") -> None:
    """List the shipped scenarios: their names and what they ask."""
    from simperf.files import read_toml
    from simperf.report.rows import rows_text
    from simperf.scenario import shipped_scenarios

    rows = []
    for name, path in shipped_scenarios().items():
        toml = read_toml(path)
        head = toml.data.get("scenario", {})
        variants = len(toml.data.get("compare", []))
        rows.append({"name": name, "variants": variants, "question": head.get("question", "") or head.get("title", "")})
    if output != "table":
        typer.echo(rows_text(rows, output))
        return
    for folder, group in itertools.groupby(rows, key=lambda row: str(row["name"]).partition("/")[0]):
        typer.echo("" if folder == str(rows[0]["name"]).partition("/")[0] else "\n", nl=False)
        typer.echo(rows_text([{"name": row["name"], "question": row["question"]} for row in group], output))


@app.command("copy")
def copy(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A name of `simperf scenarios list`.",
            autocompletion=scenario_names,
        ),
    ],
    target: Annotated[
        Path | None, typer.Argument(metavar="[DEST]", help="A new file, or a folder; default: here.")
    ] = None,
) -> None:
    """Copy a shipped scenario to a file of your own; an existing file is never overwritten."""
    from simperf.cli.terminal import note
    from simperf.study.starting_files import copy_with_schema

    written, schema = copy_with_schema(name, target or "")
    typer.echo(str(written))
    if schema is not None:
        note(f"wrote {schema}, by which editors complete and check the file")
    note(f"change it, then: simperf run {written}")
