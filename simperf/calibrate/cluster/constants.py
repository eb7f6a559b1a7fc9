"""What a boxed cluster costs besides the rates of its links: the constants that are fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simperf.calibrate.cluster.shape import SEGMENT

__all__ = ["Constants"]


@dataclass(frozen=True, slots=True)
class Constants:
    """Of one machine, its kernel and its libraries.

    Parameters
    ----------
    efficiency : float
        Payload bytes a byte on the wire; what Ethernet's, IP's and TCP's headers leave.
    burst : float
        What a token bucket lets pass at once [B on the wire].
    latency : float
        Of a message on its way, CPU time left out [s].
    traversal : float
        CPU time of one message from process to process, the two control messages of a send among them [s].
    call : float
        CPU time of asking for a send or a receive [s].
    byte : float
        CPU time a byte of payload at the pace of a link: both kernels' work, the copies into and out of the socket, and
        a thread that is woken for every segment [s/B].
    batched : float
        The same where nothing holds the bytes back: threads that come late find more to do at once [s/B].
    add : float
        CPU time a byte that is added to another [s/B].
    buffer : float
        What the sender's socket takes in, so that the sender is done when so much is still to go [B].
    window : float
        What a connection keeps under way, in the queues of adapters and switch [B]: two segments (TCP small queues).
    start : float
        CPU time of a process that wakes up at the common start until it is at work [s].
    cores : float
        Cores that all hosts share.
    """

    efficiency: float = 1448 / 1514
    burst: float = 32768.0
    latency: float = 30e-6
    traversal: float = 15e-6
    call: float = 20e-6
    byte: float = 4e-9
    batched: float = 2e-9
    add: float = 0.08e-9
    buffer: float = 0.0
    window: float = 2 * SEGMENT
    start: float = 0.0
    cores: float = 2.0

    @property
    def behind(self) -> float:
        """CPU time a byte where links pace the bytes and the cores fall behind them [s/B].

        Some threads come late and find more to do, some do not: the geometric middle of the two costs, which is no
        more than a choice between two bounds that were measured.
        """
        return math.sqrt(self.byte * min(self.byte, self.batched))
