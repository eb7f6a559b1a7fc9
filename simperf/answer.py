"""The number that answers a scenario's question: a metric, which end of it is better, and what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["PUBLISHED", "TIME", "Answer", "Better", "PublishedRuns", "better_of", "unpublished"]

Better = Literal["higher", "lower"]
PublishedRuns = Literal["training", "pass", "exchange", "kernels"]
#: the total simulated time, which every result has
TIME = "time"
#: which end is better where the unit says it; a plain number may be a share that is gained or one that is lost
_BY_UNIT: Mapping[str, Better] = {
    **dict.fromkeys(("1/s", "B/s", "FLOP/s"), "higher"),
    **dict.fromkeys(("s", "B", "USD", "USD/h"), "lower"),
}

#: programs of whose runs figures are published, and what these are of; a parameter server trains, or only exchanges
PUBLISHED: Mapping[str, PublishedRuns] = {
    **dict.fromkeys(("train", "parameter-server", "servers-or-ring", "recommender"), "training"),
    "training-step": "pass",
    "all-reduce": "exchange",
    "operations": "kernels",
}


def unpublished(program: str) -> str:
    """Reason why runs of a program that is not in `PUBLISHED` have no interval.

    Examples
    --------
    >>> unpublished("async-chain")
    'no figures are published of runs like those of async-chain'
    """
    return f"no figures are published of runs like those of {program}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The metric that ranks results.

    Parameters
    ----------
    metric : str
        ``"time"`` or the name of a metric.
    better : {"higher", "lower"}
    """

    metric: str = TIME
    better: Better = "lower"

    @property
    def higher(self) -> bool:
        """Whether a higher value is better."""
        return self.better == "higher"

    @property
    def is_time(self) -> bool:
        """Whether it is the total simulated time."""
        return self.metric == TIME

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"metric": self.metric, "better": self.better}

    def __str__(self) -> str:
        return f"{self.metric} ({self.better} is better)"


def better_of(unit: str) -> Better | None:
    """The better end of a number of SI `unit`: rates higher, times, sizes and costs lower, None for all else.

    Examples
    --------
    >>> better_of("1/s"), better_of("s"), better_of("1")
    ('higher', 'lower', None)
    """
    return _BY_UNIT.get(unit)
