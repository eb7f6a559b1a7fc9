"""90 % intervals of a candidate's time: published figures, draws of constants, and histories of failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simperf.analysis.intervals import DRAWS, intervals_of, with_draws
from simperf.answer import TIME
from simperf.study.planning.lifetime import Lifetime

__all__ = ["FAILURES", "CandidateSpread", "candidate_spread"]

FAILURES = "failures"
Ends = tuple[float, float]
#: metrics that the spread is taken from
_RATE, _EFFICIENCY = "samples per second", "scaling efficiency"


@dataclass(frozen=True, slots=True)
class CandidateSpread:
    """Intervals of a candidate's time.

    Parameters
    ----------
    time : (float, float) or None
        90 % of it [s]; None where nothing but failures is known to spread.
    apart : (float, float) or None
        Without what all candidates on its GPU are missed by alike [s]; None as above, or where a profile was drawn.
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
    gpus: int,
    drawn: Ends | None = None,
    calibrated: bool = False,
    histories: int = 0,
) -> CandidateSpread:
    """The intervals of a candidate from its steps and from the histories of its job.

    Failures alone give no interval: what a model of steps is missed by is far more.

    Parameters
    ----------
    metrics : mapping of str to float
        Of some steps.
    life : Lifetime
        Of the whole job.
    gpus : int
    drawn : (float, float), optional
        90 % of the draws of the rate [1/s].
    calibrated : bool
        Whether a profile's constants stand for the catalogue's.
    histories : int
        Of failures that were played; 0 where none were asked for.
    """
    whole, why_not = _of_figures(metrics, gpus, {"model": "asked for"}, calibrated)
    shared, _ = _of_figures(metrics, gpus, {"alone": 1.0, "gpus": max(2, gpus)}, calibrated)
    sources = dict(whole[1]) if whole else {}
    slower = whole[0] if whole else None
    if drawn is not None:
        found = (metrics[_RATE] / drawn[1], metrics[_RATE] / drawn[0])
        slower = with_draws({TIME: slower} if slower else {}, {TIME: found})[TIME]
        sources[DRAWS] = (
            "of the profile's constants" if calibrated else "of kernels and steps of GPUs that were left out"
        )
    if slower is None:
        return CandidateSpread(why_not=why_not)
    if histories:
        sources[FAILURES] = f"{histories} histories"
    apart = shared[0] if shared else slower
    return CandidateSpread(
        (life.low * slower[0], life.high * slower[1]), (life.low * apart[0], life.high * apart[1]), sources
    )


def _of_figures(
    metrics: Mapping[str, float], gpus: int, given: Mapping[str, Any], calibrated: bool
) -> tuple[tuple[Ends, Mapping[str, str]] | None, str]:
    """Factors of the time that published figures give, with their source; or why there are none."""
    changed = "a profile's constants" if calibrated else ""
    numbers = {TIME: (1.0, "s"), _EFFICIENCY: (metrics.get(_EFFICIENCY, 1.0), "1")}
    found = intervals_of("train", given, numbers, gpus=gpus, changed=changed)
    return ((found.ends[TIME], found.sources), "") if TIME in found.ends else (None, found.why_not)
