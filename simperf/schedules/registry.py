"""The table of pipeline schedules: a new one is a file in `plans` with a function under `@schedule`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from simperf.errors import InputError, Problem, nearest
from simperf.registry import Registry
from simperf.schedules.schedule import Schedule

__all__ = ["SCHEDULES", "make_schedule", "microbatch_multiple", "model_parts", "options_of", "schedule"]

ScheduleMaker: TypeAlias = Callable[..., Schedule]

#: name -> function of the numbers of stages and micro-batches
SCHEDULES: Registry[ScheduleMaker] = Registry(
    "pipeline schedule", package="simperf.schedules.plans", group="simperf.schedules", discover=True
)

#: passes that a schedule is made of at most
MOST_PASSES = 1 << 24


def schedule(name: str) -> Callable[[ScheduleMaker], ScheduleMaker]:
    """Register a function ``(stages, microbatches, *, options) -> Schedule``."""
    return SCHEDULES.register(name)


def options_of(name: str) -> tuple[str, ...]:
    """Names of the options that a schedule takes, such as ``("chunks",)``."""
    return tuple(inspect.signature(SCHEDULES[name]).parameters)[2:]


@lru_cache(maxsize=256)
def model_parts(name: str, stages: int, chunks: int = 1) -> int:
    """Parts that a schedule divides a model into, over all stages.

    Parameters
    ----------
    name : str
    stages : int
    chunks : int
        Of schedules that take it, parts on each stage.

    Raises
    ------
    UnknownNameError
        No such schedule.
    InputError
        Numbers that the schedule does not take.

    Examples
    --------
    Two on each stage, or one of each of two copies of the model:

    >>> model_parts("zb-v", 4), model_parts("dualpipe", 4), model_parts("interleaved", 4, 3)
    (8, 4, 12)
    """
    if "chunks" in options_of(name):
        return stages * chunks
    # twice as many micro-batches as stages are what each of the built-in ones takes
    return len(make_schedule(name, stages=stages, microbatches=2 * stages).path)


@lru_cache(maxsize=256)
def microbatch_multiple(name: str, stages: int) -> int:
    """Micro-batches whose multiples a schedule takes: any number, multiples of the stages, or of twice as many.

    It is tried with two stages.

    Examples
    --------
    >>> [microbatch_multiple(name, 4) for name in ("1f1b", "interleaved", "dualpipe")]
    [1, 4, 8]
    """
    for microbatches, multiple in ((1, 1), (2, stages)):
        try:
            make_schedule(name, stages=2, microbatches=microbatches)
        except InputError:
            continue
        return multiple
    return 2 * stages


def make_schedule(name: str, *, stages: int, microbatches: int, **options: Any) -> Schedule:
    """Make the schedule of a pipeline.

    Parameters
    ----------
    name : str
        Such as ``"1f1b"``.
    stages, microbatches : int
        At least 1.
    **options
        Options of the schedule, see `options_of`.

    Raises
    ------
    UnknownNameError
        No such schedule; the nearest name is offered.
    InputError
        Numbers or options that have no meaning for the schedule.

    Examples
    --------
    >>> make_schedule("gpipe", stages=4, microbatches=8).in_flight
    (8, 8, 8, 8)
    """
    maker, known = SCHEDULES[name], options_of(name)
    problems = [
        Problem("a whole number, 1 or more, is expected", key=key, value=repr(count))
        for key, count in (("stages", stages), ("microbatches", microbatches))
        if isinstance(count, bool) or not isinstance(count, int) or count < 1
    ]
    chunks = options.get("chunks", 1)
    each = stages * (chunks if isinstance(chunks, int) else 1)
    if not problems and each * microbatches > MOST_PASSES:
        of = f" of {chunks} chunks" if each > stages else ""
        message = f"{stages} stages{of} of {microbatches} micro-batches are more passes than a schedule is made of"
        key, count = ("microbatches", each) if microbatches * stages >= each else ("chunks", microbatches * stages)
        problems.append(Problem(message, key=key, expected=f"at most {MOST_PASSES // count}"))
    problems += [
        Problem(f"{name} has no option {key!r}{nearest(key, known)}", key=key, expected=", ".join(known) or "no option")
        for key in options
        if key not in known
    ]
    if problems:
        raise InputError(problems)
    return maker(stages, microbatches, **options)
