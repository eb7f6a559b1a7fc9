"""A copy from the host beside kernels: each alone, and both. Not run on hardware yet."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import sample
from simperf.calibrate.measure.task import Family, note_text, point

__all__ = ["family"]

#: kernels beside one copy
KERNELS = 20


def _take(bench: Bench, part: str, kind: str, nbytes: int) -> Sequence[float]:
    torch = bench.torch
    host = torch.empty(nbytes // 4, pin_memory=True).fill_(1.0)
    target = torch.empty_like(host, device=bench.device)
    array = bench.new("fp32")(2048, 2048)
    lane = torch.cuda.Stream()
    bench.synchronize()

    def once() -> float:
        main = torch.cuda.current_stream()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(1_000_000)
        begin.record()
        lane.wait_stream(main)
        if part in ("copy", "both"):
            with torch.cuda.stream(lane):
                target.copy_(host, non_blocking=True)
        if part in ("compute", "both"):
            for _ in range(KERNELS):
                if kind == "gemm":
                    torch.mm(array, array)
                else:
                    array.mul_(0.999)
        main.wait_stream(lane)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    return sample(lambda number: sum(once() for _ in range(number)), bench.care)


def family(bench: Bench) -> Family:
    """Copies beside products and beside kernels that use the device's memory."""
    if not bench.cuda:
        yield note_text("overlap/copy-compute", "needs a CUDA device: a CPU copies with the cores that compute")
        return
    for kind in ("gemm", "memory"):
        for nbytes in (32_000_000,) if bench.quick else (8_000_000, 32_000_000, 128_000_000):
            for part in ("copy", "compute", "both"):
                at: dict[str, Value] = {"device": bench.kind, "part": part, "beside": kind, "nbytes": nbytes}
                at["kernels"] = KERNELS
                yield point(
                    "overlap/copy-compute",
                    at,
                    lambda p=part, k=kind, n=nbytes: _take(bench, p, k, n),  # type: ignore[misc]
                )
