"""Measured NCCL tables beside what the catalogue and the tuner's constants predict: nothing is fitted.

Which machine a case ran on is data (`simperf.study.nccl_cases`). A second comparison fits two
constants to a table (`simperf.study.nccl_fit`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from simperf.study.accuracy import LedgerRow
from simperf.study.nccl_cases import cases_known, cases_left_out, series_of
from simperf.study.nccl_fit import Fit, fit, fitted_ledger, tables

__all__ = [
    "Fit",
    "Point",
    "cases_known",
    "cases_left_out",
    "ends",
    "fit",
    "fitted_ledger",
    "nccl_ledger",
    "points",
    "tables",
]

_NOTHING = "nothing: the catalogue's parts, and the constants of NCCL's own tuner and of its networks"


@dataclass(frozen=True, slots=True)
class Point:
    """One measured time, or a range of times, and its prediction [s], for a size [B].

    Parameters
    ----------
    case, series, label : str
        Where it belongs, as in `simperf.study.nccl_cases.Series`.
    nbytes : float
        Payload [B].
    low, high : float
        Measured [s].
    predicted : float
        [s]
    choice : str
        Algorithm and protocol.
    """

    case: str
    nbytes: float
    low: float
    high: float
    predicted: float
    choice: str
    series: str = ""
    label: str = ""

    @property
    def measured(self) -> float:
        """What the prediction is held against: what was measured, or the nearest end of a range [s]."""
        return min(max(self.predicted, self.low), self.high)

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1.0


def points(case: Mapping[str, Any], *, most: int = 0) -> Iterator[Point]:
    """Points of a case; of each series `most` of them, spread over the sizes, if that is not 0."""
    for series, tuner in series_of(case):
        rows = list(series.points)
        if most and len(rows) > most:
            rows = [rows[round(index * (len(rows) - 1) / (most - 1))] for index in range(most)]
        for row in rows:
            best = tuner.best(row.nbytes)
            yield Point(
                series.case, row.nbytes, row.low, row.high, best.time, best.name, series=series.name, label=series.label
            )


def ends(found: list[Point]) -> tuple[float | None, float | None]:
    """Median error at 64 MiB and above, and median ratio at 8 KiB and below."""
    large = [point.error for point in found if point.nbytes >= 1 << 26]
    small = [point.predicted / point.measured for point in found if point.nbytes <= 1 << 13]
    return (median(large) if large else None), (median(small) if small else None)


def nccl_ledger(cases: list[dict[str, Any]]) -> list[LedgerRow]:
    """Every point of every case that is known."""
    from simperf.study.truth import source_of

    return [
        LedgerRow(
            ", ".join(part for part in (f"Collectives: {case['id']}", point.series) if part),
            ", ".join(part for part in (f"{point.nbytes:.0f} B", point.label) if part),
            "time",
            "s",
            point.low,
            point.high,
            point.predicted,
            case=case["id"],
            source=source_of(case),
            fitted=_NOTHING,
        )
        for case in cases
        if case["id"] in cases_known()
        for point in points(case)
    ]
