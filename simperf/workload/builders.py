"""Small graphs that lessons and tests start from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from simperf.errors import InputError, Problem
from simperf.workload.graph import OpGraph
from simperf.workload.kinds.dense import linear
from simperf.workload.kinds.pointwise import binary, unary
from simperf.workload.op import Op

__all__ = ["chain", "cos_cos", "mlp", "product_plus_two"]


def chain(ops: Iterable[Op], *, source: str = "x") -> OpGraph:
    """Wire operations one after the other, the first reading `source`.

    Operations that share a name get numbers.
    """
    wired: list[Op] = []
    seen: dict[str, int] = {}
    tensor = source
    for op in ops:
        count = seen[op.name] = seen.get(op.name, 0) + 1
        name = op.name if count == 1 else f"{op.name}{count}"
        wired.append(replace(op, name=name, inputs=(tensor,), outputs=(f"{name}.out",)))
        tensor = f"{name}.out"
    return OpGraph(wired, (source,))


def cos_cos(elements: int, *, dtype: str = "fp32") -> OpGraph:
    """x.cos().cos(), the example of "Making Deep Learning Go Brrrr": four arrays moved, two if fused."""
    return chain([unary("cos", elements, dtype=dtype), unary("cos", elements, dtype=dtype)])


def product_plus_two(elements: int, *, dtype: str = "fp32") -> OpGraph:
    """Build z = x * y + 2, the dependency graph of section 12.2 of "Dive into Deep Learning"."""
    product = binary("mul", elements, dtype=dtype).named("xy", ("x", "y"))
    return OpGraph([product, binary("add", elements, scalar=True, dtype=dtype).named("z", ("xy",))], ("x", "y"))


def mlp(sizes: Sequence[int], batch: int, *, activation: str = "relu", dtype: str = "fp32") -> OpGraph:
    """Multilayer perceptron, forward: linear layers of these widths with an activation between.

    Parameters
    ----------
    sizes : sequence of int
        Widths, input first; two at least.
    batch : int
        Rows.
    """
    if len(sizes) < 2:
        raise InputError(Problem("a perceptron has two widths at least, its input's and its output's", key="sizes"))
    ops: list[Op] = []
    tensor = "x"
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes), 1):
        layer = linear(batch, fan_in, fan_out=fan_out, dtype=dtype)
        ops.append(layer.named(f"fc{i}", (tensor, f"w{i}", f"b{i}")))
        tensor = f"fc{i}"
        if i < len(sizes) - 1:
            ops.append(unary(activation, batch * fan_out, dtype=dtype).named(f"{activation}{i}", (tensor,)))
            tensor = f"{activation}{i}"
    weights = [name for i in range(1, len(sizes)) for name in (f"w{i}", f"b{i}")]
    return OpGraph(ops, ("x", *weights), layers=len(ops) + 1)  # each of them, and the container
