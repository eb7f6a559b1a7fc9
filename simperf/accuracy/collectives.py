"""Published collective times beside what the catalogue and constants of NCCL predict; none is fitted to these times.

Which machine a case ran on is data (`simperf.accuracy.nccl_cases`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simperf.accuracy.baselines import ring_links
from simperf.accuracy.cases import source_of
from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.nccl_cases import cases_known, series_of
from simperf.accuracy.questions import COLLECTIVES
from simperf.accuracy.validation import ValidationRow
from simperf.collectives.nccl import Choice, Tuner
from simperf.collectives.settings import HOSTED
from simperf.hardware import Catalog

__all__ = ["CollectiveError", "collective_errors", "collective_table"]

_NOTHING = "nothing: the catalogue's parts, and constants of NCCL's tuner, networks and kernels, of other tables"


@dataclass(frozen=True, slots=True)
class CollectiveError:
    """One measured time, or a range of times, and its prediction [s], for a size [B].

    Parameters
    ----------
    case, series, label : str
        Where it belongs, as in `simperf.accuracy.nccl_cases.Series`.
    nbytes : float
        Payload [B].
    low, high : float
        Measured [s].
    predicted : float
        [s]
    choice : str
        Algorithm and protocol.
    ring : float
        What a ring takes by the data sheets of its links [s]; NaN if there is none.
    """

    case: str
    nbytes: float
    low: float
    high: float
    predicted: float
    choice: str
    series: str = ""
    label: str = ""
    ring: float = math.nan

    @property
    def measured(self) -> float:
        """Measured time that the prediction is compared with: the value, or the nearest end of a range [s]."""
        return min(max(self.predicted, self.low), self.high)

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1.0


def collective_errors(case: Mapping[str, Any], *, most: int = 0) -> Iterator[CollectiveError]:
    """Points of a case; of each series `most` of them, spread over the sizes, if that is not 0."""
    for series, tuner in series_of(case):
        ring = ring_links(tuner.machine, tuple(tuner.ranks))
        rows = list(series.points)
        if most and len(rows) > most:
            rows = [rows[round(index * (len(rows) - 1) / (most - 1))] for index in range(most)]
        for row in rows:
            best = tuner.best(row.nbytes)
            yield CollectiveError(
                series.case,
                row.nbytes,
                row.low,
                row.high,
                time_of(best, tuner),
                best.name,
                series=series.name,
                label=series.label,
                ring=ring.collective_time(tuner.collective, len(tuner.ranks), row.nbytes) if ring else math.nan,
            )


def time_of(choice: Choice, tuner: Tuner) -> float:
    """Time of a choice of NCCL as its table was timed, hosts included where they take part [s]."""
    if tuner.settings.timing not in HOSTED:
        return choice.time
    from simperf.execution.timed_calls import torch_call_time

    frontend = Catalog.load().frontend("pytorch")
    return torch_call_time(
        tuner.machine, tuner.ranks, tuner.collective, choice.nbytes, tuner.settings, frontend=frontend
    )


def collective_table(cases: list[dict[str, Any]]) -> list[ValidationRow]:
    """Every point of every case that is known."""
    return [
        ValidationRow(
            ", ".join(part for part in (f"Collectives: {case['id']}", point.series) if part),
            ", ".join(part for part in (f"{point.nbytes:.0f} B", point.label) if part),
            "time",
            "s",
            point.low,
            point.high,
            point.predicted,
            case=case["id"],
            source=source_of(case),
            fitted=cases_known()[case["id"]].get("fitted", _NOTHING),
            kind="fitted" if constants_behind(case["id"]) else "predicted",
            question=COLLECTIVES,
            nbytes=point.nbytes,
            simple=point.ring,
        )
        for case in cases
        if case["id"] in cases_known()
        for point in collective_errors(case)
    ]
