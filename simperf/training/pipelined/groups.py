"""Process groups of classes of ranks: each stands for all communicators of its class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simperf.collectives.channels import ChannelBytes, ChannelSet
from simperf.collectives.execute import PlacedPlan
from simperf.collectives.moved import add_up
from simperf.engine.device import Device
from simperf.execution.process_group import Member, ProcessGroup
from simperf.execution.session import Session
from simperf.training.pipelined.communicators import MESSAGE, Payload

__all__ = ["ClassGroup", "ClassMember"]


@dataclass(frozen=True, eq=False, slots=True)
class ClassMember:
    """Ranks of a communicator that are of one class.

    Parameters
    ----------
    members : tuple of int
        Their numbers in the communicator.
    device : Device
        Of the rank that is played for the class.
    """

    members: tuple[int, ...]
    device: Device

    @property
    def rank(self) -> int:
        """The first of them."""
        return self.members[0]


class ClassGroup(ProcessGroup):
    """A communicator, and all others that do the same at the same time beside it on the links of the machine.

    Parameters
    ----------
    m, nodes, members, options
        As for `simperf.execution.process_group.ProcessGroup`.
    channels : mapping of Payload to ChannelSet
        Channels of each payload, with the links that those of all communicators of the class draw on. None that a
        payload has makes it go as in any other group.
    """

    def __init__(
        self,
        m: Session,
        nodes: Sequence[str],
        members: Sequence[Member],
        *,
        channels: Mapping[Payload, ChannelSet],
        **options: Any,
    ) -> None:
        super().__init__(m, nodes, members, **options)
        self._channels = channels
        self._added: Counter[Payload] = Counter()

    def placed(self, name: str, nbytes: float) -> PlacedPlan:
        """How a collective of a size [B] is carried out."""
        key = (name, nbytes)
        if key not in self._plans:
            placed = super().placed(name, nbytes)
            self._plans[key] = self._with_all(placed, Payload(name, nbytes))
        return self._plans[key]

    def message(self, source: int, target: int, nbytes: float) -> PlacedPlan:
        """How a send from rank to rank is carried out."""
        return self._with_all(super().message(source, target, nbytes), Payload(MESSAGE, nbytes))

    def again(self, m: Session, members: Sequence[Member]) -> ClassGroup:
        """The same communicator in another session."""
        return ClassGroup(m, self.nodes, members, channels=self._channels, options=self.settings)

    def add(self, payloads: Mapping[Payload, int]) -> None:
        """Count collectives that were played elsewhere, for `settle`."""
        self._added.update(payloads)

    def settle(self) -> None:
        """Count the bytes of collectives that were computed as a whole on the links that they went over."""
        super().settle()
        sets = {payload: self.placed(*payload).channels for payload in self._added}
        moved = ((ChannelBytes(found), self._added[payload]) for payload, found in sets.items() if found is not None)
        self.m.simulation.network.count(add_up(moved))
        self._added.clear()

    def _with_all(self, placed: PlacedPlan, payload: Payload) -> PlacedPlan:
        found = self._channels.get(payload)
        return placed if found is None else replace(placed, channels=found)
