"""Fusion: chains of elementwise operations become one kernel that keeps what is between on chip."""

from __future__ import annotations

from collections.abc import Iterable

from simperf.workload.graph import OpGraph
from simperf.workload.op import Op

__all__ = ["fuse"]

_ANCHORS = ("gemm", "conv")


def fuse(graph: OpGraph, *, keep: Iterable[str] = (), epilogues: bool = True) -> OpGraph:
    """Merge elementwise operations with what feeds them, where nobody else needs the tensor between.

    An elementwise operation joins the kernel that makes its input if that kernel is elementwise
    itself or, with `epilogues`, a matrix product or convolution (one at most in a kernel), if the
    tensor has as many elements as the result, and if nobody else reads it. The fused operation has the summed FLOPs,
    reads what the group reads from outside (each tensor once) and writes only the last result.

    Parameters
    ----------
    graph : OpGraph
    keep : iterable of str
        Tensors that must stay in memory, because something outside the graph (a backward pass) reads them.
    epilogues : bool
        Whether elementwise operations may join a matrix product or convolution.

    Returns
    -------
    OpGraph
        With the same inputs and outputs.

    Examples
    --------
    >>> from simperf.workload.builders import cos_cos
    >>> before = cos_cos(1000)
    >>> after = fuse(before)
    >>> before.nbytes / 4000, after.nbytes / 4000, before.flops == after.flops
    (4.0, 2.0, True)
    """
    kept = frozenset(keep)
    made, read = graph.producers, graph.consumers
    groups: dict[int, list[int]] = {}  # last operation -> its group, in program order
    for i, op in enumerate(graph.ops):
        group = [i]
        if op.family == "elementwise":
            for tensor in dict.fromkeys(op.inputs):
                tail = made.get(tensor)
                if tail is None or tensor in kept or len(read[tensor]) > 1 or tail not in groups:
                    continue
                source = graph.ops[tail]
                if len(source.outputs) != 1 or source.elements != op.elements:
                    continue
                anchors = [j for j in (*group, *groups[tail]) if graph.ops[j].family != "elementwise"]
                if len(anchors) > 1 or any(not epilogues or not _anchor(graph.ops[j]) for j in anchors):
                    continue
                group = sorted(group + groups.pop(tail))
        groups[i] = group
    fused = [_merge([graph.ops[j] for j in groups[i]]) for i in sorted(groups)]
    return OpGraph(fused, graph.inputs)


def _anchor(op: Op) -> bool:
    """Whether elementwise operations may join `op`'s kernel; experts are several kernels of a library."""
    return op.family in _ANCHORS and op.experts is None


def _merge(ops: list[Op]) -> Op:
    """One operation that does the work of `ops`, the last of which makes the result."""
    if len(ops) == 1:
        return ops[0]
    last = ops[-1]
    anchor = next((op for op in ops if op.family != "elementwise"), None)
    inside = {tensor: op for op in ops[:-1] for tensor in op.outputs}
    external: dict[str, float] = {}
    loose = 0.0  # traffic that belongs to no named tensor
    for op in ops:
        internal = sum(inside[t].nbytes_written for t in op.inputs if t in inside)
        rest = max(0.0, op.nbytes_read - internal)
        named = [t for t in op.inputs if t not in inside]
        if op is anchor or not named:
            loose += rest
            external.update(dict.fromkeys(named, 0.0))
            continue
        for tensor in named:
            external[tensor] = max(external.get(tensor, 0.0), rest / len(named))
    return Op(
        name="+".join(op.name for op in ops),
        kind="fused",
        flops=sum(op.flops for op in ops),
        nbytes_read=loose + sum(external.values()),
        nbytes_written=last.nbytes_written,
        dtype=anchor.dtype if anchor else last.dtype,
        family=anchor.family if anchor else "elementwise",
        inputs=tuple(external),
        outputs=last.outputs,
        holds=last.holds,
        elements=last.elements,
        gemm=anchor.gemm if anchor else None,
    )
