"""A host: a finite number of cores that its processes share."""

from __future__ import annotations

import simpy

from simperf.engine.share import Share, ShareUser

__all__ = ["Host"]


class Host:
    """The CPU side of one server.

    Parameters
    ----------
    env : simpy.Environment
    name : str
    cores : float
        Threads that run at full speed at the same time.
    share : Share, optional
        Cores that it has together with other hosts; its own if left out.
    """

    __slots__ = ("cores", "env", "name", "share")

    def __init__(self, env: simpy.Environment, name: str, cores: float, *, share: Share | None = None) -> None:
        self.env, self.name, self.cores = env, name, cores
        self.share = share or Share(env, cores)

    def work(self, seconds: float, threads: float = 1.0) -> simpy.Event:
        """Event that comes when `seconds` of work on `threads` cores are done.

        It takes longer when more threads want to run than there are cores.
        """
        event = simpy.Event(self.env)

        def done(_: simpy.Event) -> None:
            event.succeed()

        ShareUser(self.share, done).begin(seconds, threads)
        return event
