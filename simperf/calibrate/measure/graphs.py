"""Captured CUDA graphs: replay of many small kernels against launching each. Not run on hardware yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Family, note_text, point

__all__ = ["captured", "family"]


def _body(bench: Bench, nodes: int, elements: int = 1024) -> Callable[[], Any]:
    x = bench.new("fp32")(elements)

    def body() -> None:
        for _ in range(nodes):
            x.mul_(0.999)

    return body


def captured(bench: Bench, nodes: int, *, elements: int = 1024) -> Callable[[], None]:
    """Capture so many kernels over as many elements, one after another; gives what replays them."""
    torch = bench.torch
    body = _body(bench, nodes, elements)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        body()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()

    def replay(kept: object = body) -> None:  # the array that the graph works on is there as long as this is
        graph.replay()

    return replay


def _take(bench: Bench, nodes: int, mode: str) -> Sequence[float]:
    call = _body(bench, nodes) if mode == "eager" else captured(bench, nodes)

    def whole() -> None:
        call()
        bench.synchronize()

    # few replays at a time: behind many the host would wait for the device
    return bench.host(call, queued=4) if mode == "replay-host" else bench.wall(whole)


def family(bench: Bench) -> Family:
    """Graphs of one to hundreds of kernels."""
    if not bench.cuda:
        yield note_text("graph/replay", "CUDA graphs need a CUDA device")
        return
    for nodes in (10, 30, 100) if bench.quick else (1, 10, 30, 100, 300):
        for mode in ("eager", "replay", "replay-host"):
            at: dict[str, Value] = {"device": bench.kind, "nodes": nodes, "mode": mode}
            yield point("graph/replay", at, lambda n=nodes, m=mode: _take(bench, n, m))  # type: ignore[misc]
