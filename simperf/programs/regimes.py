"""The three regimes: compute-bound, memory-bound, overhead-bound.

"Making Deep Learning Go Brrrr From First Principles" (H. He, 2022) and
"Dive into Deep Learning", section 12.4.
"""

from __future__ import annotations

from typing import Any

from simperf.execution import Program, launch, run, synchronize
from simperf.execution.session import Session
from simperf.programs.registry import Count, program
from simperf.units import format_quantity
from simperf.workload import chain, decoder, make_op

__all__ = ["additions", "decoder_forward", "operations"]


@program("operations")
def operations(
    m: Session,
    *,
    ops: list[dict[str, Any]] = [{"op": "cos", "elements": 1_000_000}, {"op": "cos", "elements": 1_000_000}],
    times: Count = 1,
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
    m.work("arithmetic", graph.flops * times, "FLOP")
    m.metric("FLOP", ran.flops * times, "FLOP")
    m.metric("bytes moved", ran.nbytes * times, "B")
    m.metric("achieved", ran.flops * times / m.now if m.now else 0.0, "FLOP/s")
    m.metric("bandwidth used", ran.nbytes * times / m.now if m.now else 0.0, "B/s")
    m.metric("time per repetition", m.now / times, "s")
    model = m.model(device)
    for op in ran.ops:
        cost = model.cost(op)
        m.notes.append(f"{op.name} is {cost.regime}-bound: {format_quantity(cost.time, 's')} alone")


@program("additions")
def additions(m: Session, *, n: Count = 10_000, elements: Count = 2) -> Program:
    """Add one to an array, n times (section 12.2.2); each operation needs the one before.

    Parameters
    ----------
    n : int
        operations
    elements : int
        length of the array
    """
    device = m.gpu()
    kernel = m.kernel(make_op({"op": "add", "elements": elements, "scalar": True}), device)
    for _ in range(n):
        yield launch(kernel, device)
    yield synchronize(device)
    m.work("additions", n * elements)


@program("decoder-forward")
def decoder_forward(
    m: Session,
    *,
    layers: Count = 16,
    width: Count = 2048,
    heads: Count = 32,
    kv_heads: Count = 8,
    hidden: Count = 8192,
    vocabulary: Count = 128256,
    batch: Count = 1,
    sequence: Count = 512,
    dtype: str = "bf16",
    passes: Count = 20,
) -> Program:
    """Run the forward pass of a decoder-only transformer again and again; the first pass is not counted.

    Parameters
    ----------
    layers : int
        blocks
    width : int
        width of the residual stream
    heads : int
        query heads
    kv_heads : int
        key and value heads
    hidden : int
        width of the gated MLP
    vocabulary : int
        tokens
    batch : int
        sequences
    sequence : int
        tokens of a sequence
    dtype : str
        precision
    passes : int
        passes that are counted
    """
    device = m.gpu()
    shape = {"heads": heads, "kv_heads": kv_heads, "hidden": hidden, "vocabulary": vocabulary}
    net = m.module(decoder(layers, width, **shape, batch=batch, sequence=sequence, dtype=dtype), device, name="decoder")
    yield run(net, device)
    yield synchronize(device)
    began = m.now
    for _ in range(passes):
        yield run(net, device)
        yield synchronize(device)
    m.work("tokens", (passes + 1) * batch * sequence)
    m.metric("time per pass", (m.now - began) / passes, "s")
    m.metric("kernels per pass", len(net.kernels(fused=m.mode.fuses)))
    m.metric("device time per pass", sum(kernel.time for kernel in net.kernels(fused=m.mode.fuses)), "s")
