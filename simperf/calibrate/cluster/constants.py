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
        CPU time a byte of payload at the pace of a link, on cores that have nothing else to do: both kernels' work, the
        copies into and out of the socket, and a thread on a sleeping core that is woken for every segment [s/B].
    batched : float
        The same where nothing holds the bytes back: threads that come late find more to do at once [s/B].
    cold : float
        CPU time that a message takes longer if the thread that it wakes has slept, as against one of a train [s].
    resume : float
        CPU time that a thread takes longer to go on if it has slept while a large message came [s].
    add : float
        CPU time a byte that is added to another [s/B].
    buffer : float
        What the sender's socket takes in, so that the sender is done when so much is still to go [B].
    window : float
        What a connection keeps under way, in the queues of adapters and switch [B]: two segments (TCP small queues).
    frame : float
        Headers of a packet, and so an acknowledgement: Ethernet, IP, TCP with time stamps [B on the wire].
    word : float
        What gloo writes before a message, and by itself when it is ready to send or to receive [B]: six numbers of
        eight bytes (``gloo/transport/tcp/pair.h``).
    start : float
        CPU time of a process that wakes up at the common start until it is at work [s].
    around : float
        CPU time of a process's own thread for an operation besides its sends and receives [s].
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
    cold: float = 0.0
    resume: float = 0.0
    add: float = 0.08e-9
    buffer: float = 0.0
    window: float = 2 * SEGMENT
    frame: float = 66.0
    word: float = 48.0
    start: float = 0.0
    around: float = 0.0
    cores: float = 2.0

    @property
    def together(self) -> float:
        """CPU time of bytes that come all together, over that of bytes whose every segment wakes somebody [1]."""
        return min(1.0, self.batched / self.byte)

    @property
    def segments(self) -> float:
        """Segments that a connection's socket keeps in store for its link [1]; infinity if nothing is known of it."""
        return max(1.0, self.buffer / SEGMENT) if self.buffer else math.inf

    @property
    def along(self) -> float:
        """What goes the way of a message besides its payload [B on the wire].

        The word that there is something to send, the message's head, and the acknowledgement of the receiver's word.
        """
        return (self.frame + self.word) + self.word + self.frame

    @property
    def against(self) -> float:
        """What goes the other way besides the acknowledgements of segments [B on the wire].

        The word that there is room, and the acknowledgement of the sender's word.
        """
        return (self.frame + self.word) + self.frame
