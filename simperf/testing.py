"""Conformance checks for people's own parts: what the built-in ones are held to.

Call them from a test of your own; they raise `AssertionError` with all that is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf.collectives import Plan
    from simperf.schedules import Schedule

__all__ = ["check_collective", "check_part", "check_schedule"]


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


def check_schedule(
    plan: Schedule | str,
    *,
    stages: Iterable[int] = (1, 2, 3, 4, 5, 8),
    microbatches: Iterable[int] = (1, 2, 3, 4, 5, 8, 10, 16, 24),
    refused: bool = True,
    **options: Any,
) -> None:
    """Prove pipeline schedules right by carrying them out without a clock.

    Every stage must do F and B of each micro-batch and chunk once, and W everywhere or nowhere; no pass may wait for
    itself in a circle; and the activations in flight must be what the schedule claims.

    Parameters
    ----------
    plan : Schedule or str
        A schedule, or the name of a registered one such as ``"1f1b"``.
    stages, microbatches : iterable of int
        Numbers to try, all with all; without effect if a schedule is given.
    refused : bool
        Whether a schedule may refuse numbers with an `InputError`.
    **options
        Options of the schedule.

    Raises
    ------
    AssertionError
        The schedule is wrong; says where.

    Examples
    --------
    >>> check_schedule("1f1b", stages=[1, 2, 4], microbatches=[1, 8])
    """
    from itertools import product

    from simperf.errors import InputError
    from simperf.schedules import make_schedule, problems_of

    plans: list[Schedule] = []
    if isinstance(plan, str):
        for count, batches in product(stages, microbatches):
            try:
                plans.append(make_schedule(plan, stages=count, microbatches=batches, **options))
            except InputError:
                if not refused:
                    raise
        if not plans:
            raise AssertionError(f"{plan}: refuses all numbers of stages and micro-batches that were tried")
    else:
        plans.append(plan)
    for one in plans:
        problems = problems_of(one)
        if problems:
            where = f"{one.name} over {len(one.stages)} stages with {one.microbatches} micro-batches"
            raise AssertionError("\n  ".join([f"{where}:", *problems[:20]]))


def check_part(path: str | os.PathLike[str]) -> None:
    """Hold a part's file to what the built-in ones are held to.

    The file says its kind; every number has a unit, a plausible size and a source; a GPU
    has a peak to compute with, efficiencies of at most 1, and a machine balance that some
    device has; a link carries no more payload than its line rate; a drive's reads and
    writes agree with its latency; and what it refers to is in the catalog.

    Parameters
    ----------
    path : str or os.PathLike
        A TOML file of a part, server or cluster; parts of the same folder may be referred to.

    Raises
    ------
    InputError
        The file cannot be read as a part: all its problems, with lines.
    AssertionError
        It is a part, but one that cannot exist.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> check_part(Catalog.load().path("gpu", "l4"))
    """
    from simperf.files import read_toml
    from simperf.hardware import PART_KINDS, Catalog, build_machine, check_machine, read_part
    from simperf.hardware.plausible import implausible

    toml = read_toml(path)
    name = Path(path).stem
    builtin = Catalog.load()
    kind = str(toml.data.get("kind", ""))
    inside = kind in builtin.kinds_of(name) and Path(builtin.path(kind, name)).resolve() == Path(path).resolve()
    catalog = builtin if inside else Catalog.load(Path(path).parent)
    if kind in ("server", "cluster") and kind not in PART_KINDS:
        check_machine(build_machine(toml.data, catalog, toml, name=name, at=()))
        return
    wrong = implausible(read_part(toml, name, catalog=catalog))
    if wrong:
        raise AssertionError(f"{os.fspath(path)}:\n" + "\n".join(wrong))
