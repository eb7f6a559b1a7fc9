"""A network ready to run on one kind of device: its operations as kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simperf.engine.kernel import Kernel

if TYPE_CHECKING:
    from simperf.workload import Op, OpGraph

__all__ = ["Module"]


class Module:
    """A graph of operations and its kernels on a device, with and without fusion.

    Parameters
    ----------
    graph : OpGraph
    cost : callable
        Kernel of one operation on the device at hand.
    name : str
    """

    def __init__(self, graph: OpGraph, cost: Callable[[Op], Kernel], name: str = "net") -> None:
        self.graph, self.name, self._cost = graph, name, cost
        self._graphs: dict[bool, OpGraph] = {False: graph}
        self._kernels: dict[bool, tuple[Kernel, ...]] = {}

    def operations(self, *, fused: bool = False) -> OpGraph:
        """The graph, fused on demand."""
        if fused not in self._graphs:
            from simperf.workload import fuse

            self._graphs[fused] = fuse(self.graph)
        return self._graphs[fused]

    def kernels(self, *, fused: bool = False) -> tuple[Kernel, ...]:
        """One kernel an operation, in program order."""
        if fused not in self._kernels:
            self._kernels[fused] = tuple(self._cost(op) for op in self.operations(fused=fused).ops)
        return self._kernels[fused]

    def predecessors(self, *, fused: bool = False) -> Sequence[Sequence[int]]:
        """For each operation, the indices of those whose outputs it reads."""
        return self.operations(fused=fused).predecessors
