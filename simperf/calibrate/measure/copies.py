"""Copies by size: within the host, between host and device, within a device and between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import sample
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Family, note_text, point

__all__ = ["family"]


def _bytes(bench: Bench, count: int, device: str, *, pinned: bool = False) -> Any:
    torch = bench.torch
    made = torch.empty(count, dtype=torch.uint8, device=device, pin_memory=pinned)
    return made.fill_(1)


def _setup(bench: Bench, kind: str, count: int) -> Callable[[], Any]:
    """Make both ends of a copy, and give the copy."""
    pinned = kind.endswith("pinned")
    ends = {
        "h2d-pinned": ("cpu", bench.device),
        "h2d-pageable": ("cpu", bench.device),
        "d2h-pinned": (bench.device, "cpu"),
        "d2h-pageable": (bench.device, "cpu"),
        "d2d": (bench.device, bench.device),
        "host": ("cpu", "cpu"),
    }
    source, target = ends.get(kind, (bench.device, _other(bench)))
    a = _bytes(bench, count, source, pinned=pinned and source == "cpu")
    b = _bytes(bench, count, target, pinned=pinned and target == "cpu")
    return lambda: b.copy_(a, non_blocking=pinned or kind in ("d2d", "peer"))


def _other(bench: Bench) -> str:
    own = int(bench.device.partition(":")[2] or 0)
    return f"cuda:{0 if own else 1}"


def _take(bench: Bench, kind: str, count: int) -> Sequence[float]:
    if kind == "fresh":
        return _fresh(bench, count)
    call = _setup(bench, kind, count)
    bench.synchronize()
    if kind in ("host", "h2d-pageable", "d2h-pageable"):
        return bench.wall(call)
    return bench.kernel(call)


def _fresh(bench: Bench, count: int) -> Sequence[float]:
    """Writing memory that the system has just handed out: every page is a fault."""
    import mmap
    import time

    torch = bench.torch

    def timeit(number: int) -> float:
        total = 0.0
        for _ in range(number):
            with mmap.mmap(-1, count) as raw:
                array = torch.frombuffer(raw, dtype=torch.uint8)
                begin = time.perf_counter()
                array.fill_(1)
                total += time.perf_counter() - begin
                del array
        return total

    return sample(timeit, bench.care)


def family(bench: Bench) -> Family:
    """Every kind of copy that the machine has, over sizes."""
    kinds = ["host", "fresh"]
    if bench.cuda:
        kinds += ["h2d-pinned", "h2d-pageable", "d2h-pinned", "d2h-pageable", "d2d"]
        if bench.torch.cuda.device_count() > 1:
            kinds.append("peer")
        else:
            yield note_text("copy/peer", "there is one GPU")
    else:
        yield note_text("copy/h2d-pinned and all copies of a device", "no CUDA device was asked for")
    for kind in kinds:
        low, high, count = (4e3, 3e7, 5) if bench.quick else (1e3, 2.5e8, 15)
        for nbytes in sizes(low, high, count):
            if kind == "fresh" and nbytes < 1e5:
                continue
            at: dict[str, Value] = {"device": bench.kind, "nbytes": nbytes}
            if kind in ("host", "fresh"):
                at["threads"] = bench.threads
            yield point(f"copy/{kind}", at, lambda k=kind, n=nbytes: _take(bench, k, n))  # type: ignore[misc]
