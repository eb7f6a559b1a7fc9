"""All commands, put together."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from simperf.cli import (
    accuracy,
    calibrate,
    catalog,
    check,
    collective,
    compare,
    lesson,
    limits,
    plan,
    programs,
    run,
    scenarios,
    schema,
    show,
    sweep,
    topo,
    trace,
)
from simperf.version import __version__

__all__ = ["app", "command"]

_WELCOME = f"""\
simperf {__version__} predicts how long deep-learning work takes on hardware that you do not have.
A scenario (a TOML file) names a machine and a program; simperf plays it through and says where the time goes.

Try:
  simperf scenarios list                                  what comes with simperf
  simperf compare d2l/sync-160mb                          add up gradients on a GPU, the CPU, or everywhere
  simperf run d2l/async --set program.t2="5 us"           one run, with a number changed
  simperf run d2l/copy-overlap --trace overlap.json.gz    a timeline for https://ui.perfetto.dev
  simperf topo dgx-1v                                     how the GPUs of a machine are wired

`simperf scenarios copy d2l/async` gives you a file of your own to change; `simperf --help` lists all commands."""

app = typer.Typer(
    name="simperf",
    help="Predict how long deep-learning work takes on hardware that you do not have.",
    rich_markup_mode=None,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simperf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    """Predict how long deep-learning work takes on hardware that you do not have."""
    if context.invoked_subcommand is None:
        typer.echo(_WELCOME)


app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("limits")(limits.limits)
app.command("plan")(plan.plan)
app.command("check")(check.check)
app.command("show")(show.show)
app.add_typer(scenarios.app, name="scenarios")
app.command("programs")(programs.programs)
app.add_typer(catalog.app, name="catalog")
app.command("topo")(topo.topo)
app.command("collective")(collective.collective)
app.command("trace")(trace.trace)
app.add_typer(trace.app, name="zoo")
app.command("accuracy")(accuracy.accuracy)
app.add_typer(calibrate.app, name="calibrate")
app.add_typer(lesson.app, name="lesson")
app.command("schema")(schema.schema)


def command() -> Any:
    """The command that all others hang on."""
    return typer.main.get_command(app)
