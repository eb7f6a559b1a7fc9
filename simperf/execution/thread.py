"""A host launch thread as its verbs see it, and what a verb comes down to: launches and work of the thread."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, Protocol

import simpy

from simperf.engine.device import Item, Stream
from simperf.engine.items import GraphLaunch
from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Category
from simperf.engine.simulation import Simulation
from simperf.errors import ProgramError
from simperf.execution.module import Module
from simperf.execution.profile import FrontendPart

__all__ = ["Launch", "Spend", "Thread", "Verb"]


class Thread(Protocol):
    """One thread of a host that runs one program (`simperf.execution.frontend.Frontend`).

    Attributes
    ----------
    simulation : Simulation
    env : simpy.Environment
    profile : FrontendPart
        What it pays for launches.
    rank : RankProcess or None
        Whose process it is.
    track : str
        On the timeline.
    path : float
        Critical path of the thread [s].
    captured : dict
        Graphs that were recorded, by module.
    """

    simulation: Simulation
    env: simpy.Environment
    profile: FrontendPart
    rank: Any
    track: str
    path: float
    captured: dict[Any, GraphLaunch]

    def call(self, module: Module, stream: Stream) -> Generator[Any, Any, Any]:
        """Call a network once, as the execution mode does it."""

    def block(self, event: simpy.Event, why: str) -> Generator[Any, Any, Any]:
        """Wait for `event` and show the wait where it happens."""

    def fetch(self, *streams: Stream, why: str = ..., value: bool = ...) -> Generator[Any, Any, Any]:
        """Wait until `streams` are drained and, if a `value` is asked for, their last result has come back."""


class Verb(ABC):
    """Something that a program may yield; `perform` says what it comes down to."""

    __slots__ = ()

    @abstractmethod
    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        """Yield events and simpler verbs until it is done; the returned value is the program's."""


class Launch:
    """Issue one kernel (or captured graph) to a stream."""

    __slots__ = ("kernel", "stream")

    def __init__(self, kernel: Kernel | Item, stream: Stream) -> None:
        self.kernel, self.stream = kernel, stream


class Spend:
    """Work of the thread itself."""

    __slots__ = ("category", "seconds", "what")

    def __init__(self, seconds: float, what: str = "host work", category: Category = "host") -> None:
        try:
            known = 0 <= seconds < math.inf
        except TypeError:
            known = False
        if not known:
            raise ProgramError(f"{what!r} would take {seconds} s; a finite time of 0 s or more is expected")
        self.seconds, self.what, self.category = seconds, what, category
