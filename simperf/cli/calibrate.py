"""`simperf calibrate`: measure, import, fit, validate; a verb a file, ``calibrate_<verb>.py``."""

from __future__ import annotations

from importlib import import_module

from simperf.cli.help import CommandApp

__all__ = ["app"]

#: in the order in which they are used
_VERBS = ("measure", "cluster", "import", "fit", "validate", "leave-out", "kernels")

app = CommandApp(
    "Fit the model to measurements: measure or import, then fit, then validate.",
    epilog=(
        "  simperf calibrate measure --quick -o machine.json\n"
        "  simperf calibrate fit machine.json -o profile.toml\n"
        "  simperf calibrate validate profile.toml machine.json"
    ),
)


def _register() -> None:
    """Add each verb: the one function that the ``__all__`` of its file names."""
    for verb in _VERBS:
        module = import_module(f"simperf.cli.calibrate_{verb.replace('-', '_')}")
        app.command(verb)(getattr(module, module.__all__[0]))


_register()
