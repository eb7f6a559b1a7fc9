"""Limits of a server's clients and of its memory: requests not answered yet, and slices taken in at one time.

Both are bounds of software, not of links: a client has buffers for so many requests, and one thread that posts them;
a server has buffers for so many slices, each taken until all workers have sent theirs and it is added up.
So does osrg/optcast at 355ca0a (`nccl_plugin/src/optcast_plugin.cc`, `reduction_server/src/server.rs`).
"""

from __future__ import annotations

from collections import deque
from functools import partial

import simpy

from simperf.training.servers.transfers import Then, after

__all__ = ["Buffers", "Requests"]


class Requests:
    """A worker's requests: so many without an answer, posted one after the other.

    The thread that posts waits until the server takes a request before it continues to the next one, and a request's
    buffer is free when it and all older ones are answered. The thread may take its time over a request before it
    posts it, and again over its answer; it does one thing at a time, answers first.

    Parameters
    ----------
    limit : int
        Requests without an answer; 0 for all at once, none of which waits for another.
    handle : float
        Time of the thread for posting a request, and again for its answer [s].
    env : simpy.Environment, optional
        Keeps the time, where the thread takes any.

    Examples
    --------
    >>> requests, order = Requests(2), []
    >>> for i in range(3): requests.ask(i, lambda i=i: order.append(i))
    >>> requests.sent(); requests.sent(); order
    [0, 1]
    >>> requests.answered(1, lambda: None); order  # the oldest is still under way
    [0, 1]
    >>> requests.answered(0, lambda: None); order
    [0, 1, 2]
    """

    __slots__ = ("_answered", "_busy", "_env", "_handle", "_open", "_queue", "_replies", "_walking", "limit")

    def __init__(self, limit: int, *, handle: float = 0.0, env: simpy.Environment | None = None) -> None:
        self.limit = limit
        self._handle, self._env = handle, env
        self._queue: deque[tuple[int, Then]] = deque()
        self._replies: deque[tuple[int, Then]] = deque()  # that the thread has not looked at yet
        self._open: deque[int] = deque()
        self._answered: set[int] = set()
        self._busy = self._walking = False

    def ask(self, index: int, post: Then) -> None:
        """Post request number `index` when its turn comes."""
        if not self.limit and not self._handle:
            post()
            return
        self._queue.append((index, post))
        self._next()

    def sent(self) -> None:
        """The server takes the last request; the thread continues."""
        self._busy = False
        self._next()

    def answered(self, index: int, then: Then) -> None:
        """An answer has come: continue when the thread has taken it."""
        if self._handle:
            self._replies.append((index, then))
            self._next()
        else:
            self._free(index)
            then()

    def _free(self, index: int) -> None:
        """A request is over; its buffer and those before it are free."""
        if not self.limit:
            return
        self._answered.add(index)
        while self._open and self._open[0] in self._answered:
            self._answered.remove(self._open.popleft())
        self._next()

    def _next(self) -> None:
        if self._walking:
            return  # a request that is taken at once: the loop below goes on
        self._walking = True
        while not self._busy and self._replies:
            self._take(partial(self._over, *self._replies.popleft()))
        while self._queue and not self._busy and (not self.limit or len(self._open) < self.limit):
            index, post = self._queue.popleft()
            if self.limit:
                self._open.append(index)
            self._take(post)
        self._walking = False

    def _take(self, then: Then) -> None:
        """The thread is busy: until `sent` if it posts."""
        self._busy = True
        if self._handle and self._env is not None:
            after(self._env, self._handle, then)
        else:
            then()

    def _over(self, index: int, then: Then) -> None:
        self._busy = False
        self._free(index)
        then()
        self._next()


class Buffers:
    """A server's buffers: so many slices that it takes in, each until the sum is there.

    Parameters
    ----------
    count : int
        Slices at one time; 0 for all.

    Examples
    --------
    >>> buffers, order = Buffers(1), []
    >>> for slice, worker in ((0, "a"), (1, "a"), (0, "b"), (1, "b")):
    ...     buffers.take(slice, lambda slice=slice, worker=worker: order.append(f"{worker}{slice}"))
    >>> order
    ['a0', 'b0']
    >>> buffers.free(0); order
    ['a0', 'b0', 'a1', 'b1']
    """

    __slots__ = ("_held", "_waiting", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        self._held: set[int] = set()
        self._waiting: dict[int, list[Then]] = {}

    def take(self, index: int, then: Then) -> None:
        """Continue when slice number `index` has a buffer."""
        if not self.count or index in self._held:
            then()
        elif len(self._held) < self.count:
            self._held.add(index)
            then()
        else:
            self._waiting.setdefault(index, []).append(then)

    def free(self, index: int) -> None:
        """The sum of slice number `index` is there; the slice that has waited longest takes its buffer."""
        if not self.count:
            return
        self._held.discard(index)
        if self._waiting:
            first = next(iter(self._waiting))
            self._held.add(first)
            for then in self._waiting.pop(first):
                then()
