"""A link behind a token bucket: short bursts pass at once, what continues is limited to the rate.

Tokens come in at the link's rate until the bucket is full, and every byte takes one. While
there are tokens, the link lets pass what the rest of the route can carry; when they are gone,
what comes in. It is the shaper of operating systems (``tbf`` of Linux), of clouds' NICs
and disks ("burst credits"), and of switches (J. Turner, "New directions in communications",
IEEE Communications Magazine 24, 1986). Exact for fluid flows: the tokens of a bucket are
counted whenever the rate that is drawn changes, and one alarm tells when they are gone.

Not modelled: packets, which wait for all their tokens at once.
"""

from __future__ import annotations

import math

from simperf.engine.network import FlowNetwork
from simperf.engine.share import Alarm
from simperf.errors import ProgramError

__all__ = ["PACKET", "TokenBucket"]

#: tokens that must have come together before a drained bucket lets anything pass in a burst [B]
PACKET = 1500.0


class TokenBucket:
    """Shapes one resource of a flow network.

    Parameters
    ----------
    network : FlowNetwork
    resource : str
        The link; its capacity is set from here on.
    rate : float
        Tokens a second [B/s].
    burst : float
        Size of the bucket [B]; it starts full.
    peak : float
        What the link lets pass while there are tokens [B/s].

    Examples
    --------
    >>> import simpy
    >>> env = simpy.Environment()
    >>> network = FlowNetwork(env, {"port": 0.0})
    >>> bucket = TokenBucket(network, "port", rate=10.0, burst=3000.0, peak=1000.0)
    >>> round(env.run(network.transfer(["port"], 4000.0)), 9)  # 3030.3 B at 1000 B/s, the rest at 10 B/s
    100.0
    """

    def __init__(
        self, network: FlowNetwork, resource: str, *, rate: float, burst: float, peak: float = math.inf
    ) -> None:
        if not (0.0 < rate < math.inf and 0.0 <= burst < math.inf and peak >= rate):
            right = "a rate above 0, a burst of 0 or more, both finite, and a peak of at least the rate"
            told = f"token bucket of {resource!r}: rate {rate}, burst {burst}, peak {peak}"
            raise ProgramError(f"{told}; {right} are expected")
        self.network, self.resource = network, resource
        self.rate, self.burst, self.peak = rate, burst, peak
        self._tokens = burst
        self._drawn = 0.0
        self._since = network.env.now
        self._open = burst >= PACKET
        self._alarm: Alarm | None = None
        network.set_capacity(resource, peak if self._open else rate)
        network.watch(resource, self._changed)

    @property
    def tokens(self) -> float:
        """Tokens in the bucket now [B]."""
        grown = (self.rate - self._drawn) * (self.network.env.now - self._since)
        return min(self.burst, max(0.0, self._tokens + grown))

    def _changed(self, drawn: float) -> None:
        """Count the tokens, and see when they are gone at the new rate."""
        self._tokens, self._drawn, self._since = self.tokens, drawn, self.network.env.now
        if self._alarm is not None:
            self._alarm.disarm()
            self._alarm = None
        if not self._open and self._tokens >= PACKET:
            self._turn(True)
        elif self._open and drawn > self.rate:
            self._alarm = Alarm(self.network.env, self._gone)
            self._alarm.arm(self._tokens / (drawn - self.rate))

    def _gone(self, _: object) -> None:
        self._alarm = None
        self._tokens, self._since = 0.0, self.network.env.now
        self._turn(False)

    def _turn(self, open_: bool) -> None:
        self._open = open_
        self.network.set_capacity(self.resource, self.peak if open_ else self.rate)
