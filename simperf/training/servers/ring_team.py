"""A machine that adds up around rings before the network: every GPU has a part of every slice.

The GPUs reduce-scatter a slice, each copies its part to the CPU's memory, the CPU pushes the whole; back it goes
the other way, with an all-gather at the end. With a ring of the GPUs below each PCIe switch, what the switches'
GPUs have summed is added up in the CPU's memory: more copies to the CPU, and nothing from switch to switch. After
BytePS (Y. Jiang et al., OSDI 2020; bytedance/byteps, docs/architecture.md and BYTEPS_PCIE_SWITCH_SIZE in docs/env.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from simperf.errors import MachineError
from simperf.hardware import Machine
from simperf.training.servers.local_rings import LocalRings
from simperf.training.servers.multi_machine import Team, TeamOptions, TeamRoute
from simperf.training.servers.placement import Shard
from simperf.training.servers.transfers import Courier

__all__ = ["RingTeam", "ring_groups"]


def ring_groups(machine: Machine, gpus: Sequence[str], *, reduction: str) -> tuple[tuple[str, ...], ...]:
    """GPUs of one machine that form a ring each: all of them, or those below one PCIe switch.

    Raises
    ------
    MachineError
        GPUs below no PCIe switch, or rings of different lengths.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> machine = Catalog.load().machine("pcie-8gpu")
    >>> [len(group) for group in ring_groups(machine, machine.gpus, reduction="switch-rings")]
    [4, 4]
    """
    if reduction == "ring":
        return (tuple(gpus),)
    groups: dict[str, list[str]] = {}
    for gpu in gpus:
        groups.setdefault(machine.nearest(gpu, "pcie-switch"), []).append(gpu)
    if len({len(group) for group in groups.values()}) > 1:
        raise MachineError(
            f"the switches of {machine.nodes[gpus[0]].server} must have equal numbers of GPUs below them"
        )
    return tuple(tuple(group) for group in groups.values())


class RingTeam(Team):
    """A team whose GPUs add up around one ring or more.

    Parameters
    ----------
    number, route, courier, options
        As in `Team`.
    rings : sequence of LocalRings
        Together they hold each GPU of the team once.
    """

    def __init__(
        self, number: int, route: TeamRoute, courier: Courier, options: TeamOptions, *, rings: Sequence[LocalRings]
    ) -> None:
        super().__init__(number, route, courier, options)
        self.rings = tuple(rings)
        self._ring_of = {gpu: number for number, ring in enumerate(self.rings) for gpu in ring.gpus}
        self._parts: Counter[tuple[str, int, int]] = Counter()

    def gradient(self, gpu: str, shard: Shard, clock: int) -> None:
        """Step 2: the gradient of one GPU is there; a ring starts when those of all its GPUs are."""
        number = self._ring_of[gpu]
        ring = self.rings[number]
        if self._last("ready", number, shard, len(ring.gpus)):
            ring.reduce_scatter(shard.nbytes, self.priority(shard), partial(self._scattered, number, shard, clock))

    def _scattered(self, number: int, shard: Shard, clock: int) -> None:
        """Step 3: each GPU of a ring copies its part to the CPU."""
        ring = self.rings[number].gpus
        nbytes = self.inward(shard.nbytes) / len(ring)
        traffic = 0.0 if self.coder else self.codec.encoding(shard.nbytes) / len(ring)
        for gpu in ring:
            copied = partial(self._copied, number, shard, clock)
            copy = partial(self._copy, "to cpu", gpu, self.route.host, shard, nbytes, copied)
            self.sites(gpu).work("encode", traffic, copy)

    def _copied(self, number: int, shard: Shard, clock: int) -> None:
        if not self._last("to cpu", number, shard, len(self.rings[number].gpus)):
            return
        if self._last("summed", 0, shard, len(self.rings)):
            sums = (len(self.rings) - 1) * self.add * shard.nbytes
            self.sites(self.route.host).work("add", sums, partial(self._outside, shard, clock))

    def _returned(self, shard: Shard, door: str) -> None:
        """Step 6: to every GPU its part."""
        for number, ring in enumerate(self.rings):
            part = self.homeward(shard.nbytes) / len(ring.gpus)
            for gpu in ring.gpus:
                self._copy("to gpu", door, gpu, shard, part, partial(self._back, number, shard))

    def _back(self, number: int, shard: Shard) -> None:
        """Step 7: each gives its part to the others, around the ring."""
        ring = self.rings[number]
        if self._last("to gpu", number, shard, len(ring.gpus)):
            ring.all_gather(self.homeward(shard.nbytes), self.priority(shard), partial(self._everywhere, number, shard))

    def _everywhere(self, number: int, shard: Shard) -> None:
        for gpu in self.rings[number].gpus:
            self._landed(shard, gpu)

    def _last(self, step: str, number: int, shard: Shard, count: int) -> bool:
        """One of `count` has done a step with a shard; whether it was the last one."""
        key = (step, number, shard.index)
        self._parts[key] += 1
        if self._parts[key] < count:
            return False
        del self._parts[key]
        return True
