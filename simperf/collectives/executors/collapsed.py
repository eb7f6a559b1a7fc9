"""A collective that has its links to itself is computed at once; beside other traffic it is simulated.

As long as nothing else draws on the links of a collective, nothing that happens elsewhere changes its times, and an
executor without events may find them (`simperf.collectives.executors.isolated`). As soon as something else comes to one
of these links, what has happened so far is simulated again send by send on a network of its own, and continues
from there on the one network. What has too many sends for that continues as flows, phase by phase
(`simperf.collectives.flow_phases`). So two groups that share a NIC, or a collective beside a copy, see each other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import ClassVar

import simpy

from simperf.collectives.executors.base import Context, Execution, Executor, PlacedPlan
from simperf.collectives.executors.isolated import play_isolated
from simperf.collectives.executors.stepwise import Stepwise
from simperf.engine.claim import Claim
from simperf.engine.network import FlowNetwork

__all__ = ["ROUNDING", "Collapsed", "isolated"]

#: part of a time that is rounding
ROUNDING = 1e-10


def isolated(placed: PlacedPlan, nbytes: float, context: Context, entry: Sequence[float] = ()) -> Execution:
    """The execution of a plan without other traffic, which the context keeps.

    Parameters
    ----------
    placed : PlacedPlan
    nbytes : float
        Payload [B].
    context : Context
    entry : sequence of float
        When each rank takes part [s]; all at 0 if left out.
    """
    late = tuple(entry) if any(entry) else ()
    key = (placed, nbytes, late)
    if key not in context.isolated:
        times = [*(late or [0.0] * placed.plan.nranks), *[0.0] * placed.plan.nservers]
        context.isolated[key] = play_isolated(placed, nbytes, times)
    return context.isolated[key]


class Collapsed(Executor):
    """A plan under way that is computed as a whole; the parameters are those of every `Executor`.

    Ranks that enter together continue together, when the last of them is done, and none before the last rank has come;
    if something has disturbed the collective, each continues at its own end. A plan of too many sends to be simulated
    continues as phases when the last rank has come, and keeps in `approximated` what it would have been without other
    traffic.
    """

    method: ClassVar[str] = "collapsed"

    @classmethod
    def accepts(cls, placed: PlacedPlan, context: Context, *, exact: bool = False) -> bool:
        """Any plan on links without token buckets, between hosts without network stacks."""
        return not (exact or context.shaped or context.stacks is not None)

    def _prepare(self) -> None:
        self._entry = [math.inf] * self.plan.nranks
        self._parties: list[Collection[int]] = []
        self._gone: set[int] = set()
        self._missing = self.plan.nranks
        self._began = 0.0
        self._claim: Claim | None = None
        self._stepwise: Stepwise | None = None
        self._found: Execution | None = None
        self._ends: dict[float, list[Collection[int]]] = {}

    def enter(self, members: Collection[int], delay: float = 0.0) -> None:
        """Let participants take part, `delay` [s] from now."""
        if delay:
            later = self.env.timeout(delay)
            assert later.callbacks is not None
            later.callbacks.append(lambda event: self.enter(members))
            return
        ranks = [who for who in members if who < self.plan.nranks]
        if not ranks:
            return  # servers are there from the start
        if self._stepwise is not None:
            self._stepwise.enter(ranks)
            return
        if self._missing == self.plan.nranks:
            self._began = float(self.env.now)
            self._claim = self.network.claim(lambda: self.placed.links, self._disturb)
        for rank in ranks:
            self._entry[rank] = self.env.now - self._began
        self._missing -= len(ranks)
        self._parties.append(ranks)
        if self._claim is not None and self._claim.touched:
            self._disturb()
        if self._missing == 0 and self._stepwise is None:
            self._wait()

    @property
    def critical(self) -> float:
        """Time of the collective where all ranks entered together and nothing disturbed it [s]."""
        together = self._found is not None and not self.disturbed and not any(self._entry)
        return self._found.time if together and self._found is not None else 0.0

    def _wait(self) -> None:
        """Let the ranks continue when they will be done, as long as nothing comes between."""
        run = self._found = isolated(self.placed, self.nbytes, self.context, self._entry)
        even = run.time - min(run.finish[: self.plan.nranks]) <= ROUNDING * run.time
        for party in self._parties:
            end = run.time if even else max(run.finish[rank] for rank in party)
            self._ends.setdefault(end, []).append(party)
        if self.disturbed:
            self._go_on(run)
            return
        for time, parties in self._ends.items():
            over = self.env.timeout(max(0.0, self._began + time - self.env.now))
            assert over.callbacks is not None
            over.callbacks.append(partial(self._end, parties, run))

    def _end(self, parties: Sequence[Collection[int]], run: Execution, _: simpy.Event) -> None:
        if self._stepwise is not None or self.approximated is not None:
            return
        assert self._claim is not None
        if len(self._gone) + sum(map(len, parties)) == self.plan.nranks:
            self._claim.release()
            self.isolated = run
        self._let_go(parties)

    def _let_go(self, parties: Sequence[Collection[int]]) -> None:
        self._gone.update(*parties)
        if len(self._gone) == self.plan.nranks:
            self.release(range(self.plan.nranks, self.plan.nparticipants))
        for party in parties:
            self.release(party)

    def _released_stepwise(self, ranks: Collection[int]) -> None:
        left = [rank for rank in ranks if rank not in self._gone]
        if left:
            self.release(left)

    def _disturb(self) -> None:
        """Something else is on the links: continue send by send, or phase by phase as soon as all ranks are there."""
        self.disturbed = True
        if self._stepwise is not None or self.approximated is not None:
            return
        if self.placed.playable:
            assert self._claim is not None
            self._claim.release()
            self._stepwise = self._resume()
        elif self._found is not None:
            self._go_on(self._found)

    def _go_on(self, run: Execution) -> None:
        """What is left of an execution, as phases from now on; what ranks sent before the last one came is among it."""
        from simperf.collectives.executors.phases import play_phases
        from simperf.collectives.flow_phases import flow_phases

        assert self._claim is not None
        self._claim.release()
        self.approximated = run
        together = isolated(self.placed, self.nbytes, self.context).time
        key = self.placed, self.nbytes
        if key not in self.context.phases:
            self.context.phases[key] = flow_phases(
                self.plan, placement=self.placement, nbytes=self.nbytes, transport=self.transport, time=together
            )
        late = run.time - together  # by which all is later than if all ranks had come at once
        ends = [(time - late, parties) for time, parties in self._ends.items() if not self._gone.issuperset(parties[0])]
        play_phases(self.context, self.context.phases[key], self.env.now - self._began - late, ends, self._let_go)

    def _resume(self) -> Stepwise:
        """What has happened up to now, simulated again alone, and from now on on the one network."""
        now = float(self.env.now)
        resources = self.placement.machine.resources
        private = simpy.Environment(initial_time=self._began)
        network = FlowNetwork(private, {name: resources[name] for name in sorted(self.placed.links)})
        self.release(range(self.plan.nranks, self.plan.nparticipants))
        stepwise = Stepwise(
            self.placed,
            self.nbytes,
            Context(private, network, recorder=self.context.recorder),
            entry=[*self._entry, *[0.0] * self.plan.nservers],
            released=self._released_stepwise,
        )
        if now > self._began:
            private.run(until=now)
        waiting = [(time, event) for time, _, _, event in sorted(private._queue) if isinstance(event, simpy.Timeout)]
        network.hand_over(self.network)
        self._let_wait(waiting)
        stepwise.move(self.env, self.network)
        return stepwise

    def _let_wait(self, waiting: Iterable[tuple[float, simpy.Event]]) -> None:
        for time, event in waiting:
            later = self.env.timeout(max(0.0, time - self.env.now))
            assert later.callbacks is not None
            later.callbacks.extend(event.callbacks or ())
