"""Time as a function of size: alpha-beta, several of them by size, messages in a row, and a constant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from simperf.cost.seams import OpCost
from simperf.errors import InputError, Problem
from simperf.workload.op import Op

__all__ = ["AlphaBeta", "FixedTime", "PiecewiseAlphaBeta", "Pipelined"]


def _check(**values: float) -> None:
    problems = [
        Problem("must be a finite number, 0 or more", key=key, value=repr(value))
        for key, value in values.items()
        if not (math.isfinite(value) and value >= 0)
    ]
    if problems:
        raise InputError(problems)


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """A message of n bytes takes alpha + beta n (R. W. Hockney, Parallel Computing 20, 1994).

    Parameters
    ----------
    alpha : float
        time of an empty message [s]
    beta : float
        time a byte, the inverse of the bandwidth [s/B]

    Examples
    --------
    >>> link = AlphaBeta.of(5e-6, 10e9)
    >>> link.half_size, link.regime(1e3), link.regime(1e6)
    (50000.0, 'latency', 'bandwidth')
    >>> link.bandwidth(50e3) / 10e9
    0.5
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        _check(alpha=self.alpha, beta=self.beta)

    @classmethod
    def of(cls, latency: float, bandwidth: float) -> AlphaBeta:
        """From a latency [s] and a bandwidth [B/s]."""
        if not bandwidth > 0:
            raise InputError(Problem("must be above 0", key="bandwidth", value=repr(bandwidth)))
        return cls(latency, 1.0 / bandwidth)

    def time(self, nbytes: float) -> float:
        """Time for `nbytes` [B] in seconds."""
        _check(nbytes=nbytes)
        return self.alpha + self.beta * nbytes

    def bandwidth(self, nbytes: float) -> float:
        """Achieved bandwidth at this size [B/s]."""
        time = self.time(nbytes)
        return nbytes / time if time else math.inf

    @property
    def half_size(self) -> float:
        """Size that reaches half the bandwidth, Hockney's n_1/2 = alpha / beta [B]."""
        return self.alpha / self.beta if self.beta else math.inf

    def regime(self, nbytes: float) -> str:
        """Term that dominates at this size: ``"latency"`` or ``"bandwidth"``."""
        return "latency" if nbytes < self.half_size else "bandwidth"


@dataclass(frozen=True, slots=True)
class PiecewiseAlphaBeta:
    """Different constants by message size, as where a library changes its protocol.

    Parameters
    ----------
    pieces : tuple of (float, AlphaBeta)
        largest size of each regime [B], increasing, the last infinite, and its constants

    Examples
    --------
    >>> eager, rendezvous = AlphaBeta.of(1e-6, 1e9), AlphaBeta.of(5e-6, 10e9)
    >>> model = PiecewiseAlphaBeta(((4096, eager), (float("inf"), rendezvous)))
    >>> model.piece(4096) is eager, model.piece(4097) is rendezvous
    (True, True)
    """

    pieces: tuple[tuple[float, AlphaBeta], ...]

    def __init__(self, pieces: Iterable[tuple[float, AlphaBeta]]) -> None:
        object.__setattr__(self, "pieces", tuple(pieces))
        limits = [limit for limit, _ in self.pieces]
        if not limits or limits[-1] != math.inf or any(a >= b for a, b in pairwise(limits)):
            problem = Problem(
                "limits must increase and end with infinity",
                key="pieces",
                value=repr(limits),
                expected="such as [(65536, ...), (math.inf, ...)]",
            )
            raise InputError(problem)

    def piece(self, nbytes: float) -> AlphaBeta:
        """Constants that hold at this size."""
        return next(model for limit, model in self.pieces if nbytes <= limit)

    def time(self, nbytes: float) -> float:
        """Time for `nbytes` [B] in seconds."""
        _check(nbytes=nbytes)
        return self.piece(nbytes).time(nbytes)


@dataclass(frozen=True, slots=True)
class Pipelined:
    """Messages that follow one another: each takes the longer of what posting it and what carrying it takes.

    An adapter works on the next message while the last one is on the wire, so that n bytes take max(gap, alpha + beta
    n): below a size its rate of messages holds it back, whatever they carry, above it the wire does (the gap of LogP:
    D. Culler et al., PPoPP 1993; with a gap a byte: A. Alexandrov et al., "LogGP", SPAA 1995).

    Parameters
    ----------
    gap : float
        least time between two messages, the inverse of the message rate [s]
    wire : AlphaBeta
        Time of headers and bytes on the wire.

    Examples
    --------
    >>> adapter = Pipelined(0.3e-6, AlphaBeta(50e-9, 1 / 25e9))
    >>> adapter.time(512), adapter.time(25000)
    (3e-07, 1.05e-06)
    """

    gap: float
    wire: AlphaBeta

    def __post_init__(self) -> None:
        _check(gap=self.gap)

    def time(self, nbytes: float) -> float:
        """Time for `nbytes` [B] in seconds."""
        return max(self.gap, self.wire.time(nbytes))

    def bandwidth(self, nbytes: float) -> float:
        """Achieved bandwidth at this size [B/s]."""
        time = self.time(nbytes)
        return nbytes / time if time else math.inf


@dataclass(frozen=True, slots=True)
class FixedTime:
    """Every operation and every message takes the same time: for t1, t2, t3 of the textbook.

    Parameters
    ----------
    seconds : float
        time [s]
    demand : float
        Fraction of the device that an operation fills, above 0 and at most 1.
    """

    seconds: float
    demand: float = 1.0

    def __post_init__(self) -> None:
        _check(seconds=self.seconds)
        if not 0 < self.demand <= 1:
            raise InputError(Problem("must be above 0 and at most 1", key="demand", value=repr(self.demand)))

    def time(self, nbytes: float) -> float:
        """Return the fixed time [s], whatever `nbytes` [B] is."""
        _check(nbytes=nbytes)
        return self.seconds

    def cost(self, op: Op) -> OpCost:
        """Return the fixed time for any operation, called compute because nothing else is known."""
        return OpCost(self.seconds, self.seconds, 0.0, 0.0, "compute", op.flops, op.nbytes, self.demand)
