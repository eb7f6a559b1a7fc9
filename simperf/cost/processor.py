"""Times of operations on a CPU from fitted constants: what an operation, and a step, is for the forms of `cores`.

The fit and `simperf.cost.FittedRoofline` share both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from simperf.cost.cores import (
    ConvConstants,
    ProductConstants,
    SpreadConstants,
    attention_time,
    conv_time,
    late_time,
    product_time,
    spread_time,
)
from simperf.workload.op import Op
from simperf.workload.precision import element_size

if TYPE_CHECKING:
    from simperf.workload.step import TrainingStep

__all__ = [
    "COLD",
    "amount",
    "as_run",
    "attention_work",
    "conv_shape",
    "processor_time",
    "row_count",
    "step_as_run",
    "window",
]

#: ends the kind of an operation whose operands are in no cache
COLD = "@cold"
#: constants of calls that come late, the same for all kinds: see `late_time`
_LATE = ("late", "late_at")
#: constant of what takes runs longer on average than the middle one of a few, the same for all kinds
_LONGER = "longer"
#: queries from which attention takes blocks of so many, and keys of a block
_QUERIES, _KEYS = ((768, 256), (192, 64), (0, 32)), 512
#: side of the window and stride, the usual ones first
_WINDOWS = ((1, 1), (3, 1), (3, 2), (1, 2), (5, 1), (7, 2), (7, 1), (5, 2), (11, 4), (11, 1))


def amount(op: Op) -> float:
    """Elements by which the decision about threads is made: of the result, or of what is reduced."""
    read = op.nbytes_read / element_size(op.dtype)
    return max(op.elements, read if op.family == "reduction" else 0.0)


def row_count(op: Op) -> float:
    """Rows of a layer normalisation or its gradient; 0 of others.

    The former writes mean and deviation of each row beside its result, the latter the gradients of scale and shift
    beside that of its rows.

    Examples
    --------
    >>> one = Op("y", "layernorm", elements=48.0, nbytes_written=4.0 * (48 + 2 * 6), family="normalization")
    >>> row_count(one), row_count(replace(one, kind="layernorm_backward", nbytes_written=4.0 * (48 + 2 * 8)))
    (6.0, 6.0)
    """
    beside = (op.nbytes_written / element_size(op.dtype) - op.elements) / 2.0
    kind = op.kind.removesuffix(COLD)
    if beside < 1.0 or kind not in ("layernorm", "layernorm_backward"):
        return 0.0
    return beside if kind == "layernorm" else op.elements / beside


def window(op: Op) -> tuple[int, int]:
    """Side of a convolution's window and its stride, from what it reads and computes.

    An image of P pixels that a window of side w and stride s goes over gives P / s^2 results, each of w^2 values of
    a channel: elements of the image over elements of the implicit matrix are s^2 / w^2, which tells the usual pairs
    apart.

    Examples
    --------
    >>> from simperf.workload.kinds import conv2d
    >>> window(conv2d(8, 64, filters=128, height=56, width=56, kernel=3, stride=2, padding=1))
    (3, 2)
    """
    gemm = op.gemm
    if gemm is None:
        return 1, 1
    size = element_size(op.dtype)
    kind = op.kind.removesuffix(COLD)
    if kind == "conv2d_dgrad":  # writes the image; k are the filters
        image, unrolled = op.elements, float(gemm.m) * gemm.n
    elif kind == "conv2d_wgrad":  # reads the image and the gradient; m are the filters, k the pixels
        image, unrolled = op.nbytes_read / size - float(gemm.m) * gemm.k, float(gemm.n) * gemm.k
    else:
        image, unrolled = op.nbytes_read / size - float(gemm.n) * gemm.k, float(gemm.m) * gemm.k
    if image <= 0 or unrolled <= 0:
        return 1, 1
    ratio = math.log(image / (unrolled * gemm.batch))
    return min(_WINDOWS, key=lambda pair: abs(math.log(pair[1] ** 2 / pair[0] ** 2) - ratio))


def conv_shape(op: Op) -> tuple[float, float, float, int, int]:
    """Channels, filters, pixels of all results, side of the window and stride of a convolution or its gradients."""
    side, stride = window(op)
    gemm = op.gemm
    if gemm is None:
        return 1.0, 1.0, max(op.elements, 1.0), side, stride
    filters, pixels, unrolled = {
        "conv2d_dgrad": (gemm.k, gemm.m, gemm.n),
        "conv2d_wgrad": (gemm.m, gemm.k, gemm.n),
    }.get(op.kind.removesuffix(COLD), (gemm.n, gemm.m, gemm.k))
    return unrolled / side**2, float(filters), float(pixels), side, stride


def attention_work(op: Op) -> tuple[float, float]:
    """Scores that attention works out, times its products, and the queries of a block (infinite without blocks).

    PyTorch's kernel takes blocks of 32, 64 or 256 queries and of 512 keys
    (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp), and under a causal mask leaves out only whole blocks of keys,
    so that nothing is saved up to 512. With dropout it is not used.

    Examples
    --------
    >>> from simperf.workload.op import Gemm
    >>> whole, half = (Op("y", "attention", flops=flops, gemm=Gemm(1, 1024, 64, 2048)) for flops in (2.7e8, 1.35e8))
    >>> attention_work(whole), attention_work(half)
    ((2097152.0, 256.0), (1572864.0, 256.0))
    """
    gemm = op.gemm
    if gemm is None:
        return op.elements, math.inf
    scores = float(gemm.batch) * gemm.m * gemm.k
    kind, _, way = op.kind.removesuffix(COLD).partition(":")
    if way:
        return scores, math.inf
    rows = next(size for least, size in _QUERIES if gemm.m >= least)
    if op.flops < 0.75 * 2.0 * scores * gemm.n:
        keys = gemm.k // (5 if kind == "attention_backward" else 2)  # so many products are one after the other in k
        ends = (min(start + rows, gemm.m, keys) for start in range(0, gemm.m, rows))
        scores *= sum(math.ceil(end / _KEYS) for end in ends) / (math.ceil(gemm.m / rows) * math.ceil(keys / _KEYS))
    return scores, float(rows)


def processor_time(op: Op, constants: Mapping[str, float]) -> float:
    """Time of an operation from the constants that were fitted for its kind [s].

    It is a middle reading of the operation alone, and with ``longer`` an average one: others stop all work for some
    hundredths of a second now and then, which the middle one of a few readings leaves out and a program does not.
    """
    known = {key: value for key, value in constants.items() if key not in ("processor", _LONGER, *_LATE)}
    late = late_time(op.since, **{key: constants[key] for key in _LATE if key in constants})
    return constants.get(_LONGER, 1.0) * (_alone(op, known) + float(late))


def _alone(op: Op, known: Mapping[str, float]) -> float:
    cold = op.kind.endswith(COLD)
    if op.family == "conv":
        return float(conv_time(ConvConstants(**known), op.flops, op.nbytes, *conv_shape(op), cold=cold))
    if op.family == "attention" and op.gemm is not None:
        scores, rows = attention_work(op)
        return float(attention_time(scores, op.gemm.n, rows, **known))
    if op.gemm is not None:
        gemm = op.gemm
        traffic = {"read": op.nbytes_read, "written": op.nbytes_written}
        return float(product_time(ProductConstants(**known), op.flops, gemm.m, gemm.n, gemm.k, **traffic, cold=cold))
    rows = row_count(op) if "row" in known else 0.0
    return float(spread_time(SpreadConstants(**known), op.nbytes, amount(op), rows=rows, cold=cold))


def as_run(ops: Iterable[Op], *, cache: float = math.inf) -> tuple[Op, ...]:
    """Operations of a traced step as PyTorch runs them on a CPU.

    A trace has the kernels of a GPU. On a CPU, a convolution adds its bias and sums the bias's gradient itself
    (oneDNN), and attention with dropout keeps its scores in memory, which is a kind of its own here:
    ``attention:dropout``. The kind of an operation most of whose operands come from memory ends with `COLD`; `Op.since`
    says what was touched since the last one of its kind.

    Parameters
    ----------
    ops : iterable of Op
        A whole step, in order.
    cache : float
        what the last cache holds [B]
    """
    listed = tuple(ops)
    summed = {tensor for op in listed if op.kind == "conv2d_wgrad" for tensor in op.inputs}
    dropout = any(op.kind.startswith("native_dropout") for op in listed)
    found = []
    decays = _decays(listed)
    for op in listed:
        if op.kind == "bias" or (op.kind == "sum" and summed.intersection(op.inputs)):
            continue
        if op is decays:  # beside its operands, where other sums of an update are in place
            found.append(replace(op, family="elementwise"))
        else:
            found.append(replace(op, kind=f"{op.kind}:dropout") if dropout and op.family == "attention" else op)
    return tuple(_late(tuple(_chilled(found, cache))))


def _decays(ops: Sequence[Op]) -> Op | None:
    """The sum of gradients and decay of an update, which begins with it: the gradients themselves stay as they are."""
    update = [op for op in ops if op.family == "optimizer"]
    return update[0] if len(update) > 1 and update[0].kind == "add" else None


def step_as_run(step: TrainingStep, *, cache: float = math.inf) -> dict[str, tuple[Op, ...]]:
    """The ``forward``, ``backward`` and ``update`` of a traced step as `as_run` has them."""
    parts: dict[str, list[Op]] = {"forward": [], "backward": [], "update": []}
    places = {op.name: part for part in parts for op in getattr(step, part)}
    for op in as_run(step.ops, cache=cache):
        parts[places[op.name]].append(op)
    return {part: tuple(ops) for part, ops in parts.items()}


def _chilled(ops: Sequence[Op], cache: float) -> Iterator[Op]:
    """Mark operations most of whose operands were last touched more than a cache ago.

    Of an operand that is larger than the cache, the beginning is gone when it has been touched to the end.

    Parameters
    ----------
    ops : sequence of Op
    cache : float
        [B]
    """
    whole = sum(op.nbytes for op in ops)
    touched: dict[str, float] = {}
    sizes: dict[str, float] = {}
    now = 0.0
    for op in ops:
        unknown = [tensor for tensor in op.inputs if tensor not in sizes]
        rest = op.nbytes_read - sum(sizes[tensor] for tensor in op.inputs if tensor in sizes)
        sizes.update(dict.fromkeys(unknown, max(0.0, rest) / max(1, len(unknown))))
        # what no operation of this step has touched was used a step ago
        far = [
            tensor for tensor in op.inputs if now - touched.get(tensor, now - whole) > cache or sizes[tensor] > cache
        ]
        lost, all_read = (sum(sizes[tensor] for tensor in group) for group in (far, op.inputs))
        now += op.nbytes
        sizes.update(dict.fromkeys(op.outputs, op.nbytes_written / max(1, len(op.outputs))))
        touched.update(dict.fromkeys((*op.inputs, *op.outputs), now))
        yield replace(op, kind=op.kind + COLD) if lost > 0.5 * all_read else op


def _late(ops: Sequence[Op]) -> Iterator[Op]:
    """Say of each operation what was touched since the last one of its kind, which may be that of the step before."""
    kinds = [op.kind.removesuffix(COLD) for op in ops]
    ends = list(accumulate(op.nbytes for op in ops))
    whole = ends[-1] if ends else 0.0
    last = {kind: end - whole for kind, end in zip(kinds, ends, strict=True)}
    for op, kind, end in zip(ops, kinds, ends, strict=True):
        yield replace(op, since=max(0.0, end - op.nbytes - last[kind]))
        last[kind] = end
