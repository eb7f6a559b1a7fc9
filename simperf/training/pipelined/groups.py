"""Process groups of classes of ranks: each stands for all communicators of its class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simperf.collectives.exchange import EXCHANGES, RING_SENDS, exchange_channels
from simperf.collectives.execute import PlacedPlan
from simperf.collectives.nccl_blocks import memory_traffic
from simperf.collectives.relayed import TokenKernel, relayed_channels
from simperf.engine.device import Device
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.execution.works import Member, Work
from simperf.hardware import GpuPart
from simperf.training.pipelined.communicators import MESSAGE, Payload

#: part of the memory bandwidth that a collective gets beside a kernel that wants all of it: an even share [1]
MOST_OF_MEMORY = 0.5

__all__ = ["ClassGroup", "ClassMember", "exchanged"]


@dataclass(frozen=True, eq=False, slots=True)
class ClassMember:
    """Ranks of a communicator that are of one class.

    Parameters
    ----------
    members : tuple of int
        Their numbers in the communicator.
    device : Device
        Of the rank that is simulated for the class.
    """

    members: tuple[int, ...]
    device: Device

    @property
    def rank(self) -> int:
        """The first of them."""
        return self.members[0]


def exchanged(
    group: ProcessGroup, payload: Payload, rows: tuple[int, ...], kernel: TokenKernel | None = None
) -> PlacedPlan:
    """Transport of an exchange: that of an all-to-all of its ranks, as large as that of the fullest.

    Parameters
    ----------
    group : ProcessGroup
    payload : Payload
        Name and size of the exchange.
    rows : tuple of int
        What each rank gets; equal amounts if there are none.
    kernel : TokenKernel, optional
        What sends tokens in place of NCCL.
    """
    if kernel is not None:
        placed = ProcessGroup.placed(group, "all-to-all", payload.nbytes)
        return replace(placed, channels=relayed_channels(placed, *payload, kernel), blocks=kernel.blocks)
    whole = group.size if payload.name in RING_SENDS else 1.0
    fullest = max(rows) * len(rows) / sum(rows) if any(rows) else 1.0
    placed = ProcessGroup.placed(group, "all-to-all", fullest * whole * payload.nbytes)
    channels = exchange_channels(placed, payload.name, payload.nbytes, rows)
    return replace(placed, channels=channels, blocks=0 if payload.name == "copy" else placed.blocks)


class ClassGroup(ProcessGroup):
    """A communicator, and all others that do the same at the same time beside it on the links of the machine.

    Parameters
    ----------
    m, nodes, members, options
        As for `simperf.execution.process_group.ProcessGroup`.
    plans : mapping of Payload to PlacedPlan
        How each payload is carried out, with the links that the channels of all communicators of the class draw on.
        One that is not there goes as in any other group.
    rows : tuple of int
        What each rank gets in exchanges of unequal amounts (`simperf.collectives.exchange`).
    kernel : TokenKernel, optional
        What exchanges tokens in place of NCCL.
    """

    def __init__(
        self,
        m: Session,
        nodes: Sequence[str],
        members: Sequence[Member],
        *,
        plans: Mapping[Payload, PlacedPlan],
        rows: tuple[int, ...] = (),
        kernel: TokenKernel | None = None,
        **options: Any,
    ) -> None:
        super().__init__(m, nodes, members, **options)
        self._known, self._rows, self._kernel = dict(plans), rows, kernel
        self._added: dict[int, tuple[Mapping[Payload, int], int]] = {}
        self._held: dict[tuple[Payload, str], Mapping[str, float]] = {}

    def placed(self, name: str, nbytes: float) -> PlacedPlan:
        """Plan of a collective of a size [B]."""
        payload = Payload(name, nbytes)
        if payload not in self._known:
            if name not in EXCHANGES:
                return super().placed(name, nbytes)
            self._known[payload] = exchanged(self, payload, self._rows, self._kernel)
        return self._known[payload]

    def collective(self, member: Member, name: str, nbytes: float) -> Work:
        """A rank's part in a collective or an exchange, to be launched on a stream."""
        if name in EXCHANGES:
            return Work(self, member, name, nbytes)
        return super().collective(member, name, nbytes)

    def hold(self, work: Work) -> None:
        """Take multiprocessors and memory bandwidth of a rank's device away from its kernels."""
        device, payload = work.member.device, Payload(work.name, work.nbytes)
        key = payload, device.name
        if key not in self._held:
            self._held[key] = self.footprint(payload, device)
        if self._held[key]:
            device.share.hold(work, self._held[key])

    def let_go(self, work: Work) -> None:
        """Give them back."""
        work.member.device.share.drop(work)

    def footprint(self, payload: Payload, device: Device) -> Mapping[str, float]:
        """Parts of a device that a collective holds [1]: multiprocessors, and memory bandwidth if nothing slows it."""
        part, placed = device.part, self.placed(*payload)
        holds = placed.blocks or payload.name == "copy"
        if not holds or placed.channels is None or not isinstance(part, GpuPart) or not part.sms:
            return {}
        time = placed.channels.time
        if self._kernel is not None:
            moved = self._kernel.traffic(payload.nbytes, self.size)
        else:
            moved = memory_traffic(payload.name, payload.nbytes, self.size)
        memory = moved / time / part.memory_bandwidth if time else 0.0
        return {"compute": min(1.0, placed.blocks / part.sms), "memory": min(MOST_OF_MEMORY, memory)}

    def message(self, source: int, target: int, nbytes: float) -> PlacedPlan:
        """Plan of a send from rank to rank."""
        return self._known.get(Payload(MESSAGE, nbytes)) or super().message(source, target, nbytes)

    def again(self, m: Session, members: Sequence[Member]) -> ClassGroup:
        """The same communicator in another session."""
        more: dict[str, Any] = {"rows": self._rows, "kernel": self._kernel, "options": self.settings}
        return ClassGroup(m, self.nodes, members, plans=self._known, **more)

    def add(self, payloads: Mapping[Payload, int]) -> None:
        """Count collectives that were simulated elsewhere, for `settle`; the mapping stays as it is."""
        _, times = self._added.get(id(payloads), (payloads, 0))
        self._added[id(payloads)] = payloads, times + 1

    def settle(self) -> None:
        """Count the bytes of collectives that were computed as a whole on the links that they went over."""
        super().settle()
        network = self.m.simulation.network
        total: dict[int, tuple[Sequence[str], float]] = {}
        added: Counter[Payload] = Counter()
        for payloads, times in self._added.values():
            added.update({payload: times * count for payload, count in payloads.items()})
        for payload, times in added.items():
            channels = self.placed(*payload).channels
            for one, nbytes in channels.moved() if channels is not None else ():
                total[id(one.names)] = one.names, total.get(id(one.names), (one.names, 0.0))[1] + nbytes * times
        for names, nbytes in total.values():
            network.count_all(names, nbytes)
        self._added.clear()
