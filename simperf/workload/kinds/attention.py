"""Scaled dot-product attention, with and without the score matrix in device memory."""

from __future__ import annotations

from simperf.workload.op import Gemm, Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["attention"]


@OP_KINDS.register("attention")
def attention(
    batch: int,
    heads: int,
    *,
    queries: int,
    keys: int | None = None,
    head_dim: int,
    causal: bool = False,
    flash: bool = True,
    dtype: str = "fp16",
) -> Op:
    """Attention, forward: softmax(Q K^T / sqrt d) V for every head.

    The two products take ``4 * batch * heads * queries * keys * head_dim`` FLOP, half of it if
    `causal`; the softmax is not counted, as is the custom (T. Dao and others, FlashAttention,
    NeurIPS 2022). Flash attention moves Q, K, V and the result once. The naive way (``flash=False``)
    also writes and reads the scores and the probabilities, ``queries * keys`` values a head each.

    Examples
    --------
    >>> flash, naive = (attention(1, 1, queries=1024, head_dim=64, flash=f) for f in (True, False))
    >>> flash.flops == naive.flops, (naive.nbytes - flash.nbytes) / (1024 * 1024 * 2)
    (True, 4.0)
    """
    keys = queries if keys is None else keys
    sizes(batch=batch, heads=heads, queries=queries, keys=keys, head_dim=head_dim)
    size, instances = element_size(dtype), batch * heads
    scores = float(instances * queries * keys)
    visible = 0.5 if causal else 1.0
    spilled = 0.0 if flash else 2.0 * size * scores
    return Op(
        name="attention",
        kind="attention",
        flops=4.0 * scores * head_dim * visible,
        nbytes_read=float(size * instances * head_dim * (queries + 2 * keys)) + spilled,
        nbytes_written=float(size * instances * head_dim * queries) + spilled,
        dtype=dtype,
        family="attention",
        holds=float(size * instances * head_dim * queries) + spilled,
        elements=float(instances * queries * head_dim),
        gemm=Gemm(instances, queries, head_dim, 2 * keys),
    )
