"""Readers of what only a GPU has: streams side by side, and copies beside kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit.choice import ModelChoice, given, keys_of
from simperf.calibrate.fit.overlap import overlap_model, overlap_points
from simperf.calibrate.fit.streams import stream_data, streams_model

__all__ = ["read_overlap", "read_streams"]


def read_streams(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    """How far small kernels run side by side."""
    sms = int(float(dataset.machine.get("sms", 0) or 0))
    points = [point for point in points if point.median > 0]
    if not sms:
        reason = "the data set does not say how many multiprocessors the device has (sms)"
        yield ModelChoice(series, reason=reason, keys=keys_of(points))
        return
    data = stream_data(points, sms)
    if data is None:
        reason = "no point was taken on several streams, and on one of them alone"
        yield ModelChoice(series, reason=reason, keys=keys_of(points))
        return
    chosen = [point for point in points if point.key in set(data.keys)]
    yield given(series, streams_model(), chosen, data, streams_model(limited=True))


def read_overlap(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    """How much longer copies and kernels take beside each other, by what bounds the kernels."""
    found = False
    for kind, data in overlap_points(points):
        found = True
        chosen = [point for point in points if point.key in set(data.keys)]
        yield given(series, overlap_model(kind), chosen, data)
    if not found:
        reason = "no point was taken with copy and kernels beside each other, and each of them alone"
        yield ModelChoice(series, reason=reason, keys=keys_of(points))
