"""90 % intervals of a candidate's time: published figures, draws of constants, and histories of failures.

Candidates on one kind of GPU share the error of its speed. The errors of published scaling are those
of the ratio of several GPUs to one, and tell how far apart such candidates may be; of one GPU this ratio is 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from simperf.analysis.intervals import DRAWS, intervals_by, with_draws
from simperf.analysis.left_out import difficulty_of
from simperf.analysis.questions import SCALING, RunQuestion, asked_by
from simperf.answer import TIME
from simperf.study.planning.lifetime import Lifetime

__all__ = ["FAILURES", "CandidateSpread", "batch_factor", "candidate_spread"]

FAILURES = "failures"
Ends = tuple[float, float]
_RATE, _EFFICIENCY = "samples per second", "scaling efficiency"
#: how far the ratio of two batches' times of one model on one GPU is off, as a logarithm: the largest of 12 pairs of
#: published passes on four GPUs (`python -m tests.truth.batches`) [1]
BATCHES_OFF = 0.175
#: how many times larger one batch of such a pair is than the other at most [1]
BATCHES_APART = 4.0


@dataclass(frozen=True, slots=True)
class CandidateSpread:
    """Intervals of a candidate's time.

    Parameters
    ----------
    time : (float, float) or None
        90 % of it [s]; None where nothing but failures is known to spread.
    apart : (float, float) or None
        Without the error that all candidates on its GPU share [s]: by the errors of scaling, and for one GPU by
        failures alone. Within `time`; as `time` where other constants than the catalogue's were drawn, None where
        `time` is.
    sources : mapping of str to str
        What `time` is made of, in words.
    why_not : str
        Why there is none; empty if there is.
    """

    time: Ends | None = None
    apart: Ends | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""


def candidate_spread(
    metrics: Mapping[str, float],
    life: Lifetime,
    *,
    model: str,
    gpus: int,
    drawn: Ends | None = None,
    calibrated: bool = False,
    changed: str = "",
    estimated: str = "",
    histories: int = 0,
) -> CandidateSpread:
    """The intervals of a candidate from its steps and from the histories of its job.

    Failures alone give no interval: the error of a model of steps is far larger.

    Parameters
    ----------
    metrics : mapping of str to float
        Of some steps.
    life : Lifetime
        Of the whole job.
    model : str
        That is trained.
    gpus : int
    drawn : (float, float), optional
        90 % of the draws of the rate [1/s].
    calibrated : bool
        Whether a profile's constants stand for the catalogue's.
    changed : str
        What else stands for them, in words (`simperf.scenario.own_constants`); empty if nothing does.
    estimated : str
        An architecture of its GPUs of which no kernel was measured; empty if there is none.
    histories : int
        Of failures that were simulated; 0 where none were asked for.
    """
    changed = "a profile's constants" if calibrated else changed
    step = {TIME: (1.0, "s")}
    asked = asked_by("train", {"model": model}, gpus=gpus, changed=changed, estimated=estimated)
    whole = intervals_by(asked, step, difficulty=difficulty_of(asked.question, metrics))
    slower, sources = whole.ends.get(TIME), dict(whole.sources)
    if drawn is not None:
        found = (metrics[_RATE] / drawn[1], metrics[_RATE] / drawn[0])
        slower = with_draws({TIME: slower} if slower else {}, {TIME: found})[TIME]
        sources[DRAWS] = (
            "of the profile's constants" if calibrated else "of kernels and steps of GPUs that were left out"
        )
    if slower is None:
        return CandidateSpread(why_not=whole.why_not)
    if histories:
        sources[FAILURES] = f"{histories} histories"
    apart = slower if changed else _scaling(metrics, gpus) or slower
    apart = max(apart[0], slower[0]), min(apart[1], slower[1])  # a part of what the whole is missed by
    return CandidateSpread(
        (life.low * slower[0], life.high * slower[1]), (life.low * apart[0], life.high * apart[1]), sources
    )


def _scaling(metrics: Mapping[str, float], gpus: int) -> Ends | None:
    """Factors of the time of several GPUs beside that of one, by published scaling; None where too little is."""
    if gpus == 1:
        return 1.0, 1.0
    asked = RunQuestion(SCALING, metrics=(TIME, _EFFICIENCY), gpus=gpus)
    step = {TIME: (1.0, "s"), _EFFICIENCY: (metrics.get(_EFFICIENCY, 0.0), "1")}
    return intervals_by(asked, step, difficulty=difficulty_of(SCALING, metrics)).ends.get(TIME)


def batch_factor(batch: float, other: float) -> float | None:
    """Factor by which the ratio of the times of two batches on one GPU may be off, 1 for equal ones [1].

    Parameters
    ----------
    batch, other : float
        Samples a GPU.

    Returns
    -------
    float or None
        None where batches are further apart than those that were measured.

    Examples
    --------
    >>> batch_factor(32, 32), round(batch_factor(64, 32), 2), batch_factor(32, 256)
    (1.0, 1.19, None)
    """
    if batch == other:
        return 1.0
    return math.exp(BATCHES_OFF) if max(batch, other) <= BATCHES_APART * min(batch, other) else None
