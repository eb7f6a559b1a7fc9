"""The programs that are measured whole, over the simulator's verbs: held out, and simulated with a profile's constants.

Each is the counterpart of one in `simperf.calibrate.measure.programs`, under the same name and with the same
parameters: its launches, waits and copies are the verbs that stand for what the torch program does. What the host had
issued when is a metric, ``issued``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from simperf.engine.items import GraphLaunch, Marker
from simperf.engine.kernel import Kernel
from simperf.execution import Program, copy, item, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.programs import ProgramSpec
from simperf.workload.kinds import binary, matmul

__all__ = ["PROGRAMS"]


def _in_place(m: Session, elements: int, kind: str = "mul") -> Kernel:
    """An operation in place on so many numbers, whose launch is the one that t1 is measured with."""
    kernel = m.kernel(binary(kind, elements, scalar=True))
    return Kernel(kernel.name, kernel.time, kernel.demand, kernel.category)


def _chain(m: Session, *, n: int = 2500, elements: int = 8_000_000) -> Program:
    gpu, kernel = m.gpu(), _in_place(m, elements)
    for _ in range(n):
        yield launch(kernel, gpu)
    m.metric("issued", m.now, "s")
    yield synchronize(gpu)


def _item(m: Session, *, looks: int = 20, n: int = 30) -> Program:
    yield from _rounds(m, looks, n, end=item)


def _wait(m: Session, *, looks: int = 50, n: int = 4) -> Program:
    yield from _rounds(m, looks, n, end=synchronize)


def _rounds(m: Session, looks: int, n: int, *, end: Callable[..., Any]) -> Program:
    """Launches in rounds, each of which ends with a verb that waits."""
    gpu, kernel = m.gpu(), _in_place(m, 1, "add")
    for _ in range(looks):
        for _ in range(n):
            yield launch(kernel, gpu)
        yield end(gpu)
    yield synchronize(gpu)


def _graph(m: Session, *, nodes: int = 120, n: int = 20, elements: int = 1 << 18) -> Program:
    gpu, kernel = m.gpu(), _in_place(m, elements)
    graph = GraphLaunch("graph", (kernel,) * nodes, gap=m.profile.graph_gap)
    for _ in range(n):
        yield launch(graph, gpu)
    m.metric("issued", m.now, "s")
    yield synchronize(gpu)


def _batches(
    m: Session,
    *,
    batches: int = 8,
    nbytes: int = 24_000_000,
    beside: Literal["gemm", "memory"] = "gemm",
    side: int = 1536,
    n: int = 3,
) -> Program:
    gpu = m.gpu()
    main, lane = gpu.stream(0), gpu.stream(1)
    kernel = m.kernel(matmul(side, side, k=side)) if beside == "gemm" else _in_place(m, side * side)
    freed: list[Marker] = []
    for batch in range(batches):
        if batch >= 2:
            yield wait(freed[batch - 2], lane)
        yield copy(m.host, gpu, nbytes=float(nbytes), stream=lane, name="batch")
        copied = yield record(lane, "copied")
        yield wait(copied, main)
        for _ in range(n):
            yield launch(kernel, main)
        freed.append((yield record(main, "computed")))
    yield synchronize(gpu)


def _streams(m: Session, *, streams: int = 3, n: int = 30, side: int = 640) -> Program:
    gpu = m.gpu()
    kernel = m.kernel(matmul(side, side, k=side))
    for lane in range(streams):
        for _ in range(n):
            yield launch(kernel, gpu.stream(lane))
    yield synchronize(gpu)


#: by the name in the series ``program/NAME``
PROGRAMS: Mapping[str, ProgramSpec] = {
    name: ProgramSpec.of(name, function)
    for name, function in (
        ("chain", _chain),
        ("item", _item),
        ("wait", _wait),
        ("graph", _graph),
        ("batches", _batches),
        ("streams", _streams),
    )
}
