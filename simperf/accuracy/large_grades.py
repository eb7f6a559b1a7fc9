"""Predictions of published cases of large models beside what was measured, a simple model, and a peer.

The simple model has one rate: the median of the arithmetic a second on the same GPU in the same precision over the
other cases of the family. What does not beat it has learnt nothing of layouts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from simperf.accuracy.large_cases import LargeCase, LeftOut
from simperf.errors import SimperfError
from simperf.memory import DRIVER
from simperf.workload.transformers.flops import step_flops

__all__ = ["GAIN", "LargeGrade", "baseline", "grade", "reasons_counted"]


#: quantity of a feature's gain
GAIN = "gain in utilisation"


@dataclass(frozen=True, slots=True)
class LargeGrade:
    """One measured number of a case, and what is said of it.

    Parameters
    ----------
    case : LargeCase
    quantity : str
        ``"time"`` [s], or ``"memory"`` [B] of one stage; ``"fits"``, which is 1 if the job does and else 0; a ratio
        of two schedules, or the gain in utilisation of a feature [1].
    stage : int
        Of a pipeline, for memory; -1 where no rank is named.
    measured : float
    predicted, simple, peer : float
        NaN where there is none.
    """

    case: LargeCase
    quantity: str
    stage: int
    measured: float
    predicted: float
    simple: float = math.nan
    peer: float = math.nan

    @property
    def row(self) -> str:
        """Its name in its family's table."""
        return self.case.name + (f", stage {self.stage}" if self.stage >= 0 else "")

    def error(self, of: str = "predicted") -> float:
        """Signed relative error of what is predicted, of the simple model, or of the peer [1].

        It is 1 of a wrong verdict, and of a gain in utilisation the difference.
        """
        if self.quantity == "fits":
            return math.nan if of != "predicted" else float(self.predicted != self.measured)
        if self.quantity == GAIN:
            return float(getattr(self, of)) - self.measured
        return float(getattr(self, of)) / self.measured - 1.0


def baseline(cases: Sequence[LargeCase]) -> dict[str, float]:
    """Times of the simple model by name [s]; NaN where a family has no other case of its kind.

    Parameters
    ----------
    cases : sequence of LargeCase
        With their times.
    """
    rates: dict[tuple[str, str, str], dict[str, float]] = {}
    for one in cases:
        if one.time is not None:
            rates.setdefault(_kind(one), {})[one.name] = _flops(one) / one.time
    found = {}
    for one in cases:
        if one.time is None:
            continue
        others = [rate for name, rate in rates[_kind(one)].items() if name != one.name]
        found[one.name] = _flops(one) / median(others) if others else math.nan
    return found


def _kind(one: LargeCase) -> tuple[str, str, str]:
    return one.family, one.machine.gpu.name, one.layout.products or one.layout.precision


def _flops(one: LargeCase) -> float:
    """Arithmetic of a step on one GPU, without what is computed again [FLOP]."""
    return step_flops(one.model) * one.layout.batch / one.gpus


def grade(
    cases: Sequence[LargeCase],
    time: Callable[[LargeCase], float] | None,
    memory: Callable[[LargeCase], Sequence[float]] | None,
    *,
    among: Sequence[LargeCase] = (),
) -> Iterator[LargeGrade | LeftOut]:
    """Grades of all cases, one after the other; or why one has none.

    Parameters
    ----------
    cases : sequence of LargeCase
    time : callable, optional
        Predicted time of an iteration [s]; none is asked for without it.
    memory : callable, optional
        Predicted peak of each stage, by the counter that was read [B].
    among : sequence of LargeCase
        All cases, of which the simple model is made; those that are graded if none are given.
    """
    simple = baseline(among or cases) if time is not None else {}
    seen: set[tuple[object, ...]] = set()
    for one in cases:
        reasons = []
        try:
            if memory is not None and one.memory is not None:
                shape = (one.model, one.layout.layout, one.layout.microbatch, *one.memory.by_rank.items())
                if not one.memory.by_rank or shape not in seen:  # a measurement that stands beside several times
                    yield from _of_memory(one, memory(one))
                seen.add(shape)
        except SimperfError as error:
            reasons.append(_told(error))
        if time is not None and one.time is not None:
            if one.machine.why_not:
                reasons.append(one.machine.why_not)
            else:
                try:
                    predicted = time(one)
                    peer = one.peer_time or math.nan
                    yield LargeGrade(one, "time", -1, one.time, predicted, simple[one.name], peer)
                except SimperfError as error:
                    reasons.append(_told(error))
        if reasons:
            yield LeftOut(one.family, one.name, tuple(dict.fromkeys(reasons)))


def _told(error: SimperfError) -> str:
    problems = getattr(error, "problems", ())
    return "; ".join(f"{one.key}: {one.message}" for one in problems) or str(error)


def _of_memory(one: LargeCase, predicted: Sequence[float]) -> Iterator[LargeGrade]:
    assert one.memory is not None
    by_stage: dict[int, float] = {}
    for rank, nbytes in one.memory.by_rank.items():
        stage = one.layout.layout.mesh.coordinates(rank)["pp"]
        by_stage[stage] = max(nbytes, by_stage.get(stage, 0.0))
    worst = max(predicted)
    peer = one.peer_memory or math.nan
    if one.memory.fits is not None:
        verdict = worst + DRIVER <= one.machine.gpu.memory_capacity
        yield LargeGrade(one, "fits", -1, float(one.memory.fits), float(verdict))
        if not one.memory.fits:
            return
    if not by_stage:
        yield LargeGrade(one, "memory", -1, one.memory.nbytes, worst, peer=peer)
    for stage, measured in sorted(by_stage.items()):
        most = measured == max(by_stage.values())
        yield LargeGrade(one, "memory", stage, measured, predicted[stage], peer=peer if most else math.nan)


def reasons_counted(left: Iterable[LeftOut]) -> Mapping[tuple[str, str], int]:
    """Numbers of cases of a family that are left out for a reason."""
    found: dict[tuple[str, str], int] = {}
    for one in left:
        for reason in one.reasons:
            found[one.family, reason] = found.get((one.family, reason), 0) + 1
    return found
