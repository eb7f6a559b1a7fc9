"""A capacity that tasks share by demand: the SMs of a device, the cores of a host.

Each task asks for a share `demand` of the capacity and has `work` seconds to do when it
gets it. As long as all demands fit, nobody notices the others. When they do not, the
capacity is divided max-min fairly (small demands are met in full, the rest is split
evenly) and a task advances at the rate granted / demand, re-divided after every change.

What holds a part of a capacity for a while, as a collective holds multiprocessors and memory bandwidth, leaves the rest
to the tasks that draw on this part.

Not modelled: the order in which a device hands thread blocks of several kernels to its
SMs, caches that several tasks fight for, and clocks that fall under load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import simpy
from simpy.events import NORMAL

__all__ = ["Alarm", "Share", "ShareUser"]

_SLACK = 1e-9  # demands that exceed the capacity by rounding only still fit


class Alarm(simpy.Event):
    """An event that calls one function at a set time and can be armed again and again."""

    __slots__ = ("_calls",)

    def __init__(self, env: simpy.Environment, call: Callable[[simpy.Event], None]) -> None:
        super().__init__(env)
        self._calls = [call]
        self._ok = True
        self._value = None

    def arm(self, delay: float) -> None:
        """Call the function `delay` s from now; the alarm must not be pending."""
        self.callbacks = self._calls
        self.env.schedule(self, NORMAL, delay)

    def disarm(self) -> None:
        """Let a pending alarm pass silently; it must not be armed again."""
        self.callbacks = []


class ShareUser:
    """One user of a `Share`, reused from one piece of work to the next.

    Parameters
    ----------
    share : Share
        What it draws on.
    done : callable
        Called when the piece of work ends.
    """

    __slots__ = ("alarm", "alone", "demand", "done", "end", "kind", "late", "rate", "share", "since")

    def __init__(self, share: Share, done: Callable[[simpy.Event], None]) -> None:
        self.share, self.done = share, done
        self.demand = self.end = self.alone = self.since = 0.0
        self.rate, self.late = 1.0, False
        self.kind = "compute"  # of the work, where a share's paces ask for it
        self.alarm = Alarm(share.env, self._finish)

    def begin(self, work: float, demand: float = 1.0) -> None:
        """Start `work` [s, when alone] that wants `demand` of the capacity; one at a time."""
        share = self.share
        self.demand = demand
        share.work += work * demand
        share.running[self] = None
        share.load += demand
        self.alone, self.since = work, share.env.now
        if share.load <= share.limit and not share.paces and not share.left:
            self.rate = 1.0
            self.end = share.env.now + work
            self.alarm.arm(work)
        else:
            self.rate = 0.0
            self.end = work  # read by divide() as the work that is left
            share.divide(newcomer=self)
        if share.watch is not None:
            share.watch()

    def _finish(self, event: simpy.Event) -> None:
        share = self.share
        running = share.running
        del running[self]
        if self.late:
            self.late = False
            loss = share.env.now - self.since - self.alone
            share.lost += loss
            if share.told is not None:
                share.told(self, loss)
        if not running:
            share.load = 0.0
            share.contended = False
        else:
            share.load -= self.demand
            if share.contended:
                share.divide()
        self.done(event)
        if share.watch is not None:
            share.watch()


class Share:
    """A capacity and the tasks that draw on it.

    Parameters
    ----------
    env : simpy.Environment
    capacity : float
        Sum of demands that is served at full speed: 1 for a device, the number of cores
        for a host.

    Attributes
    ----------
    paces : dict of str to float
        Pace of tasks of a kind, now, in shares of what they have alone [1].
    watch : callable or None
        Called when a task has begun, and when one has ended and what follows it has begun.
    left : dict of str to float
        Part that tasks of a kind may draw on, now, while something holds the rest [1]; tasks of other kinds draw on
        that of ``"compute"``.
    lost : float
        Time that tasks took longer than alone, of those that have ended [s].
    told : callable or None
        Called with a task that has taken longer than alone, and by how much [s].
    """

    __slots__ = (
        "_holders",
        "capacity",
        "contended",
        "env",
        "left",
        "limit",
        "load",
        "lost",
        "paces",
        "reserved",
        "running",
        "told",
        "watch",
        "work",
    )

    def __init__(self, env: simpy.Environment, capacity: float) -> None:
        self.env, self.capacity = env, capacity
        self.limit = capacity * (1 + _SLACK)
        self.load = self.reserved = 0.0
        self.contended = False
        self.running: dict[ShareUser, None] = {}
        self.paces: dict[str, float] = {}
        self.watch: Callable[[], None] | None = None
        self.told: Callable[[ShareUser, float], None] | None = None
        self.left: dict[str, float] = {}
        self._holders: dict[object, Mapping[str, float]] = {}
        self.lost = 0.0
        self.work = 0.0  # demand x seconds asked for so far

    def reserve(self, amount: float) -> None:
        """Take `amount` of the capacity away from the tasks, or give it back if it is below 0.

        A collective's kernels hold part of a device while they move data, for as long as that takes.
        """
        self.reserved = max(0.0, self.reserved + amount)
        self.limit = (self.capacity - self.reserved) * (1 + _SLACK)
        self.divide()

    def hold(self, holder: object, amounts: Mapping[str, float]) -> None:
        """Take parts of the capacity away from tasks of some kinds, until `drop`.

        Parameters
        ----------
        holder : object
            By which they are given back.
        amounts : mapping of str to float
            Part by kind of the tasks, 0 to 1 [1]: of ``"compute"`` multiprocessors, of ``"memory"`` bandwidth.
        """
        if any(amounts.values()):
            self._holders[holder] = amounts
            self._leave()

    def drop(self, holder: object) -> None:
        """Give back what a holder has, if it has anything."""
        if self._holders.pop(holder, None) is not None:
            self._leave()

    def _leave(self) -> None:
        """Find what holders leave, a thousandth at least, so that every task ends."""
        kinds = dict.fromkeys(kind for one in self._holders.values() for kind in one)
        self.left = {
            kind: max(1e-3, 1.0 - sum(one.get(kind, 0.0) for one in self._holders.values())) * self.capacity
            for kind in kinds
        }
        self.divide()

    def floor(self) -> float:
        """Least time [s] in which the work done so far can be done."""
        now = self.env.now
        undone = sum(max(0.0, task.end - now) * task.rate * task.demand for task in self.running)
        return max(0.0, self.work - undone) / self.capacity

    def divide(self, newcomer: ShareUser | None = None) -> None:
        """Divide the capacity again among the running tasks and move their alarms."""
        now = self.env.now
        grants = self._grants()
        self.contended = self.load > self.limit
        for task, granted in grants.items():
            rate = granted / task.demand
            if self.paces:
                rate *= self.paces.get(task.kind, 1.0)
            if task is newcomer:
                left = task.end
            elif rate == task.rate:
                continue
            else:
                left = max(0.0, (task.end - now) * task.rate)
                task.alarm.disarm()
                task.alarm = Alarm(self.env, task._finish)
            task.rate = rate
            task.late |= rate < 1.0
            task.end = now + left / rate
            task.alarm.arm(left / rate)

    def _grants(self) -> dict[ShareUser, float]:
        """Max-min fair division: smallest demand first, each gets at most an even share of the rest."""
        demands = {task: task.demand for task in self.running}
        if self.left:
            each: dict[str, dict[ShareUser, float]] = {}
            for task, demand in demands.items():
                each.setdefault(task.kind if task.kind in self.left else "compute", {})[task] = demand
            for kind, own in each.items():
                demands |= _fair(own, self.left.get(kind, self.capacity))
        grants = _fair(demands, self.capacity - self.reserved)
        return {task: grants[task] for task in self.running}


def _fair(demands: Mapping[ShareUser, float], left: float) -> dict[ShareUser, float]:
    """Max-min fair division of a capacity."""
    grants = {}
    ordered = sorted(demands, key=demands.__getitem__)
    for position, task in enumerate(ordered):
        grants[task] = min(demands[task], left / (len(ordered) - position))
        left -= grants[task]
    return grants
