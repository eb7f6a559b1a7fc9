"""Checkpoints: what they cost, and how often they pay.

A synchronous checkpoint stops training until it is written. An asynchronous one stops it
only for the copy into host memory; the write continues beside training, and the checkpoint
can be used when the write is over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from simperf.errors import InputError, Problem

__all__ = ["Checkpoint", "daly", "young"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Checkpoints of a job's state.

    Parameters
    ----------
    interval : float
        Training between the end of one checkpoint and the start of the next [s].
    nbytes : float
        Size of the whole job's state [B].
    bandwidth : float
        Of the storage that all nodes share, or of each node's own where `per_node` [B/s].
    per_node : bool
        Every node writes its part to a store of its own.
    asynchronous : bool
    host_bandwidth : float
        From the devices to host memory, a node [B/s]; what stops training when asynchronous.
    latency : float
        Of each checkpoint: barrier, opening of files [s].
    load_bandwidth : float
        Reading it back; 0 takes `bandwidth` [B/s].
    """

    interval: float
    nbytes: float = 0.0
    bandwidth: float = math.inf
    per_node: bool = False
    asynchronous: bool = False
    host_bandwidth: float = math.inf
    latency: float = 0.0
    load_bandwidth: float = 0.0

    def __post_init__(self) -> None:
        problems = [
            Problem(f"{words} is expected", key=f"checkpoint.{key}", value=f"{value:g}")
            for key, value, right, words in (
                ("interval", self.interval, 0 < self.interval < math.inf, "a finite time above 0 s"),
                ("nbytes", self.nbytes, 0 <= self.nbytes < math.inf, "a finite size of 0 B or more"),
                ("bandwidth", self.bandwidth, self.bandwidth > 0, "a rate above 0 B/s"),
                ("host_bandwidth", self.host_bandwidth, self.host_bandwidth > 0, "a rate above 0 B/s"),
                ("load_bandwidth", self.load_bandwidth, self.load_bandwidth >= 0, "a rate of 0 B/s or more"),
                ("latency", self.latency, 0 <= self.latency < math.inf, "a finite time of 0 s or more"),
            )
            if not right
        ]
        if problems:
            raise InputError(problems)

    def _storage(self, nodes: int, bandwidth: float) -> float:
        return self.nbytes / (bandwidth * (nodes if self.per_node else 1))

    def pause(self, nodes: int) -> float:
        """Time for which training on `nodes` nodes stops [s]."""
        if self.asynchronous:
            return self.latency + self.nbytes / (self.host_bandwidth * nodes)
        return self.latency + self._storage(nodes, self.bandwidth)

    def write(self, nodes: int) -> float:
        """Time after the pause until the checkpoint can be used [s]."""
        return self._storage(nodes, self.bandwidth) if self.asynchronous else 0.0

    def spacing(self, nodes: int) -> float:
        """Training before each checkpoint [s]: the interval, or as long as a write takes if that is longer."""
        return max(self.interval, self.write(nodes))

    def load(self, nodes: int) -> float:
        """Time to read a checkpoint back [s]."""
        return self._storage(nodes, self.load_bandwidth or self.bandwidth)


def young(pause: float, mtbf: float) -> float:
    """Best interval to first order [s]: J. W. Young, CACM 17(9), 1974.

    Parameters
    ----------
    pause : float
        Time for which a checkpoint stops training [s].
    mtbf : float
        Mean time between failures of the job [s].
    """
    return math.sqrt(2.0 * pause * mtbf)


def daly(pause: float, mtbf: float) -> float:
    """Best interval to higher order [s]: J. T. Daly, FGCS 22(3), 2006, equation 37.

    Examples
    --------
    >>> round(young(60.0, 86400.0)), round(daly(60.0, 86400.0))
    (3220, 3180)
    """
    if pause >= 2.0 * mtbf:
        return mtbf
    half = math.sqrt(pause / (2.0 * mtbf))
    return math.sqrt(2.0 * pause * mtbf) * (1.0 + half / 3.0 + half**2 / 9.0) - pause
