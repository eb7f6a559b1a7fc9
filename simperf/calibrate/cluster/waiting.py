"""What bytes and messages lose where threads wait: for a core, and for their caches.

A fluid that shares cores evenly at every instant loses nothing until the cores are full. Threads do: one that is ready
waits for those that run. Bytes wait in their socket meanwhile, and where it runs dry the link rests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping

from simperf.engine.bucket import TokenBucket

__all__ = ["KEEP", "POLL", "Pace", "cooled", "found", "kept"]

#: how long an idle kernel, and a hypervisor below it, look for work before they let a core sleep [s]
#: (``guest_halt_poll_ns`` and ``halt_poll_ns`` of Linux, which are 200,000 unless they are set)
POLL = 200e-6
#: how long a thread's caches last while it sleeps, or others run [s]: round trips of 64 KiB (it sleeps 1.7 ms), 128,
#: 256 and 1024 KiB take 80, 120, 130 and 190 us longer than their sends tell, the mean of five recordings
KEEP = 2e-3
#: steps in which a link's rate is changed, as parts of it: less is not worth an event
_STEPS = 256.0


def kept(offered: float, window: float) -> float:
    """Share of its rate that a link keeps if it gives the cores so much to do.

    Link and cores are two stations that a connection's segments go round, `window` of them. Where service times
    scatter, the link is at work a share (1 - r^W) / (1 - r^(W+1)) of the time, r being the time at the cores over the
    time at the link (W. J. Gordon and G. F. Newell, "Closed queuing systems with exponential servers", Operations
    Research 15(2), 1967, for two stations). With very many segments that is min(1, 1/r), as a fluid has it.

    Parameters
    ----------
    offered : float
        Work for the cores at the link's full rate, over what they can do [1].
    window : float
        Segments under way [1]; infinity is a fluid.

    Examples
    --------
    >>> round(kept(0.5, 1), 3), round(kept(1.0, 6), 3), round(kept(4.0, 6), 3)
    (0.667, 0.857, 0.25)
    """
    if offered > 1.0:
        return kept(1.0 / offered, window) / offered
    if offered <= 0.0 or math.isinf(window):
        return 1.0
    if offered > 1.0 - 1e-6:
        return window / (window + 1.0)
    return float((1.0 - offered**window) / (1.0 - offered ** (window + 1.0)))


def found(offered: float, together: float, window: float) -> float:
    """How many segments a thread finds when it gets the core that it was woken for.

    It waits for those that run, and what comes meanwhile needs no wake-up of its own, as packets need no interrupt of
    their own while a kernel polls (J. H. Salim, R. Olsson, A. Kuznetsov, "Beyond softnet", 5th Annual Linux Showcase,
    2001). Cores at work for a share u of the time keep a thread waiting for u / (1 - u) others (a queue with one
    server, random arrivals), so that it finds 1 / (1 - u) segments. Of the work that is offered, a part `together` is
    left when wake-ups are, and the rest is shared by those found: u = offered (together + (1 - together) (1 - u)).

    Parameters
    ----------
    offered : float
        Work for the cores at the links' full rate if every segment wakes somebody, over what they can do [1].
    together : float
        Part of this work that wakes nobody [1].
    window : float
        Most segments that can have come [1].

    Examples
    --------
    >>> round(found(0.5, 0.4, 6), 2), round(found(1.5, 0.4, 6), 2), round(found(3.0, 0.4, 6), 2)
    (1.62, 4.75, 6)
    """
    used = offered / (1.0 + offered * (1.0 - together))
    return max(1.0, window if used >= 1.0 else min(window, 1.0 / (1.0 - used)))


def cooled(slept: float, after: float = POLL) -> float:
    """How much of a thread's way is cold after it has slept so long [s]: none at once, all `after` some such times."""
    return 1.0 - math.exp(-slept / after)


class Pace:
    """Holds links to the share of their rate that the cores leave them.

    Parameters
    ----------
    ports : mapping of str to TokenBucket
        All links.
    cores : float
        Bytes that all cores can move [B/s].
    window : float
        Segments of a connection under way [1].
    together : float
        Part of a byte's work that is left where nobody is woken for it [1].
    """

    def __init__(self, ports: Mapping[str, TokenBucket], cores: float, window: float, *, together: float = 1.0) -> None:
        self._ports, self._cores, self._window, self._together = ports, cores, window, together
        self._rates = {link: port.rate for link, port in ports.items()}
        self._moving: dict[Hashable, tuple[str, ...]] = {}
        self._users: Counter[str] = Counter()
        self._share = 1.0
        #: segments that a thread finds when it gets a core [1]
        self.found = 1.0

    def enter(self, who: Hashable, links: tuple[str, ...]) -> None:
        """A connection begins to move bytes over links."""
        self._moving[who] = links
        self._users.update(links)
        self._set()

    def leave(self, who: Hashable) -> None:
        """A connection has moved its bytes."""
        for link in self._moving.pop(who):
            self._users[link] -= 1
            if not self._users[link]:
                self._hold(link, 1.0)
        self._set()

    @property
    def offered(self) -> float:
        """Work for the cores if no link had to wait and all segments woke somebody, over what they can do [1]."""
        users, rates = self._users, self._rates
        return sum(min(rates[link] / users[link] for link in links) for links in self._moving.values()) / self._cores

    def _set(self) -> None:
        offered = self.offered
        self.found = found(offered, self._together, self._window)
        offered *= self._together + (1.0 - self._together) / self.found
        share = round(kept(offered, self._window) * _STEPS) / _STEPS
        if share == 1.0 == self._share:
            return
        self._share = share
        for link, users in self._users.items():
            if users:
                self._hold(link, share)

    def _hold(self, link: str, share: float) -> None:
        rate = self._rates[link] * share
        if self._ports[link].rate != rate:
            self._ports[link].set_rate(rate)
