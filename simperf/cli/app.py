"""All commands by name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from simperf.cli.command_table import lazy_group
from simperf.cli.help import CommandApp, HelpGroup
from simperf.version import __version__

__all__ = ["COMMANDS", "app", "command"]

_WELCOME = f"""\
simperf {__version__} predicts how long deep-learning work takes on hardware that you
do not have. A scenario (a TOML file) names a machine and a program; simperf
simulates it and says where the time goes.

Try:
  simperf scenarios list                       what comes with simperf
  simperf compare d2l/sync-160mb               where to add up gradients
  simperf run d2l/async --set program.t2="5 us"
                                               one run, with a number changed
  simperf run d2l/copy-overlap --trace overlap.json.gz
                                               its timeline, for ui.perfetto.dev
  simperf topo dgx-1v                          how its GPUs are connected

`simperf init scenario first.toml` writes a file to start from.
`simperf --help` lists all commands."""

#: command -> module of this package, and function or `typer.Typer` in it, in the order of the help
COMMANDS = {
    "run": ("run", "run"),
    "compare": ("compare", "compare"),
    "sweep": ("sweep", "sweep"),
    "limits": ("limits", "limits"),
    "plan": ("plan", "plan"),
    "check": ("check", "check"),
    "show": ("show", "show"),
    "import": ("job_import", "import_"),
    "explain": ("explain", "explain"),
    "replay": ("replay", "replay"),
    "programs": ("programs", "programs"),
    "topo": ("topo", "topo"),
    "collective": ("collective", "collective"),
    "trace": ("trace", "trace"),
    "accuracy": ("accuracy", "accuracy"),
    "schema": ("schema", "schema"),
    "init": ("init", "init"),
    "scenarios": ("scenarios", "app"),
    "catalog": ("catalog", "app"),
    "zoo": ("trace", "app"),
    "calibrate": ("calibrate", "app"),
    "lesson": ("lesson", "app"),
}

app = CommandApp(
    "Predict how long deep-learning work takes on hardware that you do not have.",
    name="simperf",
    cls=lazy_group({name: (f"simperf.cli.{module}", found) for name, (module, found) in COMMANDS.items()}, HelpGroup),
    add_completion=True,
    no_args_is_help=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simperf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    """Predict how long deep-learning work takes on hardware that you do not have."""
    if context.invoked_subcommand is None:
        typer.echo(_WELCOME)


def command() -> Any:
    """The command that all others hang on."""
    return typer.main.get_command(app)
