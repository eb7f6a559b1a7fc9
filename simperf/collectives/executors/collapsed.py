"""A collective that has its links to itself is computed at once; beside other traffic every send is played.

As long as nothing else draws on the links of a collective, nothing that happens elsewhere changes its times, and an
executor that plays nothing may find them (`simperf.collectives.execute`). As soon as something else comes to one of
these links, what has happened so far is played again send by send on a network of its own, and continues
from there on the one network. So two groups that share a card, or a collective beside a copy, see each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

import simpy

from simperf.collectives.execute import Execution
from simperf.collectives.executors.stepwise import Stepwise
from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan import Plan
from simperf.engine.claim import Claim
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder

__all__ = ["Undisturbed"]

#: part of a time that is rounding
ROUNDING = 1e-10


class Undisturbed:
    """A plan under way among ranks that come one after the other.

    Parameters
    ----------
    env : simpy.Environment
    network : FlowNetwork
        What else is under way.
    plan, placement, nbytes, transport
        As for `simperf.collectives.executors.stepwise.Stepwise`.
    compute : callable
        Gives the `Execution` of the plan alone for the ranks' entry times [s], the first of which is 0.
    released : callable
        Called with each rank's number at its end. Ranks that came together go on together, when the last of them is
        done; if something has disturbed the collective, each continues at its own end.
    ended : callable
        Called with the execution when all ranks have gone on, if nothing has disturbed it.
    recorder : Recorder, optional
        Is told of every send that is played.
    links : frozenset of str, optional
        All that the plan's sends draw on. Without them it is told by `disturbed` if there was any other traffic at all,
        and nothing is played.

    Attributes
    ----------
    disturbed : bool
        Whether something else came to its links.
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: FlowNetwork,
        *,
        plan: Plan,
        placement: Placement,
        nbytes: float,
        transport: Transport,
        compute: Callable[[Sequence[float]], Execution],
        released: Callable[[int], None],
        ended: Callable[[Execution], None],
        recorder: Recorder | None = None,
        links: frozenset[str] | None = None,
    ) -> None:
        self.env, self.network = env, network
        self.plan, self.placement, self.nbytes, self.transport = plan, placement, nbytes, transport
        self._compute, self._ended, self._released, self._recorder = compute, ended, released, recorder
        self.disturbed = False
        self._links = links
        self._entry = [math.inf] * plan.nranks
        self._parties: list[Collection[int]] = []
        self._gone: set[int] = set()
        self._left = plan.nranks
        self._began = 0.0
        self._claim: Claim | None = None
        self._stepwise: Stepwise | None = None

    def enter(self, ranks: Collection[int]) -> None:
        """Ranks take part from now on."""
        if self._stepwise is not None:
            self._stepwise.enter(list(ranks))
            return
        if self._left == self.plan.nranks:
            self._began = float(self.env.now)
            self._claim = self.network.claim(self._links, self._disturb)
        for rank in ranks:
            self._entry[rank] = self.env.now - self._began
        self._left -= len(ranks)
        self._parties.append(ranks)
        if self._claim is not None and self._claim.touched:
            self._disturb()
        if self._left == 0 and self._stepwise is None:
            self._wait()

    def _wait(self) -> None:
        """Let the ranks go on when they will be done, as long as nothing comes between."""
        run = self._compute(self._entry)
        even = run.time - min(run.finish[: self.plan.nranks]) <= ROUNDING * run.time
        at: dict[float, list[Collection[int]]] = {}
        for party in self._parties:
            at.setdefault(run.time if even else max(run.finish[rank] for rank in party), []).append(party)
        for time, parties in at.items():
            end = self.env.timeout(max(0.0, self._began + time - self.env.now))
            assert end.callbacks is not None
            end.callbacks.append(partial(self._end, parties, run))

    def _end(self, parties: Sequence[Collection[int]], run: Execution, _: simpy.Event) -> None:
        if self._stepwise is not None:
            return
        ranks = [rank for party in parties for rank in party]
        self._gone.update(ranks)
        if len(self._gone) == self.plan.nranks:
            assert self._claim is not None
            self._claim.release()
            self._ended(run)
        for rank in ranks:
            self._released(rank)

    def _release(self, who: int) -> None:
        if who not in self._gone:
            self._released(who)

    def _disturb(self) -> None:
        """Something else is on the links: go on send by send."""
        self.disturbed = True
        if self._links is None or self._stepwise is not None:
            return
        assert self._claim is not None
        self._claim.release()
        self._stepwise = self._resume()

    def _resume(self) -> Stepwise:
        """What has happened up to now, played again alone, and from now on on the one network."""
        now = float(self.env.now)
        resources = self.placement.machine.resources
        private = simpy.Environment(initial_time=self._began)
        network = FlowNetwork(private, {name: resources[name] for name in sorted(self._links or ())})
        stepwise = Stepwise(
            private,
            network,
            plan=self.plan,
            placement=self.placement,
            nbytes=self.nbytes,
            transport=self.transport,
            entry=[*self._entry, *[0.0] * self.plan.nservers],
            recorder=self._recorder,
            released=self._release,
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
