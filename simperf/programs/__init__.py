"""Short programs, one idea each, that scenarios name; `PROGRAMS` imports each when it is asked for."""

from simperf.programs.parameters import Parameter
from simperf.programs.registry import PROGRAMS, ProgramSpec, program

__all__ = ["PROGRAMS", "Parameter", "ProgramSpec", "program"]
