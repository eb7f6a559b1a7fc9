"""Parts that a file may describe without an error, and that still cannot exist."""

from __future__ import annotations

from simperf.hardware.devices import LinkPart, NicPart, StoragePart
from simperf.hardware.part import Part
from simperf.hardware.processors import CpuPart, GpuPart

__all__ = ["implausible"]


def implausible(part: Part) -> list[str]:
    """Say what no such part can have; empty if nothing is wrong."""
    wrong = [f"{key}: no source" for key in part.numbers() if not part.source(key)]
    if isinstance(part, GpuPart):
        wrong += _gpu(part)
    elif isinstance(part, CpuPart):
        wrong += _cpu(part)
    elif isinstance(part, LinkPart):
        if part.bandwidth > part.raw:
            wrong.append("bandwidth: more payload than the line rate")
        if part.velocity is None and part.latency == 0 and part.technology == "wan":
            wrong.append("velocity: a long link needs one")
    elif isinstance(part, StoragePart):
        wrong += _storage(part)
    elif isinstance(part, NicPart) and part.flow_limit is not None and part.flow_limit > part.bandwidth:
        wrong.append("flow_limit: above the bandwidth")
    return wrong


def _gpu(part: GpuPart) -> list[str]:
    wrong = []
    if "fp32" not in part.peak:
        wrong.append("peak: every GPU has an fp32 rate")
    else:
        balance = part.peak["fp32"] / part.memory_bandwidth
        if not 1 <= balance <= 500:
            wrong.append(f"peak.fp32: {balance:.3g} FLOP a byte of memory traffic; real GPUs lie between 1 and 500")
    order = [part.peak[key] for key in ("tf32", "fp16", "fp8") if key in part.peak]
    if order != sorted(order):
        wrong.append("peak: fewer bits cannot be slower (tf32, fp16, fp8): is one of them with sparsity?")
    if part.l2 >= part.memory_capacity:
        wrong.append("l2: as large as the memory")
    if not 1e-7 <= part.kernel_floor <= 1e-4:
        wrong.append("kernel_floor: kernels start in microseconds")
    if part.exchange is not None and not 1e-7 <= part.exchange <= 1e-4:
        wrong.append("exchange: GPUs exchange flags in microseconds")
    missing = {"gemm", "elementwise"} - set(part.efficiency)
    return wrong + [f"efficiency.{key}: missing" for key in sorted(missing)]


def _cpu(part: CpuPart) -> list[str]:
    sizes = [cache.capacity for cache in part.caches]
    delays = [cache.latency for cache in part.caches]
    wrong = []
    if sizes != sorted(sizes) or delays != sorted(delays):
        wrong.append("cache: each level is larger and slower than the one before")
    if delays and delays[-1] >= part.memory_latency:
        wrong.append("cache: slower than memory")
    return wrong


def _storage(part: StoragePart) -> list[str]:
    wrong = []
    if part.technology == "hdd" and not (part.seek and part.rotation):
        wrong.append("seek, rotation: a hard disk has both")
    if part.technology != "hdd" and (part.seek or part.rotation):
        wrong.append("seek, rotation: only hard disks have them")
    if part.write_bandwidth > part.read_bandwidth:
        wrong.append("write_bandwidth: writes are not faster than reads")
    return wrong
