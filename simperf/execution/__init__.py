"""Frontend and backend: how a program's operations reach the devices."""

from simperf.execution.frontend import Frontend, Program
from simperf.execution.modes import MODES, Mode, mode
from simperf.execution.profile import FREE, FrontendPart
from simperf.execution.verbs import compute, copy, item, launch, record, run, synchronize, wait

__all__ = [
    "FREE",
    "MODES",
    "Frontend",
    "FrontendPart",
    "Mode",
    "Program",
    "compute",
    "copy",
    "item",
    "launch",
    "mode",
    "record",
    "run",
    "synchronize",
    "wait",
]
