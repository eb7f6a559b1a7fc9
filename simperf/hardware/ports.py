"""By which ports a flow leaves one server and enters another.

The choice is made once for each pair of blueprints, devices and switches, so that thousands of
equal servers cost one search.
"""

from __future__ import annotations

from itertools import product
from math import inf
from typing import NamedTuple

from simperf.hardware.blueprint import Edge, ticks
from simperf.hardware.fabric import Fabric, Port, ServerSlot

__all__ = ["Choices"]


class _Door(NamedTuple):
    """A port, and the edges between a device and it inside the server (by local ids)."""

    port: Port
    inside: tuple[Edge, ...]


class Choices:
    """Doors chosen so far on one fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._made: dict[tuple[object, ...], tuple[int, int] | None] = {}

    def choose(
        self, one: ServerSlot | None, a: str, two: ServerSlot | None, b: str, *, key: str
    ) -> tuple[_Door, tuple[Edge, ...], _Door] | None:
        """Door out, path over the fabric, door in; None if there is no way.

        The nearest doors are taken; devices with several equally near ones spread over them; then
        the lowest latency counts, then the largest bandwidth.

        Parameters
        ----------
        one, two : ServerSlot or None
            Servers of the ends; None for a switch of the fabric itself.
        a, b : str
            The ends, by local ids.
        key : str
            Names the flow, where the fabric has several lanes.
        """
        ups, downs = _doors(one, a, leave=True), _doors(two, b, leave=False)
        known = (_wiring(one), a, _wiring(two), b)
        if known not in self._made:
            self._made[known] = self._best(_spread(ups, one, a), _spread(downs, two, b))
        chosen = self._made[known]
        if chosen is None:
            return None
        up, down = ups[chosen[0]], downs[chosen[1]]
        middle = self._fabric.path(up.port.switch, down.port.switch, key=key)
        return None if middle is None else (up, middle, down)

    def _best(self, ups: list[tuple[int, _Door]], downs: list[tuple[int, _Door]]) -> tuple[int, int] | None:
        best: tuple[int, int] | None = None
        least: tuple[float, ...] = (inf,)
        far = [ticks(up.inside) for _, up in ups], [ticks(down.inside) for _, down in downs]
        for ((i, up), leave), ((j, down), arrive) in product(
            zip(ups, far[0], strict=True), zip(downs, far[1], strict=True)
        ):
            near = leave + arrive
            middle = self._fabric.path(up.port.switch, down.port.switch) if near <= least[0] else None
            if middle is None:
                continue
            edges = (*up.inside, *middle, *down.inside)
            width = min([up.port.bandwidth, down.port.bandwidth, *(edge.bandwidth for edge in edges)])
            rank = (near, near + ticks(middle), -width)
            if rank < least:
                best, least = (i, j), rank
        return best


def _wiring(slot: ServerSlot | None) -> object:
    return slot and (slot.blueprint, *(port.switch for port in slot.ports))


def _doors(slot: ServerSlot | None, local: str, *, leave: bool) -> list[_Door]:
    """Ports by which `local` can leave (or be reached), with the path inside."""
    if slot is None:
        return [_Door(Port("", local, inf, 0.0, 0.0, ""), ())]
    found = []
    for port in slot.ports:
        ends = (local, port.local) if leave else (port.local, local)
        path = slot.blueprint.path(*ends)
        if path is not None:
            found.append(_Door(port, path))
    return found


def _spread(doors: list[_Door], slot: ServerSlot | None, local: str) -> list[tuple[int, _Door]]:
    """Doors with their index, turned so that the GPUs beside several equally near ones start at different ones."""
    rows = list(enumerate(doors))
    if slot is None or len(rows) < 2:
        return rows
    gpus = slot.blueprint.ids("gpu")
    least = min(ticks(door.inside) for door in doors)
    near = [row for row in rows if ticks(row[1].inside) == least]
    turn = gpus.index(local) % len(near) if local in gpus else 0
    return near[turn:] + near[:turn] + [row for row in rows if row not in near]
