"""Figures of goals of accuracy by name: of steps, scaling, intervals, recorded clusters and large models."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from simperf.accuracy.coverage import Label, grade_intervals, pooled
from simperf.accuracy.large_goals import family_errors
from simperf.accuracy.leave_out.step_grades import grade, graded, order_of, ratios
from simperf.accuracy.overview import QuestionSummary
from simperf.accuracy.questions import SCALING
from simperf.accuracy.recordings import boxed_clusters
from simperf.accuracy.scaling_points import ScalingPoint, scaling_points, server_pairs, summarize_losses
from simperf.analysis.left_out import FILES, read_errors
from simperf.calibrate.cluster.accuracy import PredictedPoint

__all__ = [
    "goal_figures",
    "interval_figures",
    "loss_figures",
    "recording_figures",
    "scaling_figures",
    "step_figures",
]

#: chance below which a binomial test rejects that nine of ten are held [1]
_REJECTED = 0.05
_LABELS: tuple[Label, ...] = ("family", "source", "gpu")


def goal_figures(summaries: Sequence[QuestionSummary], folder: str | os.PathLike[str] | None) -> dict[str, float]:
    """Figures of all goals by name [1], those of steps only with a folder of measured data.

    Parameters
    ----------
    summaries : sequence of QuestionSummary
        Of all questions, whose errors of scaling are taken.
    folder : path, optional
        Measured data with ``cases.json``.
    """
    found = dict[str, float]()
    if folder is not None and (Path(folder) / "cases.json").is_file():
        found |= step_figures(folder)
    found |= scaling_figures(summaries)
    found |= loss_figures(list(scaling_points()))
    found |= interval_figures() | family_errors()
    return found | recording_figures(points for _, points in boxed_clusters(priority="ordinary"))


def step_figures(folder: str | os.PathLike[str]) -> dict[str, float]:
    """Steps on one GPU whose architecture was left out, with their stack and without, and ratios of two GPUs."""
    steps = graded(folder, "gpu")
    pairs = ratios(steps)
    right, clear = order_of(pairs)
    _, middle, most, _ = grade(one.missed for one in steps)
    _, unknown, _, _ = grade(one.missed for one in graded(folder, "gpu", stack_unknown=True))
    _, apart, _, _ = grade(predicted - measured for _, measured, predicted in pairs)
    return {
        "steps: median": middle,
        "steps: 90th percentile": most,
        "steps, stack unknown: median": unknown,
        "ratios: median": apart,
        "ratios: order": right / clear,
    }


def scaling_figures(summaries: Sequence[QuestionSummary]) -> dict[str, float]:
    """Errors of the figures of scaling that need a prediction, and shares of those nearer than each baseline."""
    found = dict[str, float]()
    for one in summaries:
        if one.question == SCALING:
            found |= {"scaling: median": one.whole.median, "scaling: 90th percentile": one.whole.p90}
            found |= {f"scaling: nearer than {part.name}": part.nearer for part in one.parts if part.nearer >= 0.0}
    return found


def loss_figures(points: Sequence[ScalingPoint]) -> dict[str, float]:
    """Lost throughput that is explained, bias where little is lost, and which of two servers scales better."""
    losses = summarize_losses(points)
    pairs = [one for one in server_pairs(points) if one.first.ring >= 0.0 and one.second.ring >= 0.0]
    found = {
        "losses: explained": losses.explained,
        "losses: bias of little": losses.bias,
    }
    for name, method in (("servers: order", "predicted"), ("servers: order by a ring", "ring")):
        found[name] = sum(one.right(method) for one in pairs) / max(1, len(pairs))
    return found


def interval_figures() -> dict[str, float]:
    """Shares of figures that intervals hold, and kinds that a test rejects or that one width scores better."""
    found = dict[str, float]()
    for by in _LABELS:
        grades = [grade_intervals(one, read_errors(one), by=by) for one in FILES if read_errors(one)]
        found[f"intervals, {by} left out: held"] = pooled(grades).share
        # a kind without an interval has NaN for both, and is none that holds
        found[f"intervals, {by} left out: rejected"] = float(sum(not one.chance > _REJECTED for one in grades))
        found[f"intervals, {by} left out: worse"] = float(sum(not one.score <= one.constant for one in grades))
    return found


def recording_figures(recordings: Iterable[Sequence[PredictedPoint]]) -> dict[str, float]:
    """Medians of the errors of recorded clusters, of the kind that is missed most."""
    errors = defaultdict[str, list[float]](list)
    for points in recordings:
        for one in points:
            if not one.fitted:
                errors[one.point.series].append(abs(one.error))
    return {"recordings: worst kind": max(median(own) for own in errors.values())} if errors else {}
