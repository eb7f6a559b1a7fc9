"""Slow ranks, slow links and links that flap.

A straggler does everything at a fraction of its speed, for a time or for good. A link
changes its capacity while flows are on it; they are re-shared at that instant, and at a
capacity of 0 they stall until it is back.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from simperf.engine.simulation import Simulation
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.training.jitter import Distribution, stream

__all__ = ["LinkChange", "Straggler", "change_links", "finish_time", "flap", "slowed"]


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that is slower than the others from `start` to `end`.

    Parameters
    ----------
    rank : int
    factor : float
        Times its work takes longer [1]; 1 or more.
    start, end : float
        When it is slow [s].
    """

    rank: int
    factor: float
    start: float = 0.0
    end: float = math.inf

    def __post_init__(self) -> None:
        problems = []
        if self.rank < 0:
            problems.append(Problem("a rank of 0 or more is expected", key="rank", value=str(self.rank)))
        if not 1.0 <= self.factor < math.inf:
            problems.append(Problem("a factor of 1 or more is expected", key="factor", value=f"{self.factor:g}"))
        if not 0.0 <= self.start < self.end:
            problems.append(
                Problem(
                    "it must end after its start",
                    key="end",
                    value=f"{self.start:g} to {self.end:g}",
                    expected="0 or more, and a larger end",
                )
            )
        if problems:
            raise InputError(problems)


def finish_time(stragglers: Sequence[Straggler], rank: int, start: float, work: float) -> float:
    """When `rank` is done with `work` [s at full speed] that it begins at `start` [s].

    Work continues at 1/factor of the speed while a straggler's window is open; windows that
    overlap multiply.

    Examples
    --------
    >>> finish_time([Straggler(0, 2.0, start=1.0, end=3.0)], 0, 0.0, 3.0)
    4.0
    """
    mine = [one for one in stragglers if one.rank == rank]
    cuts = sorted({edge for one in mine for edge in (one.start, one.end) if start < edge < math.inf})
    now = start
    for cut in (*cuts, math.inf):
        slow = math.prod(one.factor for one in mine if one.start <= now < one.end)
        if now + work * slow <= cut:
            return now + work * slow
        work -= (cut - now) / slow
        now = cut
    return now


@dataclass(frozen=True, slots=True)
class LinkChange:
    """At `time` [s] the capacity of a resource becomes `share` of what the machine has [1]; 0 is down."""

    resource: str
    time: float
    share: float

    def __post_init__(self) -> None:
        problems = []
        if not 0.0 <= self.time < math.inf:
            problems.append(Problem("a finite time of 0 s or more is expected", key="time", value=f"{self.time:g}"))
        if not 0.0 <= self.share <= 1.0:
            problems.append(Problem("a share from 0 (down) to 1 is expected", key="share", value=f"{self.share:g}"))
        if problems:
            raise InputError(problems)


def slowed(
    link: str, share: float, start: float, end: float, *, keys: tuple[str, str] = ("slow_share", "slow_until")
) -> tuple[LinkChange, ...]:
    """Changes of a link that is slow, or down, for a time.

    Parameters
    ----------
    link : str
        The resource; no name, no change.
    share : float
        Capacity that is left of it [1]; 0 is down.
    start, end : float
        When it is slow [s]; an `end` of 0 is never.
    keys : tuple of str
        What the caller's user calls `share` and `end`.

    Raises
    ------
    InputError
        A share or times without meaning, or a link that never comes back, so that nothing would end.
    """
    if not link:
        return ()
    lasts = end > 0.0
    checks = (
        (keys[0], share, 0.0 <= share <= 1.0, "a share from 0 (down) to 1 is expected"),
        (keys[1], end, lasts or share != 0.0, "a link that is down for ever never delivers: give a time"),
        (keys[1], end, not lasts or end > start, f"an end after {start:g} s, when it begins, is expected"),
    )
    problems = [Problem(words, key=key, value=f"{value:g}") for key, value, right, words in checks if not right]
    if problems:
        raise InputError(problems)
    return (LinkChange(link, start, share), *((LinkChange(link, end, 1.0),) if lasts else ()))


def _capacity(simulation: Simulation, resource: str) -> float:
    capacities = simulation.machine.resources if simulation.machine is not None else {}
    if resource not in capacities:
        raise UnknownNameError("resource", resource, capacities)
    return capacities[resource]


def _set(simulation: Simulation, resource: str, value: float) -> None:
    simulation.network.set_capacity(resource, value)
    if simulation.recorder is not None:
        simulation.recorder.counter(resource, "capacity", simulation.now, value)


def change_links(simulation: Simulation, changes: Sequence[LinkChange]) -> None:
    """Let `changes` happen at their times, in the order of time.

    Raises
    ------
    UnknownNameError
        The machine has no such resource.
    """
    plan = [(change, _capacity(simulation, change.resource)) for change in sorted(changes, key=lambda one: one.time)]

    def play() -> Generator[simpy.Event, Any, None]:
        for change, full in plan:
            if change.time > simulation.now:
                yield simulation.env.timeout(change.time - simulation.now)
            _set(simulation, change.resource, full * change.share)

    if plan:
        simulation.env.process(play())


def flap(simulation: Simulation, resource: str, *, up: Distribution, down: Distribution, share: float = 0.0) -> None:
    """Let a link go down and come back at random times for as long as the simulation lasts.

    Parameters
    ----------
    simulation : Simulation
    resource : str
    up, down : Distribution
        How long it stays up and down [s].
    share : float
        Capacity that is left while it is down [1].

    Raises
    ------
    UnknownNameError
        The machine has no such resource.
    InputError
        A mean time of 0, which would let no time pass.
    """
    LinkChange(resource, 0.0, share)
    if not up.mean > 0.0 or not down.mean > 0.0:
        raise InputError(Problem("mean times above 0 are expected", key="up" if not up.mean > 0.0 else "down"))
    full = _capacity(simulation, resource)
    rng = simulation.random(f"flap {resource}")
    times: Iterator[tuple[float, float]] = zip(stream(up, rng), stream(down, rng), strict=False)

    def play() -> Generator[simpy.Event, Any, None]:
        for good, bad in times:
            yield simulation.env.timeout(good)
            _set(simulation, resource, full * share)
            yield simulation.env.timeout(bad)
            _set(simulation, resource, full)

    simulation.env.process(play())
