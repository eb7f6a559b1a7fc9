"""Routes between the participants of a plan in a cluster of equal servers: one is found for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    servers : Machine
        That has the servers.
    """

    def __init__(self, placement: Placement, servers: Machine) -> None:
        self._placement = placement
        super().__init__(
            servers,
            placement.nodes,
            placement.machine.resources,
            lambda src, dst: placement.hop(src, dst).resources,
        )

    @property
    def hops(self) -> list[Hop]:
        """The way of each class's representative."""
        return [self._placement.hop(*pair) for pair in self.representatives]

    @classmethod
    def of(cls, placement: Placement) -> PlanRoutes | None:
        """Routes over a cluster whose routes do not depend on names; None on other machines."""
        servers = placement.machine.equal_servers
        return None if servers is None or _limited(placement) else cls(placement, servers)


def _limited(placement: Placement) -> bool:
    """Whether a limit on a flow between two servers is a link of its own, named by both."""
    servers = [node.partition("/")[0] for node in placement.nodes]
    away = next((number for number, server in enumerate(servers) if server != servers[0]), None)
    return away is not None and any(name.endswith(":flow") for name in placement.hop(0, away).resources)
