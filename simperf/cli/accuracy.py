"""``simperf accuracy``: predictions beside published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["accuracy"]


def accuracy(
    files: Annotated[
        list[str] | None, typer.Argument(help="Scenario files with [measured] tables; without any, the shipped ones.")
    ] = None,
    form: Annotated[
        Literal["table", "csv", "json", "markdown"], typer.Option("--format", help="How to print.")
    ] = "table",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead.")] = None,
) -> None:
    """Hold predictions against published measurements: every figure, with its signed error."""
    from simperf.files import write_text
    from simperf.report.ledger import ledger_csv, ledger_json, ledger_markdown, ledger_text
    from simperf.scenario import shipped_scenarios
    from simperf.study import ledger

    names = files or [name for name in shipped_scenarios() if name.startswith("measured/")]
    write = {"table": ledger_text, "csv": ledger_csv, "json": ledger_json, "markdown": ledger_markdown}[form]
    text = write(ledger(names))
    if output is None:
        typer.echo(text)
    else:
        write_text(output, text.rstrip("\n") + "\n")
