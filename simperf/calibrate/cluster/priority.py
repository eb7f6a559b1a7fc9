"""Priority of threads on the cores that all boxed hosts share."""

from __future__ import annotations

import contextlib
import os
from typing import Any

__all__ = ["COMPUTING", "ORDINARY", "REAL_TIME", "SENDING", "VARIABLE", "give_way", "promptly"]

#: how the hosts' threads are scheduled: before all others, or as any program's
REAL_TIME, ORDINARY = "real-time", "ordinary"
#: what tells the hosts' processes
VARIABLE = "SIMPERF_BOX_PRIORITY"
#: real-time priorities; a thread has that of the one that has started it
COMPUTING, SENDING = 21, 22


def promptly(priority: int) -> None:
    """Have this thread, and those that it starts, run as soon as they can, whatever else runs on the machine.

    A thread that is woken does not preempt another one of its own real-time priority. Gloo needs that where many hosts
    share few cores: its input thread spins while a preempted thread holds the lock of a connection, 2 ms at a time.
    """
    if os.environ.get(VARIABLE) == ORDINARY:
        return
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))


def give_way(model: Any) -> None:
    """Have a network's processes take turns on a core after every layer, as under a fair scheduler."""
    if os.environ.get(VARIABLE) == ORDINARY:
        return  # which they are under

    def turn(*_: Any) -> None:
        os.sched_yield()

    for layer in model.children():
        layer.register_forward_hook(turn)
        layer.register_full_backward_hook(turn)
