"""A copy from the host beside kernels: each alone, and both. Not run on hardware yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import sample
from simperf.calibrate.measure.task import Family, Task, note_text, point, points_of_rows

__all__ = ["family"]

#: kernels beside one copy
KERNELS = 20
#: what is read of a run of both: the end of all, of the copy, of the kernels
BESIDE = ("both", "copy-beside", "compute-beside")


def _setup(bench: Bench, kind: str, nbytes: int) -> Callable[[str], tuple[float, float, float]]:
    """A function that runs a part and says when all, the copy and the kernels had ended [s]."""
    torch = bench.torch
    host = torch.empty(nbytes // 4, pin_memory=True).fill_(1.0)
    target = torch.empty_like(host, device=bench.device)
    array = bench.new("fp32")(2048, 2048)
    lane = torch.cuda.Stream()
    bench.synchronize()

    def once(part: str) -> tuple[float, float, float]:
        main = torch.cuda.current_stream()
        begin, copied, computed, end = (torch.cuda.Event(enable_timing=True) for _ in range(4))
        torch.cuda._sleep(1_000_000)
        begin.record()
        lane.wait_stream(main)
        if part != "compute":
            with torch.cuda.stream(lane):
                target.copy_(host, non_blocking=True)
                copied.record()
        if part != "copy":
            for _ in range(KERNELS):
                if kind == "gemm":
                    torch.mm(array, array)
                else:
                    array.mul_(0.999)
        computed.record()
        main.wait_stream(lane)
        end.record()
        end.synchronize()
        ends: list[Any] = [end, end if part == "compute" else copied, computed]
        whole, copy, compute = (float(begin.elapsed_time(each)) * 1e-3 for each in ends)
        return whole, copy, compute

    return once


def _alone(bench: Bench, part: str, kind: str, nbytes: int) -> Sequence[float]:
    once = _setup(bench, kind, nbytes)
    return sample(lambda number: sum(once(part)[0] for _ in range(number)), bench.care)


def _beside(bench: Bench, kind: str, nbytes: int) -> Task:
    """Three readings of each run: when all, the copy and the kernels had ended."""
    points: list[tuple[str, dict[str, Value]]] = [
        ("overlap/copy-compute", _at(bench, part, kind, nbytes)) for part in BESIDE
    ]

    def take() -> list[tuple[float, float, float]]:
        once = _setup(bench, kind, nbytes)
        once("both")
        return [once("both") for _ in range(bench.care.most)]

    return points_of_rows(points, take)


def _at(bench: Bench, part: str, kind: str, nbytes: int) -> dict[str, Value]:
    return {"device": bench.kind, "part": part, "beside": kind, "nbytes": nbytes, "kernels": KERNELS}


def family(bench: Bench) -> Family:
    """Copies beside products and beside kernels that use the device's memory."""
    if not bench.cuda:
        yield note_text("overlap/copy-compute", "needs a CUDA device: a CPU copies with the cores that compute")
        return
    for kind in ("gemm", "memory"):
        for nbytes in (8_000_000, 32_000_000) if bench.quick else (8_000_000, 32_000_000, 128_000_000):
            for part in ("copy", "compute"):
                yield point(
                    "overlap/copy-compute",
                    _at(bench, part, kind, nbytes),
                    lambda p=part, k=kind, n=nbytes: _alone(bench, p, k, n),  # type: ignore[misc]
                )
            yield _beside(bench, kind, nbytes)
