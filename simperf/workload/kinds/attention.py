"""Scaled dot-product attention, with and without the score matrix in device memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simperf.errors import InputError, Problem, nearest, refuse_removed
from simperf.workload.layer_kernels import ATTENTION_CHOOSERS, ATTENTION_LIBRARIES
from simperf.workload.op import AttentionShape, Gemm, Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, REMOVED, sizes

__all__ = ["attention", "latent_attention"]

#: in place of a library: kernels that write the score matrix to device memory and read it again
_UNFUSED = "unfused"


@OP_KINDS.register("attention")
def attention(
    batch: int,
    heads: int,
    *,
    queries: int,
    keys: int | None = None,
    head_dim: int,
    kv_heads: int | None = None,
    causal: bool = False,
    window: int = 0,
    library: str = "",
    dtype: str = "fp16",
    **removed: Any,
) -> Op:
    """Attention, forward: softmax(Q K^T / sqrt d) V for every head.

    The two products take ``4 * batch * heads * queries * keys * head_dim`` FLOP, half of it if
    `causal`; the softmax is not counted, as is the custom (T. Dao and others, FlashAttention,
    NeurIPS 2022). One kernel keeps the scores on chip and moves Q, K, V and the result once. Kernels that are not
    fused also write and read the scores and the probabilities, ``queries * keys`` values a head each.

    Parameters
    ----------
    batch, heads : int
        Sequences, and query heads of each.
    queries, keys : int
        Of one sequence; as many keys as queries unless they are given.
    head_dim : int
        Width of a head.
    kv_heads : int, optional
        Heads of keys and values, which divide `heads` (grouped-query attention); default: `heads`.
    causal : bool
        Whether a query sees no key behind it; the last query sees the last key.
    window : int
        Keys that a query sees at most (sliding window); 0 for all.
    library : str
        Whose kernel it is; empty for that of the GPU's architecture, ``"unfused"`` for kernels that write the scores.
    dtype : str
        Precision.

    Raises
    ------
    InputError
        A size that is not whole and positive, heads that do not divide, a window of scores in memory, or a library that
        is none.

    Examples
    --------
    >>> fused, unfused = (attention(1, 1, queries=1024, head_dim=64, library=one) for one in ("", "unfused"))
    >>> fused.flops == unfused.flops, (unfused.nbytes - fused.nbytes) / (1024 * 1024 * 2)
    (True, 4.0)
    >>> attention(1, 8, queries=1, keys=4096, head_dim=128, kv_heads=2).nbytes_read / 4096
    1024.5
    """
    refuse_removed("attention", removed, REMOVED["attention"])
    keys = queries if keys is None else keys
    kv_heads = heads if kv_heads is None else kv_heads
    sizes(batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim, kv_heads=kv_heads)
    _check(heads, kv_heads, window, library, (*ATTENTION_LIBRARIES, *ATTENTION_CHOOSERS, _UNFUSED))
    fused = library != _UNFUSED
    shape = AttentionShape(
        batch, heads, kv_heads, queries, keys, head_dim, head_dim, causal=causal, window=window, flash=fused
    )
    return _op(shape, dtype, library if fused else "")


@OP_KINDS.register("latent_attention")
def latent_attention(
    batch: int,
    heads: int,
    *,
    queries: int,
    keys: int | None = None,
    head_dim: int,
    value_dim: int,
    latent: int = 0,
    causal: bool = False,
    library: str = "",
    dtype: str = "fp16",
) -> Op:
    """Multi-head latent attention, forward: keys wider than values, both made of one vector a token.

    The two products take ``2 * batch * heads * queries * keys * (head_dim + value_dim)`` FLOP, half of it if `causal`.

    Parameters
    ----------
    batch, heads : int
        Sequences, and heads of each.
    queries, keys : int
        Of one sequence; as many keys as queries unless they are given.
    head_dim, value_dim : int
        Widths of a head's queries and keys, and of its values. What the first has more is rotated.
    latent : int
        Width of a token in an inference library's cache, where all heads share one vector; 0 in training, where each
        head reads keys and values of its own.
    causal : bool
        Whether a query sees no key behind it; the last query sees the last key.
    library : str
        Whose kernel it is; empty for that of the GPU's architecture.
    dtype : str
        Precision.

    Raises
    ------
    InputError
        A size that is not whole and positive.

    Examples
    --------
    >>> latent_attention(1, 4, queries=8, head_dim=192, value_dim=128).flops == 2 * 4 * 8 * 8 * (192 + 128)
    True
    """
    keys = queries if keys is None else keys
    sizes(batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim, value_dim=value_dim)
    if isinstance(latent, bool) or not isinstance(latent, int) or latent < 0:
        raise InputError(Problem("must be a whole number, 0 or more", key="latent", value=repr(latent)))
    _check(heads, heads, 0, library, (*ATTENTION_LIBRARIES, *ATTENTION_CHOOSERS))
    shape = AttentionShape(batch, heads, heads, queries, keys, head_dim, value_dim, causal=causal, latent=latent)
    return _op(shape, dtype, library)


def _op(shape: AttentionShape, dtype: str, library: str) -> Op:
    """Count arithmetic and traffic of attention."""
    size, instances = element_size(dtype), shape.batch * shape.heads
    scores = float(instances * shape.queries * shape.keys)
    seen = _seen(shape.queries, shape.keys, causal=shape.causal, window=shape.window)
    spilled = 0.0 if shape.flash else 2.0 * size * scores
    read = instances * shape.head_dim * shape.queries
    read += shape.batch * shape.kv_heads * (shape.head_dim + shape.value_dim) * shape.keys
    made = instances * shape.value_dim * shape.queries
    return Op(
        name="attention",
        kind="attention",
        flops=2.0 * scores * (shape.head_dim + shape.value_dim) * seen,
        nbytes_read=float(size * read) + spilled,
        nbytes_written=float(size * made) + spilled,
        dtype=dtype,
        family="attention",
        holds=float(size * made) + spilled,
        elements=float(made),
        gemm=Gemm(instances, shape.queries, shape.value_dim, 2 * shape.keys),
        attention=shape,
        library=library,
    )


def _check(heads: int, kv_heads: int, window: int, library: str, libraries: Sequence[str]) -> None:
    """Refuse what no kernel has."""
    problems = []
    if heads % kv_heads:
        message = f"must divide the query heads, of which there are {heads}"
        problems.append(Problem(message, key="kv_heads", value=repr(kv_heads), expected="a divisor of it"))
    if isinstance(window, bool) or not isinstance(window, int) or window < 0:
        problems.append(Problem("must be a whole number, 0 or more", key="window", value=repr(window)))
    elif window and library == _UNFUSED:
        message = "needs a kernel that keeps the scores on chip"
        problems.append(Problem(message, key="window", value=repr(window), expected="no library, or that of a kernel"))
    if library and library not in libraries:
        message = f"no library of attention kernels{nearest(library, libraries)}"
        problems.append(Problem(message, key="library", value=repr(library), expected=", ".join(libraries)))
    if problems:
        raise InputError(problems)


def _seen(queries: int, keys: int, *, causal: bool, window: int) -> float:
    """Share of all pairs of a query and a key that a mask leaves; of a causal square, half of it by custom."""
    every = float(queries) * keys
    if not 0 < window < keys:
        if not causal:
            return 1.0
        return 0.5 if queries == keys else 1.0 - queries * (queries - 1) / 2.0 / every
    if not causal:
        return window / keys
    # the first queries see fewer keys than a window has
    first = keys - queries + 1
    rising = min(queries, max(0, window - first + 1))
    return (rising * (2 * first + rising - 1) / 2.0 + (queries - rising) * window) / every
