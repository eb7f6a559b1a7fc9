"""Refusal where no candidate meets the deadline and the budget: the nearest one, and what it would need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simperf.errors import InputError
from simperf.study.planning.candidates import CandidateBound, Configuration
from simperf.study.planning.ranked import Candidate
from simperf.study.planning.request import Request
from simperf.study.planning.rounding import dollars, dollars_above, hours, hours_above

__all__ = ["Bounded", "nearest_bounds", "refusal"]

#: a candidate with what bounds say of it
Bounded = tuple[Configuration, CandidateBound]
#: candidates that are simulated though the deadline or the budget rules them out, to name the nearest
_NEAREST = 16


def nearest_bounds(request: Request, made: Sequence[Bounded], simulated: Sequence[Candidate]) -> list[Bounded]:
    """Candidates that nothing but the deadline or the budget rules out, nearest first, at most 16.

    Those that even by their bounds are further off than one that was simulated are left out.
    """
    price = request.prices.of

    def miss(one: Bounded) -> float:
        choice, verdict = one
        return _miss(request, verdict.time, verdict.time / 3600 * price(choice.instance) * choice.nodes)

    least = min((_miss(request, one.time, one.cost) for one in simulated), default=math.inf)
    found = [one for one in made if one[1].exceeds and miss(one) < least]
    return sorted(found, key=lambda one: (miss(one), one[0].name))[:_NEAREST]


def refusal(request: Request, simulated: Sequence[Candidate], pruned: Sequence[Candidate]) -> InputError:
    """The error of a plan without a feasible candidate: the nearest one, and limits that it meets.

    Parameters
    ----------
    request : Request
    simulated : sequence of Candidate
        None of them feasible.
    pruned : sequence of Candidate
        All others, each with its reason.
    """
    ending = [one for one in simulated if math.isfinite(one.time)]
    if not ending:
        reasons = dict.fromkeys(one.reason for one in pruned) or ["failures leave no time for training"]
        message = "no candidate can be run: " + "; ".join(list(reasons)[:4])
        return InputError(request.toml.problem(("candidates",), message, expected="candidates that can be run"))
    one = min(ending, key=lambda each: (_miss(request, each.time, each.cost), each.choice.name))
    lacking = []
    if one.time > request.deadline:
        lacking.append(("deadline", hours(request.deadline), hours_above(one.time)))
    if one.cost > request.budget:
        lacking.append(("budget", dollars(request.budget), dollars_above(one.cost)))
    key, read, _ = lacking[0]
    nearest = f"the nearest of {len(simulated)}" if len(simulated) > 1 else "the nearest"
    message = f"no candidate is feasible; {nearest} is {one.choice.name}: {hours(one.time)}, {dollars(one.cost)}"
    expected = " and ".join(f'{name} = "{enough}"' for name, _, enough in lacking)
    return InputError(request.toml.problem(("plan", key), message, value=read, expected=expected))


def _miss(request: Request, time: float, cost: float) -> float:
    """How many times the deadline or the budget a candidate takes, by the worse of both [1]; a cost may be NaN."""
    return max(time / request.deadline, 0.0 if math.isnan(cost) else cost / request.budget)
