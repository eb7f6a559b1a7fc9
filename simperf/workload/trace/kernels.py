"""From one call of torch to the kernels that a GPU runs for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simperf.workload.trace.kinds import Kind, kind_of

__all__ = ["Touch", "TracedKernel", "kernels"]


@dataclass(frozen=True, slots=True)
class Touch:
    """A tensor that a kernel reads or writes: different elements, or as many as given, in so many passes."""

    tensor: Any
    elements: int = -1
    passes: int = 1


@dataclass(frozen=True, slots=True)
class TracedKernel:
    """One kernel: see `simperf.workload.traced.TracedOp`, with tensors of torch in place of numbers."""

    kind: str
    family: str
    flops: float
    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    gemm: tuple[int, ...] = ()
    known: bool = True


def _count(tensor: Any) -> int:
    return math.prod(tensor.shape)


def _touches(tensors: Sequence[Any]) -> tuple[Touch, ...]:
    return tuple(Touch(tensor) for tensor in tensors if tensor is not None)


def _gemm(
    kind: str, size: tuple[int, int, int, int], reads: Sequence[Any], out: Any, *, extra: int = 0
) -> TracedKernel:
    batch, m, n, k = size
    return TracedKernel(kind, "gemm", 2 * batch * m * n * k + extra, _touches(reads), (Touch(out),), size)


def _mm(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    a, b = args[0], args[1]
    return [_gemm("matmul", (1, a.shape[0], b.shape[1], a.shape[1]), (a, b), out)]


def _addmm(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    bias, a, b = args[:3]
    return [_gemm("linear", (1, a.shape[0], b.shape[1], a.shape[1]), (a, b, bias), out, extra=_count(out))]


def _bmm(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    a, b = args[0], args[1]
    return [_gemm("bmm", (a.shape[0], a.shape[1], b.shape[2], a.shape[2]), (a, b), out)]


def _baddbmm(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    c, a, b = args[:3]
    return [_gemm("bmm", (a.shape[0], a.shape[1], b.shape[2], a.shape[2]), (a, b, c), out, extra=_count(out))]


def _mv(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    a, v = args[0], args[1]
    rows = a.shape[0] if len(a.shape) == 2 else 1
    return [_gemm("matmul", (1, rows, 1, a.shape[-1]), (a, v), out)]


def _convolution(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Convolve, then add the bias in a kernel of its own, as cuDNN's eager path does."""
    x, weight, bias = args[:3]
    transposed, groups = args[6], args[8]
    size = _conv_size(x, weight, out, transposed=transposed, groups=groups)
    main = _conv("conv2d", size, (x, weight), out)
    if bias is None:
        return [main]
    add = TracedKernel("bias", "elementwise", _count(out), (Touch(out), Touch(bias)), (Touch(out),))
    return [main, add]


def _conv_size(x: Any, weight: Any, out: Any, *, transposed: bool, groups: int) -> tuple[int, int, int, int]:
    """The implicit matrix product: a row a pixel, a column a filter."""
    window = math.prod(weight.shape[2:])
    pixels = x if transposed else out
    rows = pixels.shape[0] * math.prod(pixels.shape[2:])
    if transposed:
        return (groups, rows, weight.shape[1] * window, weight.shape[0] // groups)
    return (groups, rows, weight.shape[0] // groups, weight.shape[1] * window)


def _conv(kind: str, size: tuple[int, int, int, int], reads: Sequence[Any], out: Any) -> TracedKernel:
    batch, m, n, k = size
    return TracedKernel(kind, "conv", 2 * batch * m * n * k, _touches(reads), (Touch(out),), size)


def _convolution_backward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Gradients of input, weight and bias: as much arithmetic each of the first two as forward."""
    grad, x, weight = args[:3]
    transposed, groups, mask = args[7], args[9], args[10]
    g, m, n, k = _conv_size(x, weight, grad, transposed=transposed, groups=groups)
    found = []
    if mask[0]:
        found.append(_conv("conv2d_dgrad", (g, m, k, n), (grad, weight), out[0]))
    if mask[1]:
        found.append(_conv("conv2d_wgrad", (g, n, k, m), (grad, x), out[1]))
    if mask[2]:
        found.append(TracedKernel("sum", "reduction", _count(grad), (Touch(grad),), (Touch(out[2]),)))
    return found


def _attention(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Two products, half of them if causal; rows of scores stay on chip."""
    q, k, v = args[:3]
    causal = bool(args[4]) if len(args) > 4 else False
    heads, queries, keys, width = math.prod(q.shape[:-2]), q.shape[-2], k.shape[-2], q.shape[-1]
    flops = 4 * heads * queries * keys * width // (2 if causal else 1)
    writes = (Touch(out[0]), Touch(out[1]))
    return [
        TracedKernel("attention", "attention", flops, _touches((q, k, v)), writes, (heads, queries, width, 2 * keys))
    ]


def _attention_backward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Five products where forward has two, because the scores are computed again (FlashAttention, section 3)."""
    grad, q, k, v, result, statistics = args[:6]
    causal = bool(args[11])
    heads, queries, keys, width = math.prod(q.shape[:-2]), q.shape[-2], k.shape[-2], q.shape[-1]
    flops = 10 * heads * queries * keys * width // (2 if causal else 1)
    reads = _touches((grad, q, k, v, result, statistics))
    size = (heads, queries, width, 5 * keys)
    return [TracedKernel("attention_backward", "attention", flops, reads, _touches(out[:3]), size)]


def _nll(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Picks one log-probability a row: the others are not read."""
    rows = _count(args[1])
    reads = (Touch(args[0], rows), Touch(args[1]))
    return [TracedKernel("nll_loss", "reduction", rows, reads, _touches(out))]


def _nll_backward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Writes the whole array, nearly all zeros; the forward pass's operand only lends its shape."""
    grad, _, target = args[:3]
    return [TracedKernel("nll_loss_backward", "elementwise", _count(target), _touches((grad, target)), (Touch(out),))]


def _embedding(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Look up one row a token, of however large a table."""
    table, tokens = args[0], args[1]
    return [TracedKernel("embedding", "copy", 0, (Touch(table, _count(out)), Touch(tokens)), (Touch(out),))]


def _pool(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    window = (args[1],) if isinstance(args[1], int) else tuple(args[1])
    area = math.prod(window) if len(window) > 1 else window[0] ** 2
    first = out[0] if isinstance(out, tuple | list) else out
    kind = "max_pool2d" if isinstance(out, tuple | list) else "avg_pool2d"
    writes = _touches(out if isinstance(out, tuple | list) else (out,))
    return [TracedKernel(kind, "reduction", _count(first) * area, (Touch(args[0]),), writes)]


def _max_pool_backward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Read the gradients and where each maximum came from; the input only lends its shape."""
    grad, indices = args[0], args[-1]
    return [TracedKernel("max_pool2d_backward", "reduction", _count(grad), _touches((grad, indices)), (Touch(out),))]


def _norm_backward(kind: str) -> Callable[[Sequence[Any], Any], list[TracedKernel]]:
    each = 14 if kind.startswith(("layer", "group")) else 11

    def build(args: Sequence[Any], out: Any) -> list[TracedKernel]:
        large = (Touch(args[0], passes=2), Touch(args[1], passes=2))
        rest = [t for t in args[2:] if hasattr(t, "shape")]
        return [TracedKernel(kind, "normalization", each * _count(args[0]), (*large, *_touches(rest)), _touches(out))]

    return build


_SPECIAL: Mapping[str, Callable[[Sequence[Any], Any], list[TracedKernel]]] = {
    "mm": _mm,
    "addmm": _addmm,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "mv": _mv,
    "dot": _mv,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_flash_attention_backward": _attention_backward,
    "nll_loss_forward": _nll,
    "nll_loss_backward": _nll_backward,
    "embedding": _embedding,
    "max_pool2d_with_indices": _pool,
    "avg_pool2d": _pool,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "native_layer_norm_backward": _norm_backward("layernorm_backward"),
    "native_batch_norm_backward": _norm_backward("batchnorm_backward"),
}


def kernels(
    name: str, args: Sequence[Any], *, operands: Sequence[Any], results: Sequence[Any], out: Any
) -> list[TracedKernel]:
    """Kernels of one call.

    Parameters
    ----------
    name : str
        Of the operation in torch (aten), such as ``"add_"``.
    args : sequence
        Its arguments, by position.
    operands, results : sequence of tensor
        All tensors among the arguments and the results.
    out : tensor or tuple of tensor
        What it returned.
    """
    if name in _SPECIAL:
        return _SPECIAL[name](args, out)
    kind = kind_of(name)
    known = kind is not None
    kind = kind or Kind(name.strip("_"))
    large = max((_count(t) for t in operands), default=0)
    reads = []
    for place, tensor in enumerate(operands):
        overwritten = name.endswith("_") and place == 0 and not kind.reads
        if not overwritten:
            reads.append(Touch(tensor, passes=kind.passes if _count(tensor) == large else 1))
    if kind.kind == "fill":
        reads = []
    source = operands if kind.per == "in" and operands else results
    work = kind.flops * (_count(source[0]) if source else 0)
    return [TracedKernel(kind.kind, kind.family, work, tuple(reads), _touches(results), known=known)]
