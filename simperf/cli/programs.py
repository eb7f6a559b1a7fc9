"""`simperf programs`: what a scenario may run, and the parameters of each program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer

from simperf.cli.completion import program_names
from simperf.cli.options import Format

if TYPE_CHECKING:
    from simperf.programs import Parameter

__all__ = ["programs"]


def programs(
    name: Annotated[
        str,
        typer.Argument(metavar="[NAME]", help="A program; all are listed if left out.", autocompletion=program_names),
    ] = "",
    output: Format = "table",
) -> None:
    """List the programs that a scenario may name, or show the parameters of one."""
    from simperf.programs import PROGRAMS
    from simperf.report.rows import rows_text
    from simperf.report.terminal import fold_comments

    if not name:
        typer.echo(rows_text([{"name": each, "title": PROGRAMS[each].title} for each in PROGRAMS], output))
        return
    spec = PROGRAMS[name]
    if output == "table":
        typer.echo(fold_comments(f'# {spec.title}\n[program]\nuse = "{name}"\n'))
    typer.echo(rows_text([_row(parameter) for parameter in spec.parameters.values()], output))


def _row(parameter: Parameter) -> dict[str, Any]:
    from simperf.units import Unit, format_quantity

    annotation, value = parameter.annotation, parameter.default
    arguments = get_args(annotation)
    unit = next((a for a in arguments if isinstance(a, Unit)), None)
    if unit is not None:
        kind, default = f"quantity [{unit.dimension}]", format_quantity(value, unit.dimension)
    elif get_origin(annotation) is Annotated:  # a plain type with a limit, which a refusal tells
        kind, default = arguments[0].__name__, _toml(value)
    elif arguments and get_origin(annotation) not in (list, dict):
        kind, default = " | ".join(str(a) for a in arguments), str(value)
    else:
        kind, default = getattr(annotation, "__name__", str(annotation)), _toml(value)
    return {"parameter": parameter.name, "type": kind, "default": default, "meaning": parameter.doc}


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value) if not isinstance(value, str) else f'"{value}"'
