"""Limits on the runs of a study, checked before their list is made: points, draws of constants, and both together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simperf.errors import InputError, Problem

__all__ = [
    "MOST_DRAWS",
    "MOST_POINTS",
    "MOST_TOTAL",
    "refuse_draws",
    "refuse_kept",
    "refuse_points",
    "refuse_runs",
    "refuse_total",
]

#: points that a study may have: a list of more takes gigabytes
MOST_POINTS = 100_000
#: draws of constants that a run may have; the outer 5 % of an interval need a hundred
MOST_DRAWS = 10_000
#: runs of a study in all, those of its draws among them: a day at 10 a second
_MOST_RUNS = 1_000_000
#: events of all runs of a study: half a day at 200,000 a second
MOST_TOTAL = 10_000_000_000


def refuse_points(count: float, *, expected: str, force: bool = False, option: str = "--vary") -> None:
    """Refuse a study of too many points.

    Parameters
    ----------
    count : float
        Points.
    expected : str
        What would make them fewer.
    force : bool
        The scenario's ``run.force``.
    option : str
        What asks for so many.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    if count > MOST_POINTS and not force:
        message = f"{count:,.0f} points are more than {MOST_POINTS:,}"
        told = f"{expected}; or --force (run.force = true), which makes them all"
        raise InputError(Problem(message, file=option, expected=told))


def refuse_draws(samples: int, *, force: bool = False, key: str = "run.force") -> None:
    """Refuse too many draws of constants; the parameters are those of `refuse_points`, and `key` is that of `force`.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    if samples > MOST_DRAWS and not force:
        message = f"{samples:,} samples, a run each, are more than {MOST_DRAWS:,}"
        told = f"100, which settle an interval of 90 % to a tenth of its width; or --force ({key} = true)"
        raise InputError(Problem(message, file="--samples", value=str(samples), expected=told))


def refuse_runs(points: int, samples: int, *, force: bool = False, key: str = "run.force") -> None:
    """Refuse a study whose points and samples are too many together; the parameters are those of `refuse_draws`.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    refuse_draws(samples, force=force, key=key)
    runs = points * (1 + samples)
    if runs > _MOST_RUNS and not force:
        message = f"{points:,} points of {samples:,} samples are {runs:,} runs, more than {_MOST_RUNS:,}"
        expected = f"fewer of both; or --force ({key} = true)"
        raise InputError(Problem(message, file="--samples", expected=expected))


def refuse_kept(events: Sequence[float], most: float, *, file: str = "") -> None:
    """Refuse runs whose timelines, which are kept together, have more events than one run may have.

    Parameters
    ----------
    events : sequence of float
        Of each run whose scenario has no ``run.force``, about.
    most : float
        Events.
    file : str
        Where the runs come from.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    total = math.fsum(events)
    if total > most:
        told = f"{len(events):,} runs would simulate about {total:.3g} events"
        message = f"{told}, and timelines of more than {most:.3g} are not kept at once"
        expected = "fewer runs, or shorter ones; simperf sweep --fast, which keeps none; or --force (run.force = true)"
        raise InputError(Problem(message, file=file, expected=expected))


def refuse_total(runs: int, events: float, *, force: bool = False, option: str = "--samples") -> None:
    """Refuse a study whose runs simulate too many events together.

    Parameters
    ----------
    runs : int
        Points and samples.
    events : float
        Of one run, about.
    force : bool
        The scenario's ``run.force``.
    option : str
        What asks for so many.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    total = runs * events
    if total > MOST_TOTAL and not force:
        message = f"{runs:,} runs of about {events:.3g} events are {total:.3g} events, more than {MOST_TOTAL:.3g}"
        expected = f"{int(MOST_TOTAL / events):,} runs, or shorter ones; or --force (run.force = true)"
        raise InputError(Problem(message, file=option, expected=expected))
