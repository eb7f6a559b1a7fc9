"""A host: a finite number of cores that its processes share."""

from __future__ import annotations

import simpy

from simperf.engine.share import Share, Task

__all__ = ["Host"]


class Host:
    """The CPU side of one server.

    Parameters
    ----------
    env : simpy.Environment
    name : str
    cores : float
        Threads that run at full speed at the same time.
    """

    __slots__ = ("cores", "env", "name", "share")

    def __init__(self, env: simpy.Environment, name: str, cores: float) -> None:
        self.env, self.name, self.cores = env, name, cores
        self.share = Share(env, cores)

    def work(self, seconds: float, threads: float = 1.0) -> simpy.Event:
        """Event that comes when `seconds` of work on `threads` cores are done.

        It takes longer when more threads want to run than there are cores.
        """
        event = simpy.Event(self.env)

        def done(_: simpy.Event) -> None:
            event.succeed()

        Task(self.share, done).begin(seconds, threads)
        return event
