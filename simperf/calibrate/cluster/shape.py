"""Shape of the boxed cluster's links: one value that the measuring and the predicting side share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simperf.errors import InputError, Problem, SimperfError
from simperf.units import parse

__all__ = ["QUEUE", "SEGMENT", "SOCKET", "Shape", "read_rate", "read_shape", "read_size"]

#: bytes that a token bucket lets through at once [B]
_BURST = 32 * 1024.0
#: bytes that a port of the switch keeps waiting before it drops [B]
QUEUE = 512 * 1024.0
#: segments travel at most so much at once [B], so that a bucket never has to cut what the sender's kernel put together
SEGMENT = 16 * 1024
#: most that a socket takes from its sender before it is acknowledged, the kernel's own overhead included [B]
SOCKET = 128 * 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """Rates of the hosts' links, the same in both directions.

    Parameters
    ----------
    rate : float
        Of every host's link [B/s].
    rate_of : mapping of int to float
        Hosts whose link differs [B/s].
    burst : float
        Size of the token buckets [B].
    queue : float
        What a port of the switch keeps waiting before it drops [B].
    """

    rate: float
    rate_of: Mapping[int, float] = field(default_factory=dict)
    burst: float = _BURST
    queue: float = QUEUE

    def __post_init__(self) -> None:
        problems = [
            Problem("must be above 0", key=key, value=str(value))
            for key, value in (
                ("rate", self.rate),
                *((f"rate_of.{host}", rate) for host, rate in self.rate_of.items()),
                ("burst", self.burst),
                ("queue", self.queue),
            )
            if not 0.0 < value < float("inf")
        ]
        if problems:
            raise InputError(problems)

    def of(self, host: int) -> float:
        """Rate of a host's link [B/s]."""
        return self.rate_of.get(host, self.rate)


_BITS = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)bit", re.IGNORECASE)
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([km]?)b", re.IGNORECASE)
_THOUSANDS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def read_rate(text: str, key: str = "rate") -> float:
    """Read a rate as ``tc`` writes it (``200mbit``) or with a unit (``25 MB/s``) [B/s].

    Raises
    ------
    InputError
        It is neither.

    Examples
    --------
    >>> read_rate("200mbit"), read_rate("25 MB/s")
    (25000000.0, 25000000.0)
    """
    match = _BITS.fullmatch(text.strip())
    if match:
        return float(match[1]) * _THOUSANDS[match[2].lower()] / 8
    return _quantity(text, key, "B/s", "a rate such as 200mbit or 25 MB/s")


def read_size(text: str, key: str = "size") -> float:
    """Read a size as ``tc`` writes it (``32kb`` is 32 KiB) or with a unit (``32 KiB``) [B].

    Raises
    ------
    InputError
        It is neither.

    Examples
    --------
    >>> read_size("32kb"), read_size("32 KiB")
    (32768.0, 32768.0)
    """
    match = _BYTES.fullmatch(text.strip())
    if match and " " not in text.strip():
        return float(match[1]) * 1024.0 ** " km".index(match[2].lower() or " ")
    return _quantity(text, key, "B", "a size such as 32kb or 32 KiB")


def read_shape(rate: str, rate_of: Iterable[str] = (), *, burst: str, queue: str, hosts: int) -> Shape:
    """Read the shape of links, as the options of `simperf calibrate cluster` give it.

    Parameters
    ----------
    rate : str
        Of every host's link, as of `read_rate`.
    rate_of : iterable of str
        ``HOST=RATE`` of the hosts whose link differs.
    burst, queue : str
        As of `read_size`.
    hosts : int
        How many there are.

    Raises
    ------
    InputError
        What cannot be read, with its option; a host that there is not.

    Examples
    --------
    >>> read_shape("200mbit", ["1=50mbit"], burst="32kb", queue="512kb", hosts=2).of(1)
    6250000.0
    """
    slow = {}
    for text in rate_of:
        host, _, value = text.partition("=")
        if not value or not host.strip().isdigit() or int(host) >= hosts:
            raise InputError(
                Problem("no host and rate", key="--rate-of", value=text, expected=f"HOST=RATE, host 0 to {hosts - 1}")
            )
        slow[int(host)] = read_rate(value, "--rate-of")
    return Shape(read_rate(rate, "--rate"), slow, read_size(burst, "--burst"), read_size(queue, "--queue"))


def _quantity(text: str, key: str, unit: str, expected: str) -> float:
    try:
        return parse(text, unit)
    except SimperfError:
        raise InputError(Problem("cannot be read", key=key, value=text, expected=expected)) from None
