"""Bounds on plans that are simulated, so that a large one is refused before it fills the memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simperf.collectives.placement import Placement
from simperf.collectives.plan import Plan
from simperf.errors import InputError, Problem

#: memory of a send that waits in a pipeline, and of one of a round of steps with its route [B], as measured
ITEM, SEND = 600, 2_400

__all__ = ["ASKED", "MAP", "SURVEY", "PlanBounds", "PlanBoundsError", "crossings"]


class PlanBoundsError(InputError):
    """A plan beyond the bounds that were given."""


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """Bounds on one plan at one size; counted, not timed, so that the same plans pass on any computer.

    Parameters
    ----------
    events : int
        Most sends that are simulated one by one, some 50 us each.
    crossings : int
        Most links that all sends cross, those of repeating rounds counted once; arrays
        of some 100 B each.
    sends : int
        Sends of a pipelined plan that chunks chosen unasked may make, roughly.
    memory : float
        Most that the step-exact executor may take for sends that it knows at one time [B].
    refuse : bool
        Refuse plans beyond the bounds; without, the bounds only limit chunks that are chosen unasked.
    """

    events: int = 2_000_000
    crossings: int = 20_000_000
    sends: int = 65_536
    memory: float = 8e9
    refuse: bool = True

    def shared(self, sizes: int) -> PlanBounds:
        """The part of the crossings that each of so many sizes may take, where together they may take these."""
        return replace(self, crossings=self.crossings // max(1, sizes))

    def forced(self) -> PlanBounds:
        """The same, that refuses nothing: chunks are chosen as before."""
        return replace(self, refuse=False)

    def check(self, plan: Plan, placement: Placement) -> None:
        """Refuse a plan that is too large to be laid out.

        Raises
        ------
        PlanBoundsError
            Its sends cross more than `crossings` links.
        """
        if self.refuse and crossings(plan, placement, most=self.crossings) > self.crossings:
            message = f"its sends over {plan.nranks:,} ranks cross more than {self.crossings:,} links in all"
            raise PlanBoundsError(Problem(message, expected="fewer ranks or chunks, or another algorithm"))

    def check_events(self, plan: Plan) -> None:
        """Refuse to start unasked what would take hours.

        Raises
        ------
        PlanBoundsError
            More than `events` sends.
        """
        sends = plan.nsends
        if self.refuse and sends > self.events:
            message = f"its sends share links with others, so that each of {sends:,} (more than {self.events:,})"
            expected = "fewer ranks or chunks, another algorithm, or the step-exact executor by name"
            raise PlanBoundsError(Problem(f"{message} has to be simulated", expected=expected))

    def check_memory(self, plan: Plan) -> None:
        """Refuse to lay out send by send what does not fit into the memory.

        Raises
        ------
        PlanBoundsError
            The sends that are known at one time need more than `memory`.
        """
        if not self.refuse:
            return
        pipelined, most = 0, 0
        for channel in plan.channels:
            for phase in channel.phases:
                counts = [phase.count(index, plan.nranks) for index in range(1 if phase.repeats else phase.nrounds)]
                if phase.style == "pipeline":
                    pipelined = max(pipelined, sum(counts) * (phase.nrounds if phase.repeats else 1))
                else:
                    most = max(most, *counts, 0)
        need = (pipelined * ITEM + most * SEND) * len(plan.channels)
        if need > self.memory:
            sends = (pipelined or most) * len(plan.channels)
            message = f"step by step, {sends:,} sends are known at one time and need some {need / 1e9:,.0f} GB"
            fits = int(sends * self.memory / need)
            expected = f"at most some {fits:,} of them, which fit into {self.memory / 1e9:g} GB: fewer ranks"
            expected += " or chunks" if pipelined else ""
            raise PlanBoundsError(
                Problem(message, expected=f"{expected}, or the fast executor, which is not step-exact")
            )


#: of an algorithm that was asked for by name
ASKED = PlanBounds()

#: of one among all at all sizes together, where nobody asked for it
SURVEY = PlanBounds(events=50_000, crossings=4_500_000, sends=16_384)

#: of a cell of the crossover map, which has hundreds
MAP = PlanBounds(events=16_384, crossings=500_000, sends=2_048)


def crossings(plan: Plan, placement: Placement, *, most: float = float("inf")) -> int:
    """Links that the sends of a plan cross; rounds that repeat count once.

    A round that does not repeat counts as one more link for every 32 participants: what
    looking at all of them costs, which is most of it in a chain of thousands.

    Parameters
    ----------
    plan : Plan
        The plan.
    placement : Placement
        Where its participants sit.
    most : float
        Where to stop counting.

    Examples
    --------
    >>> from simperf.collectives import make_plan
    >>> from simperf.collectives.placement import place
    >>> from simperf.hardware import build_topology
    >>> plan, star = make_plan("all-reduce", "naive", nranks=4), build_topology("star", 4, bandwidth=1e9)
    >>> crossings(plan, place(plan, star))  # three sends there, three back, two links each
    12
    """
    topology = placement.machine.topology
    total = 0
    if topology is not None:
        import numpy as np

        node = np.array([topology.number(name) for name in placement.nodes], dtype=np.int64)
    for channel in plan.channels:
        for phase in channel.phases:
            for index in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds):
                sends = phase.count(index, plan.nranks)
                if total + sends > most:  # every send crosses a link
                    return total + sends
                if topology is None:
                    total += 6 * sends  # between servers of a cluster: GPU, switch, NIC, and back
                else:
                    one = phase.make(index)
                    total += topology.crossed(node[one.src], node[one.dst])
                total += 0 if phase.repeats else plan.nparticipants // 32
                if total > most:
                    return total
    return total
