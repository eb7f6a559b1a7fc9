"""Requests to end a command that takes minutes: all are taken like Ctrl-C, and told apart by the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["Ending", "interruptible"]


class Ending:
    """Which signal ended it: Ctrl-C, if nobody says another."""

    def __init__(self) -> None:
        self.number: int = signal.SIGINT

    @property
    def code(self) -> int:
        """The exit code that a shell would show: 130 (Ctrl-C), 143 (SIGTERM) or 129 (SIGHUP)."""
        return 128 + self.number


@contextlib.contextmanager
def interruptible() -> Iterator[Ending]:
    """Take a request to end, and a terminal that is closed, like Ctrl-C: as `KeyboardInterrupt`, so that all is kept.

    A signal that is ignored, as SIGHUP is under nohup, stays so; where Python lets us have no handler, nothing changes.
    """
    ending, ours = Ending(), os.getpid()

    def leave(number: int, frame: FrameType | None) -> None:
        if os.getpid() != ours:  # a forked worker, which its parent ends
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        ending.number = number
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if main and hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, leave)
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
