"""Share of data movement that is hidden under the work of devices."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.analysis.timeline import sweep
from simperf.engine.recorder import Category
from simperf.results import Result

__all__ = ["Overlap", "overlap"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """One activity against the kernels of all devices; with stages, of each rank against its own, the mean over ranks.

    Parameters
    ----------
    total : float
        Time for which it was active [s].
    hidden : float
        Part of it in which some device, or the rank itself, ran a kernel [s].
    """

    total: float
    hidden: float

    @property
    def exposed(self) -> float:
        """Part in which no device ran a kernel [s]."""
        return max(0.0, self.total - self.hidden)

    @property
    def share(self) -> float:
        """Hidden share [1]; 1 where there was nothing to hide."""
        return self.hidden / self.total if self.total > 0 else 1.0


def overlap(result: Result, category: Category = "communication") -> Overlap:
    """Overlap of `category` (``"communication"``, ``"copy"``, ...) with kernels.

    Examples
    --------
    >>> from simperf.engine.recorder import Span
    >>> kernel = Span("gpu0/stream0", "f", 0.0, 3.0, "compute")
    >>> send = Span("gpu0/to gpu1", "send", 2.0, 4.0, "communication")
    >>> overlap(Result("half", 4.0, spans=(kernel, send))).share
    0.5
    """
    if result.has_stages:
        from simperf.analysis.stages import rank_timelines

        total = hidden = 0.0
        for one in rank_timelines(result):
            moving = one.swept.any(category)
            total += one.share * one.swept.time(moving)
            hidden += one.share * one.swept.time(moving & one.kernels)
        return Overlap(total, hidden)
    swept = sweep(result)
    moving = swept.any(category)
    return Overlap(swept.time(moving), swept.time(moving & swept.any("compute", "memory")))
