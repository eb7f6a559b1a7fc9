"""The seams of cost: what a model of one operation, or of one message, must offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from simperf.workload.op import Op

__all__ = ["GpuRates", "OpCost", "OpModel", "peak_share", "regime_of"]


class GpuRates(Protocol):
    """Fields of a GPU part that a cost model reads (`simperf.hardware.GpuPart` has it all)."""

    @property
    def name(self) -> str:
        """Name of the part, for messages."""

    @property
    def peak(self) -> Mapping[str, float]:
        """Rate of arithmetic by precision [FLOP/s]."""

    @property
    def memory_bandwidth(self) -> float:
        """Rate of device memory [B/s]."""

    @property
    def sms(self) -> int:
        """Streaming multiprocessors (compute units)."""

    @property
    def kernel_floor(self) -> float:
        """Time of the shortest kernel [s]."""

    @property
    def efficiency(self) -> Mapping[str, float]:
        """Fraction of the limiting peak that a kernel family reaches at best."""


def peak_share(share: float, device: GpuRates) -> float:
    """Share of a GPU's own peak that kernels reach, by what they reach where matrix units work at their full rate.

    Registers, shared memory, caches and power bound kernels to `share` of the full rate. Where the maker limits the
    matrix units, the rest of the chip works at its full rate, so that the units themselves are the bound sooner.

    Parameters
    ----------
    share : float
        Of the full rate [1].
    device : GpuRates
        A GPU; one without `matrix_fraction` has matrix units that are not limited.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> [peak_share(0.634, Catalog.load().gpu(name)) for name in ("l40s", "rtx-4090")]
    [0.634, 1.0]
    """
    return min(1.0, share / float(getattr(device, "matrix_fraction", 1.0)))


@dataclass(frozen=True, slots=True)
class OpCost:
    """The time of one operation alone, and its parts.

    Parameters
    ----------
    time : float
        whole kernel [s]
    compute_time, memory_time : float
        what arithmetic and what memory traffic would take alone [s]
    overhead : float
        fixed part of a kernel: start, ramp and end [s]
    regime : str
        What the time goes to: ``"compute"``, ``"memory"`` or ``"overhead"``.
    flops, nbytes : float
        work [FLOP] and traffic [B]
    demand : float
        Fraction of the device that the kernel can fill, above 0 and at most 1.
    """

    time: float
    compute_time: float
    memory_time: float
    overhead: float
    regime: str
    flops: float
    nbytes: float
    demand: float = 1.0

    @property
    def rate(self) -> float:
        """Achieved arithmetic rate [FLOP/s]."""
        return self.flops / self.time if self.time else 0.0

    @property
    def bandwidth(self) -> float:
        """Achieved memory bandwidth [B/s]."""
        return self.nbytes / self.time if self.time else 0.0


def regime_of(compute: float, memory: float, overhead: float) -> str:
    """Regime of a kernel: ``"overhead"`` where its fixed part exceeds arithmetic and traffic, else the longer of these.

    Parameters
    ----------
    compute, memory, overhead : float
        As in `OpCost` [s].

    Examples
    --------
    >>> regime_of(3e-6, 2e-6, 1e-6), regime_of(3e-6, 2e-6, 4e-6)
    ('compute', 'overhead')
    """
    if overhead > max(compute, memory):
        return "overhead"
    return "compute" if compute >= memory else "memory"


@runtime_checkable
class OpModel(Protocol):
    """Says what one operation costs on one device."""

    def cost(self, op: Op) -> OpCost:
        """Cost of `op` alone on the device."""
