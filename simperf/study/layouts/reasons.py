"""Reasons why a layout wins or loses: the parts of its slowest stage's time beside those of the fastest layout."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from simperf.study.layouts.ranked_layout import RankedLayout
from simperf.study.layouts.request import LayoutRequest
from simperf.study.planning.rounding import hours

__all__ = ["losses", "step_parts"]

_STAGE = re.compile(r"stage (\d+): (?!hidden )(.+)")
#: share of a difference from which a part of the step is named [1]
_NAMED = 0.2
#: parts of a step in words, where these differ from the names of the metrics
_WORDS = {"kernels": "kernel time", "slowed": "kernel slowdown", "bubble": "pipeline bubble", "idle": "idle time"}


def step_parts(metrics: Mapping[str, float]) -> dict[str, float]:
    """Parts of a step of the stage with most work, which add up to the step [s].

    Examples
    --------
    >>> step_parts({"stage 0: kernels": 2.0, "stage 0: bubble": 1.0, "stage 1: kernels": 1.0, "stage 1: bubble": 2.0})
    {'kernels': 2.0, 'bubble': 1.0}
    """
    stages: dict[int, dict[str, float]] = {}
    for name, value in metrics.items():
        if found := _STAGE.fullmatch(name):
            stages.setdefault(int(found[1]), {})[found[2]] = value
    return max(stages.values(), key=lambda one: one.get("kernels", 0.0), default={})


def losses(request: LayoutRequest, one: RankedLayout, ranked: Sequence[RankedLayout], group: int) -> str:
    """Reason why a layout stands where it does, in a line.

    Parameters
    ----------
    request : LayoutRequest
    one : RankedLayout
    ranked : sequence of RankedLayout
        All of them, the first one first.
    group : int
        Number of the first that it cannot be distinguished from; 0 for none.
    """
    like = ranked[group - 1] if group else one
    return _loss(request, one, ranked) + ("" if like is one else f"; not distinguishable from #{group}")


def _loss(request: LayoutRequest, one: RankedLayout, ranked: Sequence[RankedLayout]) -> str:
    """The same without what it cannot be distinguished from."""
    first = ranked[0]
    if one is first and one.feasible:
        return _wins(one, ranked)
    if not one.feasible:
        late, dear = (one.time or 0.0) - request.deadline, (one.cost or 0.0) - request.budget
        words = [f"{hours(late)} too late"] if late > 0 else []
        told = " and ".join(words + ([f"{dear:,.2f} USD over the budget"] if dear > 0 else []))
        return told if one is first else f"{told}; {_slower(one, first)}"
    return _slower(one, first)


def _slower(one: RankedLayout, first: RankedLayout) -> str:
    """How many times the step of the first it takes, where, for which price, and what it spends more of."""
    words = [f"{one.step / first.step:.3f} times the step"]
    if one.machine.gpus != first.machine.gpus or one.machine.name != first.machine.name:
        words.append(f"on {one.machine.gpus} GPUs of {one.machine.name}")
        if one.cost is not None and first.cost:
            words.append(f"{one.cost / first.cost:.3f} times the cost")
    more = [f"+{_short(value)} {_word(name)}" for name, value in _more(one, first)]
    return ", ".join(words) + (f": {', '.join(more)}" if more else "")


def _wins(one: RankedLayout, ranked: Sequence[RankedLayout]) -> str:
    """Why the first is first: what the next one on its machine has more of."""
    others = [each for each in ranked[1:] if each.machine == one.machine]
    if not others:
        return "the fastest"
    less = [_word(name) for name, _ in _more(others[0], one)]
    named = " and ".join([each for each in (", ".join(less[:-1]), *less[-1:]) if each])
    return "the fastest" + (f": less {named} than #{ranked.index(others[0]) + 1}" if less else "")


def _more(one: RankedLayout, other: RankedLayout) -> list[tuple[str, float]]:
    """What a layout spends more of than another one, and how much more [s], the largest first."""
    longer = one.step - other.step
    if longer <= 0:
        return []
    names = dict.fromkeys((*one.parts, *other.parts))
    found = {name: one.parts.get(name, 0.0) - other.parts.get(name, 0.0) for name in names}
    ranked = sorted(found.items(), key=lambda each: -each[1])
    return [(name, value) for name, value in ranked if value > _NAMED * longer][:3]


def _word(name: str) -> str:
    """A part of a step, such as "exposed data communication"."""
    return f"{name} communication" if name.startswith("exposed ") else _WORDS.get(name, name)


def _short(seconds: float) -> str:
    """A difference of times, in three digits."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            digits = max(0, 2 - math.floor(math.log10(seconds / unit)))
            return f"{seconds / unit:.{digits}f} {name}"
    return f"{seconds * 1e9:.0f} ns"
