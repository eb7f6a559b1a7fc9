"""`simperf calibrate`: measure, import, fit, validate; a verb a file, ``calibrate_<verb>.py``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import typer

__all__ = ["VERBS", "app"]

#: in the order in which they are used
VERBS = ("measure", "cluster", "import", "fit", "validate")

app = typer.Typer(
    help="Fit the model to measurements: measure or import, then fit, then validate.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _register() -> None:
    """Add each verb whose file is there: the one function that its ``__all__`` names."""
    for verb in VERBS:
        name = f"simperf.cli.calibrate_{verb}"
        if find_spec(name) is not None:
            module = import_module(name)
            app.command(verb)(getattr(module, module.__all__[0]))


_register()
