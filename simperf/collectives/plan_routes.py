"""Routes between the participants of a plan in a cluster of equal servers: one is found for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simperf.collectives.forwarding import Forwarding
from simperf.hardware import Machine
from simperf.hardware.route_classes import RouteClasses

if TYPE_CHECKING:
    from simperf.collectives.placement import Hop, Placement

__all__ = ["PlanRoutes"]


class PlanRoutes(RouteClasses):
    """Numbers the links of a cluster that a plan uses.

    Parameters
    ----------
    placement : Placement
        Where the participants sit; `PlanRoutes.of` says whether this will do.
    """

    def __init__(self, placement: Placement) -> None:
        machine: Any = placement.machine
        self._placement = placement
        super().__init__(
            getattr(machine, "machine", machine),
            placement.nodes,
            machine.resources,
            lambda src, dst: placement.hop(src, dst).resources,
        )

    @property
    def hops(self) -> list[Hop]:
        """The way of each class's representative."""
        return [self._placement.hop(*pair) for pair in self.representatives]

    @classmethod
    def of(cls, placement: Placement) -> PlanRoutes | None:
        """Routes over a cluster whose routes do not depend on names; None on other machines."""
        machine = getattr(placement.machine, "machine", placement.machine)
        if isinstance(placement.machine, Forwarding) or not isinstance(machine, Machine):
            return None
        if machine.fabric is None or machine.fabric.lanes or _limited(placement):
            return None
        return cls(placement)


def _limited(placement: Placement) -> bool:
    """Whether a limit on a flow between two servers is a link of its own, named by both."""
    servers = [node.partition("/")[0] for node in placement.nodes]
    away = next((number for number, server in enumerate(servers) if server != servers[0]), None)
    return away is not None and any(name.endswith(":flow") for name in placement.hop(0, away).resources)
