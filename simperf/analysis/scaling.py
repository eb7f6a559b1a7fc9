"""Scaling of work: its time against a count of devices, beside what that many would ideally take.

What is ideal follows from what is measured. A *rate of work* (samples a second) ideally grows as the
count does. A *bandwidth a rank* (busbw) ideally stays as it is. Where a lower bound is known, it is the ideal.
Efficiency is the ideal time over the time, so that the smallest count has 100 % unless a lower bound says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simperf.results import Result

__all__ = ["COUNTS", "Scaled", "ScalingCurve", "from_rates", "rate_of", "scaling"]

#: names of parameters that count what shares the work
COUNTS = ("gpus", "workers", "servers", "nodes", "ranks")
#: metrics that say how fast work is done, the first that is there counts, and whether they ideally grow with the count
_RATES: Mapping[str, bool] = {
    "samples per second": True,
    "steps per second of all workers": True,
    "bandwidth per GPU": False,
    "busbw": False,
}
_STEP = "time per step"


@dataclass(frozen=True, slots=True, order=True)
class Scaled:
    """One count: what it takes [s], what it ideally would [s], and the interval of the time [s] if there is one."""

    count: int
    time: float
    ideal: float
    interval: tuple[float, float] | None = None

    @property
    def efficiency(self) -> float:
        """Ideal time over time [1]."""
        return self.ideal / self.time if self.time > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """Points over one count, rising.

    Parameters
    ----------
    key : str
        What is counted, such as ``"gpus"``.
    label : str
        What tells this line from others of the same study; empty for the only one.
    what : str
        What the time is of: ``"time per step"`` or ``"time"``.
    ideal : str
        What the ideal is, in words.
    points : tuple of Scaled
    """

    key: str
    label: str
    what: str
    ideal: str
    points: tuple[Scaled, ...]


def rate_of(metrics: Mapping[str, float]) -> str:
    """The metric that says how fast work is done; empty if none does."""
    return next((name for name in _RATES if metrics.get(name, 0.0) > 0), "")


def from_rates(
    rows: Mapping[int, tuple[float, Mapping[str, float]]],
    *,
    key: str,
    label: str = "",
    intervals: Mapping[int, tuple[float, float]] | None = None,
) -> ScalingCurve | None:
    """Scaling of runs by count: their time [s] and their metrics; None if fewer than two have a rate in common.

    Examples
    --------
    >>> rows = {1: (1.0, {"samples per second": 100.0}), 4: (1.25, {"samples per second": 320.0})}
    >>> [(point.count, point.ideal, point.efficiency) for point in from_rates(rows, key="gpus").points]
    [(1, 1.0, 1.0), (4, 1.0, 0.8)]
    """
    name = next((rate_of(metrics) for _, metrics in rows.values() if rate_of(metrics)), "")
    counts = sorted(count for count, (time, metrics) in rows.items() if metrics.get(name, 0.0) > 0 and time > 0)
    if len(counts) < 2:
        return None
    first = counts[0]
    grows, base = _RATES[name], rows[first][1][name]
    stepped = all(rows[count][1].get(_STEP, 0.0) > 0 for count in counts)
    points = []
    for count in counts:
        time, metrics = rows[count]
        best = base * count / first if grows else base
        took = metrics[_STEP] if stepped else time
        # an interval of the run's time says nothing of a step's
        interval = None if stepped else (intervals or {}).get(count)
        points.append(Scaled(count, took, took * metrics[name] / best, interval))
    ideal = f"{name} in proportion to the count, from {first} on" if grows else f"the {name} of {first}, kept"
    return ScalingCurve(key, label, _STEP if stepped else "time", ideal, tuple(points))


def scaling(results: Mapping[int, Result], *, key: str, label: str = "") -> ScalingCurve | None:
    """Scaling of results by count; None if there is nothing to hold against each other.

    Parameters
    ----------
    results : mapping of int to Result
        By count.
    key : str
        What is counted.
    label : str
        Of the line.
    """
    rows = {
        count: (result.time, {name: metric.value for name, metric in result.metrics.items()})
        for count, result in results.items()
    }
    intervals = {count: result.intervals["time"] for count, result in results.items() if "time" in result.intervals}
    return from_rates(rows, key=key, label=label, intervals=intervals)
