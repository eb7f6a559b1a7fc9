"""Long runs: a steady state is found and continued exactly; what is not steady is simulated to its end.

Most training repeats itself after a few steps: the same times again and again, with a period
of one step or of several (accumulation, a checkpoint every ten, two buffers in turn). Once a
period has repeated, the remaining steps are its continuation, and an epoch of ImageNet costs no
more than its first dozen steps. Times with jitter never repeat, and are not continued.

Times alone cannot show what is still to come: a queue that fills for a hundred steps looks
steady until it is full. Where a run has such a state (fill of queues, launches
outstanding), it is given with the times, and has to repeat too; then the continuation is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session

__all__ = ["LongRun", "Steady", "long_run", "run_epoch"]

#: relative difference of two step times that are the same but for rounding of the clock
ROUNDING = 1e-9
#: longest period looked for [steps]
LONGEST = 64
#: times that a period must have been seen, the first included
TIMES = 3

Step = float | tuple[float, Hashable]


@dataclass(frozen=True, slots=True)
class LongRun:
    """A run of many steps.

    Parameters
    ----------
    time : float
        Of all steps [s].
    simulated, extrapolated : int
        Steps that were simulated, and steps that continue the period.
    period : int
        Steps after which all repeats; 0 if nothing does.
    reason : str
        Why it was continued, or not, in words.
    """

    time: float
    simulated: int
    extrapolated: int
    period: int
    reason: str

    @property
    def steps(self) -> int:
        """All steps."""
        return self.simulated + self.extrapolated


class Steady:
    """Watches step times until they repeat.

    Parameters
    ----------
    settle : int
        Steps that are simulated in any case.
    longest : int
        Longest period looked for [steps].
    times : int
        Times that the period must have been seen.

    Examples
    --------
    >>> watch = Steady(settle=0)
    >>> [watch.add(time) for time in (9.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0)]
    [0, 0, 0, 0, 0, 0, 2]
    """

    def __init__(self, *, settle: int = 8, longest: int = LONGEST, times: int = TIMES) -> None:
        problems = [
            Problem(f"{least} or more is expected", key=key, value=str(value))
            for key, value, least in (("settle", settle, 0), ("longest", longest, 1), ("times", times, 2))
            if value < least
        ]
        if problems:
            raise InputError(problems)
        self.settle, self.longest, self.times_seen = settle, longest, times
        self.times: list[float] = []
        self._states: list[Hashable] = []
        self._runs = [0] * (longest + 1)  # for each period, how many of the last steps equal the step a period before
        self.period = 0

    def add(self, time: float, state: Hashable = None) -> int:
        """Take in the next step [s]; returns the period, or 0 while there is none.

        Raises
        ------
        ProgramError
            A time that is negative or not finite.
        """
        if not 0.0 <= time < math.inf:
            raise ProgramError(f"step {len(self.times)} takes {time} s; a finite time of 0 s or more is expected")
        number = len(self.times)
        self.times.append(time)
        self._states.append(state)
        slack = ROUNDING * time
        for period in range(1, min(self.longest, number) + 1):
            before = number - period
            same = abs(self.times[before] - time) <= slack and self._states[before] == state
            self._runs[period] = self._runs[period] + 1 if same else 0
        if number + 1 >= self.settle:
            for period in range(1, min(self.longest, number) + 1):
                if self._runs[period] >= period * (self.times_seen - 1):
                    self.period = period
                    return period
        return 0

    def rest(self, steps: int) -> float:
        """Time of the `steps` steps that follow those seen, by the period that was found [s]."""
        if not self.period:
            raise ProgramError("no period has been found: nothing can be said of the steps to come; give more steps")
        last = self.times[-self.period :]
        rounds, over = divmod(steps, self.period)
        return rounds * math.fsum(last) + math.fsum(last[:over])

    def outcome(self, steps: int) -> LongRun:
        """The run of `steps` steps, of which some have been seen."""
        seen, known = len(self.times), math.fsum(self.times)
        if seen == steps:
            found = "all steps were simulated"
            if not self.period:
                found += f": no period of up to {self.longest} steps repeats to rounding"
            return LongRun(known, seen, 0, self.period, found)
        reason = f"a period of {self.period} step{'s' if self.period > 1 else ''} repeats after {seen} simulated"
        return LongRun(known + self.rest(steps - seen), seen, steps - seen, self.period, reason)


def _check(steps: int) -> None:
    if steps < 1:
        raise InputError(Problem("1 step or more is expected", key="steps", value=str(steps)))


def run_epoch(source: Iterable[Step], steps: int, *, watch: Steady | None = None) -> LongRun:
    """The time of `steps` steps, of which as few are taken from `source` as will do.

    Parameters
    ----------
    source : iterable of float, or of (float, state)
        Time of each step [s], as it is simulated; with the state of the run after it, where there is one.
    steps : int
    watch : Steady, optional
        How to look for a period.

    Raises
    ------
    InputError
        No steps.
    ProgramError
        `source` ends early and does not repeat: it cannot be continued.

    Examples
    --------
    >>> from itertools import repeat
    >>> run_epoch(repeat(0.25), 5004)
    LongRun(time=1251.0, simulated=8, extrapolated=4996, period=1, reason=...)
    """
    _check(steps)
    watch = watch or Steady()
    for step in islice(source, steps):
        time, state = step if isinstance(step, tuple) else (step, None)
        if watch.add(float(time), state):
            break
    seen = len(watch.times)
    if not watch.period and seen < steps:
        raise ProgramError(
            f"{seen} of {steps} step times are given and no period of up to {watch.longest} steps repeats in them "
            "(jitter, or a transient that is not over): they cannot be continued, simulate all steps"
        )
    return watch.outcome(steps)


def long_run(
    m: Session,
    step: Callable[[int], Program],
    steps: int,
    *,
    state: Callable[[], Hashable] | None = None,
    watch: Steady | None = None,
) -> Generator[Any, Any, LongRun]:
    """Simulate ``step(0)``, ``step(1)``, ... until they repeat; a sub-program, for use with ``yield from``.

    Parameters
    ----------
    m : Session
    step : callable
        One step, as a program. It should wait for what it measures, or let `state` tell.
    steps : int
    state : callable, optional
        What has to repeat besides the times, such as the fill of a queue. Launches outstanding on every stream are
        watched in any case.
    watch : Steady, optional
    """
    _check(steps)
    watch = watch or Steady()
    for number in range(steps):
        started = m.now
        yield from step(number)
        outstanding = tuple(stream.outstanding for device in m.simulation.devices.values() for stream in device.streams)
        if watch.add(m.now - started, (outstanding, state() if state else None)):
            break
    return watch.outcome(steps)
