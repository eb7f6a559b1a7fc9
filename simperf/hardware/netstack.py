"""A host's network stack as a part: what messages between processes cost the hosts' cores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from simperf.hardware.part import Part
from simperf.hardware.quantity import Bandwidth, Count, Fraction, Latency, Overhead, Size, Span

__all__ = ["Hosting", "NetworkStackPart", "Shaping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStackPart(Part):
    """CPU time, wake-ups and protocol of the sockets through which hosts talk.

    Every default costs nothing: such a stack leaves the time of a message to the links.

    Parameters
    ----------
    wake : float
        Time until a message is taken up by a core that sleeps [s].
    message : float
        CPU time of one message from process to process, half of it at either end; a send is three messages, because
        the two ends tell each other first that they are ready [s].
    call : float
        CPU time of asking for a send or a receive [s].
    cold : float
        CPU time that a message takes longer if the thread that takes it has slept long [s].
    poll : float
        Time in which what a core that sleeps keeps of its threads' caches falls to 1/e: for which an idle kernel, and a
        hypervisor below it, look for work before they let it sleep (``guest_halt_poll_ns`` and ``halt_poll_ns`` of
        Linux, which are 200,000 unless they are set) [s].
    keep : float
        The same of a thread on a busy core, whose caches others use meanwhile: round trips of 64 KiB (it sleeps
        1.7 ms) to 1 MiB take 80 to 190 us longer than two sends, the mean of five recordings [s].
    operation : float
        CPU time of a collective's caller besides its sends and receives [s].
    byte_rate : float
        Payload that one core moves a second, both ends together, where every segment wakes a thread [B/s].
    bulk_rate : float
        The same where bytes come all at once, so that no thread is woken for a segment [B/s].
    add_rate : float
        Payload that one core adds to another a second [B/s].
    rate : float
        Most that one connection carries [B/s].
    efficiency : float
        Payload bytes a byte that the links are said to carry [1].
    header : float
        Headers of a packet, and so an acknowledgement [B].
    word : float
        What the library writes before a message, and by itself when an end is ready [B].
    segment : float
        Bytes that travel together and are acknowledged together [B].
    window : float
        What a connection keeps in the queues of NIC and switch [B].
    threads : int
        Collectives of a process that are under way at one time.
    """

    KIND: ClassVar[str] = "network-stack"

    wake: Latency = 0.0
    message: Latency = 0.0
    call: Latency = 0.0
    cold: Latency = 0.0
    poll: Span = 200e-6
    keep: Span = 2e-3
    operation: Latency = 0.0
    byte_rate: Bandwidth = math.inf
    bulk_rate: Bandwidth = math.inf
    add_rate: Bandwidth = math.inf
    rate: Bandwidth = math.inf
    efficiency: Fraction = 1.0
    header: Overhead = 0.0
    word: Overhead = 0.0
    segment: Size = 16384.0
    window: Overhead = 0.0
    threads: Count = 1


@dataclass(frozen=True, slots=True)
class Shaping:
    """The token bucket before a link, which lets its rate be exceeded for a short while.

    Parameters
    ----------
    burst : float
        Size of the bucket [B].
    peak : float
        Rate while there are tokens [B/s].
    """

    burst: float
    peak: float


@dataclass(frozen=True, slots=True)
class Hosting:
    """Properties of a machine's hosts besides their parts.

    Parameters
    ----------
    stack : NetworkStackPart or None
        Network stack of every host; without one a message costs no CPU time.
    shared_cores : float or None
        Cores that all hosts have together, because they live on one processor; None gives each its own.
    shaped : mapping of str to Shaping
        Token buckets by the resource of their link; other links have none.
    """

    stack: NetworkStackPart | None = None
    shared_cores: float | None = None
    shaped: Mapping[str, Shaping] = field(default_factory=dict)
