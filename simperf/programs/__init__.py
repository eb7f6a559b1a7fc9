"""Short programs, one idea each, that scenarios name. Importing this registers them all."""

from importlib import import_module

from simperf.programs.registry import PROGRAMS, Parameter, ProgramSpec, program

__all__ = ["PROGRAMS", "Parameter", "ProgramSpec", "program"]

for _name in (
    "asynchrony",
    "regimes",
    "parallel",
    "copies",
    "hardware",
    "pipeline",
    "synchronisation",
    "step",
    "training",
    "servers",
    "reality",
    "loss",
    "epochs",
    "uneven",
    "rivals",
    "recommender",
):
    import_module(f"simperf.programs.{_name}")
