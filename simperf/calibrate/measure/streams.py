"""Small kernels on several streams: how far a device runs them side by side. Not run on hardware yet."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import sample
from simperf.calibrate.measure.task import Family, note_text, point

__all__ = ["family"]

#: kernels on each stream
KERNELS = 20


def _take(bench: Bench, streams: int, side: int) -> Sequence[float]:
    torch = bench.torch
    lanes = [torch.cuda.Stream() for _ in range(streams)]
    arrays = [bench.new("fp32")(side, side) for _ in range(streams)]
    bench.synchronize()

    def once() -> float:
        main = torch.cuda.current_stream()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(20_000 * KERNELS * streams)
        begin.record()
        for lane, array in zip(lanes, arrays, strict=True):
            lane.wait_stream(main)
            with torch.cuda.stream(lane):
                for _ in range(KERNELS):
                    torch.mm(array, array)
        for lane in lanes:
            main.wait_stream(lane)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    return sample(lambda number: sum(once() for _ in range(number)), bench.care)


def family(bench: Bench) -> Family:
    """Products of one size on one to many streams."""
    if not bench.cuda:
        yield note_text("streams/concurrent", "a CPU has no streams")
        return
    for side in (64, 256, 768) if bench.quick else (64, 128, 256, 512, 1024):
        for streams in (1, 3, 8) if bench.quick else (1, 2, 4, 8, 16):
            at: dict[str, Value] = {"device": bench.kind, "streams": streams, "kernels": KERNELS, "side": side}
            yield point("streams/concurrent", at, lambda s=streams, n=side: _take(bench, s, n))  # type: ignore[misc]
