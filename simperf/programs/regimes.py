"""The three regimes: compute-bound, memory-bound, overhead-bound.

"Making Deep Learning Go Brrrr From First Principles" (H. He, 2022) and
"Dive into Deep Learning", section 12.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simperf.engine.device import Device
from simperf.errors import InputError, Problem
from simperf.execution import Program, launch, run, synchronize
from simperf.execution.session import Session
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.units import format_quantity
from simperf.workload import Op, OpGraph, chain, decoder, make_op
from simperf.workload.loops import timing_loop

__all__ = ["DecoderForward", "additions", "decoder_forward", "operations"]


@program("operations", events=lambda given: 2.0 * given["times"] * len(given["ops"]))
def operations(
    m: Session,
    *,
    ops: list[dict[str, Any]] = [{"op": "cos", "elements": 1_000_000}, {"op": "cos", "elements": 1_000_000}],
    times: Count = 1,
    copies: int = 0,
    gpu: int = 0,
) -> Program:
    """Run operations one after the other, each reading the one before, on one GPU.

    Parameters
    ----------
    ops : list of tables
        operations by type and shape, such as {op = "matmul", m = 4000, n = 4000, k = 4000}
    times : int
        repetitions of the whole chain
    copies : int
        weights that the operations go round, as a short timing loop does, so that small ones stay in the L2 and the
        clock does not fall; 0 is a long run, whose operands come from memory; refused where no operation is costed so
    gpu : int
        index of the GPU
    """
    device = m.gpu(gpu)
    made = [make_op(spec, key=f"program.ops[{i}]") for i, spec in enumerate(ops)]
    if copies:
        made = _looped(m, device, made, copies)
    graph = chain(made)
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


def _looped(m: Session, device: Device, ops: Sequence[Op], copies: int) -> list[Op]:
    """Operations as a timing loop has them; copies that none of them is costed by are refused."""
    found = [timing_loop(op, copies) for op in ops]
    model = m.model(device)
    if not any("cache" in model.accounts(op) for op in found):  # type: ignore[attr-defined]
        names = ", ".join(dict.fromkeys(op.name for op in ops))
        message = f"copies change nothing: no operand of {names} is costed as in the L2 on {device.name}"
        expected = "0; or products, attention on chip or experts, where the catalogue has constants of them by shape"
        raise InputError(Problem(message, key="copies", value=str(copies), expected=expected))
    return found


@program("additions", events=lambda given: 2.0 * given["n"])
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


@dataclass(frozen=True, slots=True)
class DecoderForward:
    """Forward passes of a decoder-only transformer.

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

    layers: Count = 16
    width: Count = 2048
    heads: Count = 32
    kv_heads: Count = 8
    hidden: Count = 8192
    vocabulary: Count = 128256
    batch: Count = 1
    sequence: Count = 512
    dtype: str = "bf16"
    passes: Count = 20

    def graph(self) -> OpGraph:
        """The operations of one pass."""
        shape = {key: getattr(self, key) for key in ("heads", "kv_heads", "hidden", "vocabulary", "batch", "sequence")}
        return decoder(self.layers, self.width, **shape, dtype=self.dtype)


@program("decoder-forward", events=lambda given: 20.0 * (given["passes"] + 1) * given["layers"])
def decoder_forward(m: Session, options: DecoderForward) -> Program:
    """Run the forward pass of a decoder-only transformer again and again; the first pass is not counted."""
    device = m.gpu()
    net = m.module(options.graph(), device, name="decoder")
    yield run(net, device)
    yield synchronize(device)
    began = m.now
    for _ in range(options.passes):
        yield run(net, device)
        yield synchronize(device)
    m.work("tokens", (options.passes + 1) * options.batch * options.sequence)
    m.metric("time per pass", (m.now - began) / options.passes, "s")
    m.metric("kernels per pass", len(net.kernels(fused=m.mode.fuses)))
    m.metric("device time per pass", sum(kernel.time for kernel in net.kernels(fused=m.mode.fuses)), "s")
