"""Forwarding by GPUs: what goes between two that share no NVLink passes one that has links with both.

NCCL does so for sends between pairs of GPUs, and so for all-to-all (src/graph/paths.cc, ``PATH_NVB``; off with
``NCCL_NVB_DISABLE``); its rings and trees only follow links that are there.
"""

from __future__ import annotations

from simperf.collectives.machine_view import MachineView
from simperf.hardware import Machine, Route

__all__ = ["Forwarding"]


class Forwarding(MachineView):
    """A machine some of whose routes pass a GPU.

    Parameters
    ----------
    machine : Machine
        Everything but the routes between its GPUs is its own.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._routes: dict[tuple[str, str], Route] = {}

    @property
    def equal_servers(self) -> None:
        """None: which GPU forwards depends on those of the server."""

    def route(self, src: str, dst: str, /) -> Route:
        """The machine's, or that through the GPU over which it is widest."""
        if (src, dst) not in self._routes:
            self._routes[src, dst] = self._find(src, dst)
        return self._routes[src, dst]

    def _find(self, src: str, dst: str) -> Route:
        base, nodes = self.machine.route(src, dst), self.machine.nodes
        one, two = nodes[src], nodes[dst]
        near = one.kind == two.kind == "gpu" and one.server == two.server and src != dst
        if not near or base.is_nvlink:
            return base
        others = [node for node in self.machine.gpus if node not in (src, dst) and nodes[node].server == one.server]
        through = [
            self.machine.route(src, dst, via=(node,))
            for node in others
            if self.machine.route(src, node).is_nvlink and self.machine.route(node, dst).is_nvlink
        ]
        return max(through, key=lambda route: route.bandwidth, default=base)
