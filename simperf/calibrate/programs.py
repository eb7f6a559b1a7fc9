"""The programs that are measured whole, over the simulator's verbs: held out, and played with a profile's constants.

Each is the counterpart of one in `simperf.calibrate.measure.programs`, under the same name and with the same
parameters: its launches, waits and copies are the verbs that stand for what the torch program does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.engine.kernel import GraphLaunch, Kernel, Marker
from simperf.execution import Program, copy, item, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.workload.kinds import binary, matmul

__all__ = ["PROGRAMS", "play"]


def _number(at: Mapping[str, Value], name: str) -> int:
    return int(float(at[name]))


def _in_place(m: Session, elements: int, kind: str = "mul") -> Kernel:
    """An operation in place on so many numbers, whose launch is the one that t1 is measured with."""
    kernel = m.kernel(binary(kind, elements, scalar=True))
    return Kernel(kernel.name, kernel.time, kernel.demand, kernel.category)


def _chain(m: Session, at: Mapping[str, Value], marks: dict[str, float]) -> Program:
    gpu, kernel = m.gpu(), _in_place(m, _number(at, "elements"))
    for _ in range(_number(at, "n")):
        yield launch(kernel, gpu)
    marks["issued"] = m.now
    yield synchronize(gpu)


def _rounds(m: Session, at: Mapping[str, Value], marks: dict[str, float], *, end: Callable[..., Any]) -> Program:
    """Launches in rounds, each of which ends with a verb that waits."""
    gpu, kernel = m.gpu(), _in_place(m, 1, "add")
    for _ in range(_number(at, "looks")):
        for _ in range(_number(at, "n")):
            yield launch(kernel, gpu)
        yield end(gpu)
    yield synchronize(gpu)


def _graph(m: Session, at: Mapping[str, Value], marks: dict[str, float]) -> Program:
    gpu, kernel = m.gpu(), _in_place(m, _number(at, "elements"))
    graph = GraphLaunch("graph", (kernel,) * _number(at, "nodes"), gap=m.profile.graph_gap)
    for _ in range(_number(at, "n")):
        yield launch(graph, gpu)
    marks["issued"] = m.now
    yield synchronize(gpu)


def _batches(m: Session, at: Mapping[str, Value], marks: dict[str, float]) -> Program:
    gpu, side = m.gpu(), _number(at, "side")
    main, lane = gpu.stream(0), gpu.stream(1)
    gemm = at["beside"] == "gemm"
    kernel = m.kernel(matmul(side, side, k=side)) if gemm else _in_place(m, side * side)
    freed: list[Marker] = []
    for batch in range(_number(at, "batches")):
        if batch >= 2:
            yield wait(freed[batch - 2], lane)
        yield copy(m.host, gpu, nbytes=float(_number(at, "nbytes")), stream=lane, name="batch")
        copied = yield record(lane, "copied")
        yield wait(copied, main)
        for _ in range(_number(at, "n")):
            yield launch(kernel, main)
        freed.append((yield record(main, "computed")))
    yield synchronize(gpu)


def _streams(m: Session, at: Mapping[str, Value], marks: dict[str, float]) -> Program:
    gpu, side = m.gpu(), _number(at, "side")
    kernel = m.kernel(matmul(side, side, k=side))
    for lane in range(_number(at, "streams")):
        for _ in range(_number(at, "n")):
            yield launch(kernel, gpu.stream(lane))
    yield synchronize(gpu)


#: program -> generator over verbs; `marks` takes times that the program notes [s]
PROGRAMS: Mapping[str, Callable[[Session, Mapping[str, Value], dict[str, float]], Program]] = {
    "chain": _chain,
    "item": partial(_rounds, end=item),
    "wait": partial(_rounds, end=synchronize),
    "graph": _graph,
    "batches": _batches,
    "streams": _streams,
}


def play(m: Session, name: str, at: Mapping[str, Value]) -> dict[str, float]:
    """Play a program to its end.

    Parameters
    ----------
    m : Session
    name : str
        A key of `PROGRAMS`.
    at : mapping of str to Value
        Its parameters, as a point's conditions give them.

    Returns
    -------
    dict of str to float
        ``"whole"``, and what else the program notes [s].
    """
    marks: dict[str, float] = {}
    marks["whole"] = m.play(PROGRAMS[name](m, at, marks))
    return marks
