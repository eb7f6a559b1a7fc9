"""The three regimes: compute-bound, memory-bound, overhead-bound.

"Making Deep Learning Go Brrrr From First Principles" (H. He, 2022) and
"Dive into Deep Learning", section 12.4.
"""

from __future__ import annotations

from typing import Any

from simperf.execution import Program, run, synchronize
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.units import format_quantity
from simperf.workload import chain, make_op

__all__ = ["operations"]


@program("operations")
def operations(
    m: Session,
    *,
    ops: list[dict[str, Any]] = [{"op": "cos", "elements": 1_000_000}, {"op": "cos", "elements": 1_000_000}],
    times: int = 1,
    gpu: int = 0,
) -> Program:
    """Run operations one after the other, each reading the one before, on one GPU.

    Parameters
    ----------
    ops : list of tables
        operations by type and shape, such as {op = "matmul", m = 4000, n = 4000, k = 4000}
    times : int
        repetitions of the whole chain
    gpu : int
        index of the GPU
    """
    device = m.gpu(gpu)
    graph = chain(make_op(spec, key=f"program.ops[{i}]") for i, spec in enumerate(ops))
    net = m.module(graph, device, name="operations")
    for _ in range(times):
        yield run(net, device)
    yield synchronize(device)
    ran = net.operations(fused=m.mode.fuses)
    m.metric("FLOP", ran.flops * times, "FLOP")
    m.metric("bytes moved", ran.nbytes * times, "B")
    m.metric("achieved", ran.flops * times / m.now if m.now else 0.0, "FLOP/s")
    m.metric("bandwidth used", ran.nbytes * times / m.now if m.now else 0.0, "B/s")
    m.metric("time per repetition", m.now / times, "s")
    model = m.model(device)
    for op in ran.ops:
        cost = model.cost(op)
        m.notes.append(f"{op.name} is {cost.regime}-bound: {format_quantity(cost.time, 's')} alone")
