"""Parts that compute or remember: GPUs, CPUs, their caches and memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from simperf.hardware.part import Part
from simperf.hardware.quantity import (
    AttentionConstants,
    Bandwidth,
    Count,
    Duration,
    Efficiency,
    ExpertConstants,
    Fraction,
    Frequency,
    InFile,
    LimitByPrecision,
    Measured,
    Ports,
    Power,
    ProductConstants,
    Size,
    Switch,
)

__all__ = ["ArchitecturePart", "CacheLevel", "CpuPart", "GpuPart", "MemoryPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchitecturePart(Part):
    """Values that the GPUs of one architecture share, unless a GPU's own file says otherwise.

    Parameters
    ----------
    efficiency : Mapping[str, float]
        Kernel family to the fraction of its limit that large kernels reach: of the peak
        FLOP/s for ``gemm``, ``conv``, ``attention``; of the memory bandwidth for
        ``elementwise``, ``reduction``, ``normalization``, ``copy``. ``family-precision``
        (``gemm-fp32``) holds for that precision alone.
    kernel_floor : float
        Shortest time of a kernel on the device [s].
    copy_engines : int
        Copies that run beside the kernels at one time.
    l1 : float or None
        Most of one multiprocessor's memory that can be its data cache [B].
    threads : int or None
        That one multiprocessor holds.
    lanes : int or None
        Lanes for fp32 arithmetic of one multiprocessor: with its peak they give the clock.
    attention : Mapping[str, float]
        Constants of attention kernels by library, ``LIBRARY.CONSTANT`` (`simperf.cost.attention`); empty where none are
        known.
    experts : Mapping[str, float]
        Constants of experts of a mixture (`simperf.cost.experts`), in place of those of other architectures.
    product : Mapping[str, float]
        Constants of matrix products by shape (`simperf.cost.products`); empty where none are known.
    exchange : float or None
        An exchange of flags between two GPUs over NVLink: the shortest all-reduce of one kernel that writes into the
        peer's memory [s]. It takes the place of tables of NCCL's kernels (`simperf.collectives.nccl_kernels`).
    fp32_products : str
        In what frameworks compute products of fp32 tensors unless they are told otherwise: ``"fp32"`` or ``"tf32"``.
    """

    KIND: ClassVar[str] = "architecture"

    efficiency: Annotated[Mapping[str, float], InFile(Efficiency)] = field(hash=False)
    kernel_floor: Duration
    copy_engines: Count
    l1: Size | None = None
    threads: Count | None = None
    lanes: Count | None = None
    attention: Annotated[Mapping[str, float], InFile(AttentionConstants, {})] = field(default_factory=dict, hash=False)
    experts: Annotated[Mapping[str, float], InFile(ExpertConstants, {})] = field(default_factory=dict, hash=False)
    product: Annotated[Mapping[str, float], InFile(ProductConstants, {})] = field(default_factory=dict, hash=False)
    exchange: Duration | None = None
    fp32_products: Annotated[str, InFile(Literal["fp32", "tf32"], "fp32")] = "fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPart(Part):
    """A GPU, or one die of a board that carries two.

    Parameters
    ----------
    architecture : str
        Name of the `ArchitecturePart` that fills what the file leaves out.
    peak : Mapping[str, float]
        Dense peak by precision [FLOP/s]: ``fp64``, ``fp32``, ``tf32``, ``fp16``, ``bf16``, ``fp8``,
        ``int8``, ``fp4`` (on tensor cores where the GPU has them), ``fp16-vector`` and ``fp64-tensor`` beside them.
    memory_bandwidth : float
        Of the device memory [B/s].
    memory_capacity : float
        [B]
    l2 : float
        Capacity of the last-level cache [B].
    sms : int
        Streaming multiprocessors (compute units).
    nvlinks : int
        NVLink (or Infinity Fabric) ports; a topology that needs more is refused.
    power : float or None
        Board power limit [W].
    dies : int
        Of its board, of which this is one; they share its power and cooling.
    die_pace : float
        Speed of each die while another one of the board works, over its speed alone [1].
    kernel_floor : float
        Shortest time of a kernel on the device [s].
    copy_engines : int
        Copies that run beside the kernels at one time.
    matrix_fraction : float
        Rate of its matrix units over their full rate, with sums in fp32, where the maker limits them, as on GeForce
        [1]. It concerns products, attention and experts in the precisions that the architecture has constants for.
    l1, threads, efficiency, product : float or None, int or None, Mapping[str, float], Mapping[str, float]
        As in `ArchitecturePart`.
    lanes, attention, experts, exchange : int or None, Mapping[str, float], Mapping[str, float], float or None
        As in `ArchitecturePart`.
    fp32_products : str
        As in `ArchitecturePart`.
    block_share : float or None
        Part of a multiprocessor that one tile of a product holds: what is left runs other kernels [1]. Only
        measurements give it, as those below; None counts as all of it.
    side_by_side : float
        Kernels that run at one time at most.
    beside : Mapping[str, float]
        How much longer a kernel and a copy between host and device take beside one another [1]: ``kernel.compute`` and
        ``copy.compute`` beside a kernel bound by arithmetic, ``kernel.memory`` and ``copy.memory`` by memory.
    """

    KIND: ClassVar[str] = "gpu"

    architecture: str
    peak: LimitByPrecision = field(hash=False)
    memory_bandwidth: Bandwidth
    memory_capacity: Size
    l2: Size
    sms: Count
    nvlinks: Ports = 0
    power: Power | None = None
    dies: Count = 1
    die_pace: Fraction = 1.0
    kernel_floor: Annotated[Duration, InFile(Duration | None, None)]
    copy_engines: Annotated[int, InFile(Count | None, None)]
    matrix_fraction: Fraction = 1.0
    l1: Size | None = None
    threads: Count | None = None
    efficiency: Annotated[Mapping[str, float], InFile(Efficiency, {})] = field(hash=False)
    lanes: Count | None = None
    attention: Annotated[Mapping[str, float], InFile(AttentionConstants, {})] = field(default_factory=dict, hash=False)
    experts: Annotated[Mapping[str, float], InFile(ExpertConstants, {})] = field(default_factory=dict, hash=False)
    product: Annotated[Mapping[str, float], InFile(ProductConstants, {})] = field(default_factory=dict, hash=False)
    exchange: Duration | None = None
    fp32_products: Annotated[str, InFile(Literal["fp32", "tf32"] | None, None)] = "fp32"
    block_share: Annotated[float | None, Measured] = None
    side_by_side: Annotated[float, Measured] = math.inf
    beside: Annotated[Mapping[str, float], Measured] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart(Part):
    """One channel of host memory.

    Parameters
    ----------
    bandwidth : float
        Of one channel, in bursts [B/s].
    first_access : float
        From the address to the first word [s].
    burst : float
        Bytes that one address brings [B].
    """

    KIND: ClassVar[str] = "memory"

    bandwidth: Bandwidth
    first_access: Duration
    burst: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLevel:
    """One level of a CPU's caches.

    Parameters
    ----------
    level : str
        ``"L1"``, ``"L2"`` or ``"L3"``.
    capacity : float
        Of one cache [B]: a core's own, or the one that `shared` cores use together.
    latency : float
        Of a hit [s].
    bandwidth : float
        That one core draws from it [B/s].
    shared : int
        Cores that share one cache.
    """

    level: Annotated[str, InFile(Literal["L1", "L2", "L3"])]
    capacity: Size
    latency: Duration
    bandwidth: Bandwidth
    shared: Count = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuPart(Part):
    """One CPU socket with its memory.

    Parameters
    ----------
    cores : int
        Physical cores.
    clock : float
        Base clock [Hz].
    peak : Mapping[str, float]
        Of the socket by precision [FLOP/s].
    memory : MemoryPart
        One channel of its memory.
    memory_channels : int
        Channels of the socket.
    memory_bandwidth : float
        Of all channels together [B/s].
    memory_latency : float
        First access [s].
    memory_capacity : float
        [B]
    caches : tuple of CacheLevel
        From the core outwards.
    forwarding : float or None
        Capacity of its root complex between PCIe ports [B/s], if it is lower than its ports' sum.
    vendor : str
        ``"intel"``, ``"amd"`` or ``"other"``; limits of communication libraries depend on it.
    ddio : bool
        Whether what devices write over PCIe goes into the last-level cache (direct I/O), not to memory.
    """

    KIND: ClassVar[str] = "cpu"

    cores: Count
    clock: Frequency
    peak: LimitByPrecision = field(hash=False)
    memory: Annotated[MemoryPart, InFile(str)]
    memory_channels: Count
    memory_bandwidth: Annotated[Bandwidth, InFile(None)]
    memory_latency: Annotated[Duration, InFile(None)]
    memory_capacity: Size
    caches: Annotated[tuple[CacheLevel, ...], InFile(list[CacheLevel], key="cache")]
    forwarding: Bandwidth | None = None
    vendor: Annotated[str, InFile(Literal["intel", "amd", "other"], "other")] = "other"
    ddio: Switch = False
