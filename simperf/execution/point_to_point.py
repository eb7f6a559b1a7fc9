"""Sends and receives between pairs of ranks: the n-th send of a pair is what the n-th receive gets, as with NCCL.

Bytes begin to move when both sides have come, and both are done when the last byte has arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from simperf.collectives.execute import Context, Execution, PlacedPlan, start
from simperf.errors import ProgramError

__all__ = ["Message", "Pairs"]


class Holder(Protocol):
    """Messages that one rank sends and receives together."""

    @property
    def path(self) -> float:
        """Critical path up to its begin [s]."""

    @property
    def track(self) -> str:
        """Of the stream that it is on."""

    def arrived(self, began: float, path: float, last: str) -> None:
        """One of its messages has moved since a time [s], at the end of a critical `path` [s].

        `last` is the track of the side that came last.
        """


@dataclass(frozen=True, eq=False, slots=True)
class Message:
    """One side of a message.

    Parameters
    ----------
    sends : bool
        Whether it is the sender's side.
    source, target : int
        Ranks of sender and receiver.
    nbytes : float
        Payload [B].
    holder : Holder
        Of the rank whose side it is.
    """

    sends: bool
    source: int
    target: int
    nbytes: float
    holder: Holder


class Pairs:
    """Messages between the ranks of a group.

    Parameters
    ----------
    nodes : sequence of str
        Node of each rank.
    context : Context
        What messages are simulated in.
    place : callable
        The plan of one send between two ranks of a size [B].
    count : callable
        Called with executions that were found without other traffic.
    exact : bool
        As for `simperf.collectives.execute.start`.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        context: Context,
        place: Callable[[int, int, float], PlacedPlan],
        count: Callable[[Execution], None],
        *,
        exact: bool = False,
    ) -> None:
        self._nodes, self._context, self._place, self._count, self._exact = nodes, context, place, count, exact
        self._posted: dict[tuple[int, int], deque[Message]] = {}

    def post(self, message: Message) -> None:
        """One side has come.

        Raises
        ------
        ProgramError
            The other side has come with another size.
        """
        queue = self._posted.setdefault((message.source, message.target), deque())
        if not queue or queue[0].sends == message.sends:
            queue.append(message)
            return
        other = queue.popleft()
        if other.nbytes != message.nbytes:
            sent, taken = (message, other) if message.sends else (other, message)
            raise ProgramError(
                f"{self._nodes[message.source]} sends {sent.nbytes:,.0f} B to "
                f"{self._nodes[message.target]}, which receives {taken.nbytes:,.0f} B: "
                "a send and its receive are of one size"
            )
        self._begin(message, other)

    def _begin(self, *sides: Message) -> None:
        one, left, began = sides[0], {0, 1}, float(self._context.env.now)
        path, last = max(side.holder.path for side in sides), one.holder.track

        def end(ranks: Collection[int]) -> None:
            left.difference_update(ranks)
            if run.isolated is not None and not left:
                self._count(run.isolated)
            for side in sides:
                if (0 if side.sends else 1) in ranks:
                    side.holder.arrived(began, path + run.critical, last)

        run = start(
            self._place(one.source, one.target, one.nbytes),
            one.nbytes,
            self._context,
            released=end,
            exact=self._exact,
        )
        run.enter((0, 1))

    def waiting(self) -> list[str]:
        """Messages of which one side alone has come, one line each."""
        told = []
        for (source, target), queue in self._posted.items():
            here, there = self._nodes[source], self._nodes[target]
            for message in queue:
                size = f"{message.nbytes:,.0f} B"
                if message.sends:
                    told.append(f"{here} sends {size} to {there}, which has not come to a receive from {here}")
                else:
                    told.append(f"{there} receives {size} from {here}, which has not come to a send to {there}")
        return told
