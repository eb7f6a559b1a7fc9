"""Execution: the host launch thread, its modes and verbs, process groups of ranks, and the session of a run."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.execution.communication import batch_isend_irecv, collective, irecv, isend, recv, send
    from simperf.execution.frontend import Frontend, Program
    from simperf.execution.modes import MODES, Mode, mode
    from simperf.execution.profile import FREE, FrontendPart
    from simperf.execution.verbs import compute, copy, item, launch, record, run, synchronize, wait, wait_stream
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "communication": ("batch_isend_irecv", "collective", "irecv", "isend", "recv", "send"),
            "frontend": ("Frontend", "Program"),
            "modes": ("MODES", "Mode", "mode"),
            "profile": ("FREE", "FrontendPart"),
            "verbs": ("compute", "copy", "item", "launch", "record", "run", "synchronize", "wait", "wait_stream"),
        },
    )

__all__ = [
    "FREE",
    "MODES",
    "Frontend",
    "FrontendPart",
    "Mode",
    "Program",
    "batch_isend_irecv",
    "collective",
    "compute",
    "copy",
    "irecv",
    "isend",
    "item",
    "launch",
    "mode",
    "record",
    "recv",
    "run",
    "send",
    "synchronize",
    "wait",
    "wait_stream",
]
