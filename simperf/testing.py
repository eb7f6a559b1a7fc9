"""Conformance checks for people's own parts: what the built-in ones are held to.

Call them from a test of your own; they raise `AssertionError` with all that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf.collectives import Plan

__all__ = ["check_collective"]


def check_collective(
    plan: Plan | str,
    *,
    ns: Iterable[int] = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16),
    refused: bool = True,
    **options: Any,
) -> None:
    """Prove plans right by interpreting them on sets of contributions.

    Every rank must end with exactly what the collective promises, each contribution
    counted once; nobody may send what it does not hold, whatever the order in which
    pipelined sends overtake each other; and the busiest participant's volume and the
    longest chain of sends must be what the plan claims.

    Parameters
    ----------
    plan : Plan or str
        A plan, or the name of a registered algorithm such as ``"all-reduce/ring"``.
    ns : iterable of int
        Numbers of ranks to try; without effect if a plan is given.
    refused : bool
        Whether an algorithm may refuse a number of ranks with an `InputError`.
    **options
        Options of the algorithm.

    Raises
    ------
    AssertionError
        The plan is wrong; says where.

    Examples
    --------
    >>> check_collective("all-reduce/ring", ns=[1, 2, 3, 8])
    """
    from simperf.collectives import Plan, make_plan
    from simperf.collectives.interpret import problems_of
    from simperf.errors import InputError

    plans: list[Plan] = []
    if isinstance(plan, Plan):
        plans.append(plan)
    else:
        name, _, algorithm = plan.partition("/")
        for n in ns:
            try:
                plans.append(make_plan(name, algorithm, nranks=n, **options))
            except InputError:
                if not refused:
                    raise
        if not plans:
            raise AssertionError(f"{plan}: refuses every number of ranks that was tried")
    for one in plans:
        for seed in range(3):
            problems = problems_of(one, seed=seed)
            if problems:
                where = f"{one.collective}/{one.algorithm} over {one.nranks} ranks"
                raise AssertionError("\n  ".join([f"{where}:", *problems]))
