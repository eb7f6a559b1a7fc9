"""Times of operations on a CPU from fitted constants: threads, caches, and the shapes of convolutions.

A GPU runs every kernel on all of itself; a CPU runs small ones on one core, because starting the others costs more
than they would save, and its caches hold what large ones read. These forms take scalars or arrays; the fit and
`simperf.cost.FittedRoofline` share them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.step import TrainingStep

__all__ = [
    "COLD",
    "GRAIN",
    "LATE",
    "amount",
    "as_run",
    "attention_time",
    "conv_shape",
    "conv_time",
    "late_time",
    "processor_time",
    "product_time",
    "spread_time",
    "step_as_run",
    "window",
]

#: elements from which an operation is spread over threads (at::internal::GRAIN_SIZE of PyTorch)
GRAIN = 32768
#: ends the kind of an operation whose operands are in no cache
COLD = "@cold"
#: constants of calls that come late, the same for all kinds: see `late_time`
LATE = ("late", "late_at")
#: channels and filters that oneDNN lays side by side for AVX-512
BLOCK = 16
#: exponent with which traffic goes over from a cache to memory: between twice and half the capacity
_SPILL = 3.0
#: order of the norm by which two things that work beside each other are joined: 1 adds, infinity takes the slower
_BESIDE = 3.0
#: side of the window and stride, the usual ones first
_WINDOWS = ((1, 1), (3, 1), (3, 2), (1, 2), (5, 1), (7, 2), (7, 1), (5, 2), (11, 4), (11, 1))


def amount(op: Op) -> float:
    """Elements by which the decision about threads is made: of the result, or of what is reduced."""
    read = op.nbytes_read / element_size(op.dtype)
    return max(op.elements, read if op.family == "reduction" else 0.0)


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


def processor_time(op: Op, constants: Mapping[str, float]) -> float:
    """Time of an operation from the constants that were fitted for its kind [s]."""
    known = {key: value for key, value in constants.items() if key not in ("processor", *LATE)}
    late = late_time(op.since, **{key: constants[key] for key in LATE if key in constants})
    return _alone(op, known) + float(late)


def late_time(since: Any, *, late: float = 0.0, late_at: float = math.inf) -> Any:
    """What a call costs more than in a loop if much else went through the caches since the last one of its kind [s].

    Parameters
    ----------
    since : float or ndarray
        What did [B].
    late : float
        Of a call whose code, and what the library keeps about it, is in no cache [s].
    late_at : float
        Where half of that is paid [B].

    Examples
    --------
    >>> round(float(late_time(3e7, late=4e-5, late_at=3e7)) * 1e6, 3)
    20.0
    """
    return late * _spilled(since, late_at) if late else 0.0


def _alone(op: Op, known: Mapping[str, float]) -> float:
    cold = op.kind.endswith(COLD)
    if op.family == "conv":
        return float(conv_time(op.flops, op.nbytes, *conv_shape(op), cold=cold, **known))
    if op.family == "attention" and op.gemm is not None:
        scores = float(op.gemm.batch) * op.gemm.m * op.gemm.k
        return float(attention_time(scores, op.gemm.n, **known))
    if op.gemm is not None:
        gemm = op.gemm
        return float(product_time(op.flops, gemm.m, gemm.n, gemm.k, nbytes=op.nbytes, cold=cold, **known))
    return float(spread_time(op.nbytes, amount(op), cold=cold, **known))


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
    for op in listed:
        if op.kind == "bias" or (op.kind == "sum" and summed.intersection(op.inputs)):
            continue
        found.append(replace(op, kind=f"{op.kind}:dropout") if dropout and op.family == "attention" else op)
    return tuple(_late(tuple(_chilled(found, cache))))


def step_as_run(step: TrainingStep, *, cache: float = math.inf) -> dict[str, tuple[Op, ...]]:
    """The ``forward``, ``backward`` and ``update`` of a traced step as `as_run` has them."""
    parts: dict[str, list[Op]] = {"forward": [], "backward": [], "update": []}
    places = {op.name: part for part in parts for op in getattr(step, part)}
    for op in as_run(step.ops, cache=cache):
        parts[places[op.name]].append(op)
    return {part: tuple(ops) for part, ops in parts.items()}


def _chilled(ops: Sequence[Op], cache: float) -> Iterator[Op]:
    """Mark operations most of whose operands were last touched more than a cache ago.

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
        far = [tensor for tensor in op.inputs if now - touched.get(tensor, now - whole) > cache]
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


def _spilled(nbytes: Any, capacity: float) -> Any:
    """Share of the traffic that comes from memory [1]."""
    if capacity <= 0:
        return np.ones_like(np.asarray(nbytes, dtype=float))
    return 1.0 / (1.0 + (capacity / np.maximum(nbytes, 1.0)) ** _SPILL)


def spread_time(
    nbytes: Any,
    elements: Any,
    *,
    overhead: float,
    serial: float,
    fork: float,
    cached: float,
    memory: float = math.inf,
    capacity: float = 0.0,
    far: float = 0.0,
    chill: float = 0.0,
    cold: Any = False,
) -> Any:
    """Time of an operation on elements or rows [s].

    One core: ``overhead + nbytes / serial``. From `GRAIN` elements on all threads: ``overhead + fork + nbytes *
    slower(1 / cached, s / memory)``, where s, the share that comes from memory, rises around `capacity`. The memory
    works beside the cores, so that the slower one holds, with a round corner (the norm of order `_BESIDE`); and it is
    one memory for all kinds of operations, or nearly so.

    Parameters
    ----------
    nbytes : float or ndarray
        traffic [B]
    elements : float or ndarray
        As `amount` has them.
    overhead, fork : float
        Fixed time of a call, and of starting the threads [s].
    serial, cached : float
        Rates of one core, and of all from the caches [B/s].
    memory : float
        rate of the memory [B/s]
    capacity : float
        Traffic of which half no longer fits the caches [B].
    far : float
        That rate where the operands are in no cache, but the result takes the place of an earlier one; 0: as `memory`
        [B/s].
    chill : float
        Until the first of such operands is there [s].
    cold : bool or ndarray
        Whether the operands are in no cache.

    Examples
    --------
    >>> constants = dict(overhead=1e-6, serial=1e9, fork=2e-6, cached=2e9, memory=1e9, capacity=1e9)
    >>> [round(float(spread_time(*sizes, **constants)) * 1e6, 3) for sizes in ((1e3, 100), (2e6, 1e6))]
    [2.0, 1003.0]
    """
    cold = np.asarray(cold, dtype=bool)
    away = np.where(cold, 1.0 / (far or memory), _spilled(nbytes, capacity) / memory)
    small = nbytes * _slower(1.0 / serial, np.where(cold, away, 0.0))
    spread = fork + nbytes * _slower(1.0 / cached, away)
    return overhead + np.where(cold, chill, 0.0) + np.where(np.asarray(elements) <= GRAIN, small, spread)


def product_time(
    flops: Any,
    m: Any,
    n: Any,
    k: Any,
    *,
    overhead: float,
    rate: float,
    half_m: float = 0.0,
    half_n: float = 0.0,
    half_k: float = 0.0,
    odd: float = 0.0,
    nbytes: Any = 0.0,
    memory: float = math.inf,
    cold: Any = False,
) -> Any:
    """Time of a matrix product [s].

    ``overhead + flops / rate (1 + half_m/m + half_n/n + half_k/k) (1 + odd)``: packing the operands and writing the
    result cost a time a face of the cuboid m x n x k; `odd` is lost where rows are no multiples of a cache line.
    Operands that no cache holds come on top of that, ``nbytes / memory``.

    Examples
    --------
    >>> product_time(2e9, 1000, 1000, 1000, overhead=0.0, rate=1e12, half_k=1000.0)
    0.004
    """
    ragged = (np.asarray(n) % 16 > 0) | (np.asarray(k) % 16 > 0)
    time = overhead + flops / rate * (1.0 + half_m / m + half_n / n + half_k / k) * (1.0 + odd * ragged)
    time = time + np.where(cold, nbytes / memory, 0.0)
    return time if np.ndim(time) else float(time)


def attention_time(scores: Any, width: Any, *, overhead: float, rate: float, scored: float) -> Any:
    """Time of attention: its products, and what each score costs beside them (softmax, dropout, mask) [s].

    A CPU's kernels leave out no half of a causal mask: ``overhead + 2 scores width / rate + scores / scored``.

    Parameters
    ----------
    scores : float or ndarray
        Scores times the number of products.
    width : float or ndarray
        Of a head.
    overhead : float
        Fixed time of a call [s].
    rate : float
        Of the products [FLOP/s].
    scored : float
        Scores in a second [1/s].
    """
    return overhead + 2.0 * scores * width / rate + scores / scored


def conv_time(
    flops: Any,
    nbytes: Any,
    channels: Any,
    filters: Any,
    pixels: Any,
    side: Any,
    stride: Any,
    *,
    overhead: float,
    rate: float,
    half_k: float = 0.0,
    half_f: float = 0.0,
    half_p: float = 0.0,
    strided: float = 0.0,
    cached: float = math.inf,
    memory: float = math.inf,
    capacity: float = 0.0,
    far: float = math.inf,
    cold: Any = False,
) -> Any:
    """Time of a convolution or of one of its gradients [s].

    ``overhead + flops / (rate fill) (1 + half_k / (C w^2) + half_f/F + half_p/P)``, and beside it the traffic for
    reordering the images into blocks of channels and back, ``nbytes (1 + strided [s > 1])`` from caches or memory.
    `fill` is the share of those blocks, of `BLOCK` channels and filters, that is no padding (oneDNN, "Understanding
    Memory Formats"); images of fewer channels than half a block are read as they are.

    Parameters
    ----------
    flops, nbytes : float or ndarray
        work [FLOP], traffic [B]
    channels, filters, pixels, side, stride : float or ndarray
        C, F, P (of the results of all images), w and s.
    overhead : float
        Fixed time of a call [s].
    rate : float
        Reached by large ones [FLOP/s].
    half_k, half_f, half_p : float
        Values a result, filters and pixels at which half the rate is reached, the others being large.
    strided : float
        Relative loss of reordering with a stride, whose gradient fills what was left out with zeros.
    cached, memory : float
        Rates of reordering [B/s].
    capacity : float
        Traffic of which half no longer fits the caches [B].
    far : float
        Rate of reordering at best where no cache holds the operands [B/s].
    cold : bool or ndarray
        Whether they are in none.
    """
    share = _spilled(nbytes, capacity)
    each = share / memory + (1.0 - share) / cached
    reorder = nbytes * (1.0 + strided * (np.asarray(stride) > 1)) * np.where(cold, np.maximum(each, 1.0 / far), each)
    loss = 1.0 + half_k / (channels * np.square(side)) + half_f / filters + half_p / pixels
    fill = _filled(filters) * np.where(np.asarray(channels) < BLOCK / 2, 1.0, _filled(channels))
    return overhead + flops / (rate * fill) * loss + reorder


def _slower(one: Any, other: Any) -> Any:
    return (one**_BESIDE + other**_BESIDE) ** (1.0 / _BESIDE)


def _filled(channels: Any) -> Any:
    return channels / (BLOCK * np.ceil(np.asarray(channels) / BLOCK))
