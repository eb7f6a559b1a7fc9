"""Gradient buckets: what is added up together, and when it may start.

A collective costs its latency whatever its size, so gradients travel in buckets. The rule is
that of PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed: Experiences on
Accelerating Data Parallel Training", VLDB 2020): gradients join in the order in which the
backward pass makes them ready, a bucket is closed by the gradient with which it reaches its
limit, and the first one has a limit of its own, so that communication starts early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simperf.errors import InputError, Problem
from simperf.training.step import Gradient

__all__ = ["BUCKET", "FIRST_BUCKET", "Bucket", "assign_buckets"]

#: default limits of DistributedDataParallel [B] (bucket_cap_mb = 25, the first bucket 1 MiB)
BUCKET = 25 * 2.0**20
FIRST_BUCKET = 1 * 2.0**20


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients that one collective adds up.

    Parameters
    ----------
    nbytes : float
        Payload [B].
    ready : int
        Index of the backward kernel after which its last gradient is final.
    gradients : tuple of Gradient
    """

    nbytes: float
    ready: int
    gradients: tuple[Gradient, ...]


def assign_buckets(
    gradients: Sequence[Gradient], cap: float = BUCKET, *, first: float = FIRST_BUCKET
) -> tuple[Bucket, ...]:
    """Cut gradients into buckets.

    Parameters
    ----------
    gradients : sequence of Gradient
        In the order in which they become ready.
    cap : float
        Size at which a bucket is closed [B]; infinite for one bucket, 0 for one a gradient.
    first : float
        The same for the first bucket [B]; one that is larger than `cap` counts as `cap`.

    Raises
    ------
    InputError
        A limit below 0.

    Examples
    --------
    >>> layers = [Gradient("c", 3.0, 0), Gradient("b", 3.0, 1), Gradient("a", 3.0, 2)]
    >>> [(bucket.nbytes, bucket.ready) for bucket in assign_buckets(layers, 5.0, first=1.0)]
    [(3.0, 0), (6.0, 2)]
    """
    if not (cap >= 0 and first >= 0):
        raise InputError(
            Problem(
                "a bucket's limit is a size, 0 or more", key="bucket", value=f"{cap}, {first}", expected="0 B or more"
            )
        )
    buckets: list[Bucket] = []
    parts: list[Gradient] = []
    for gradient in gradients:
        parts.append(gradient)
        limit = cap if buckets else min(cap, first)
        if math.fsum(one.nbytes for one in parts) >= limit:
            buckets.append(_bucket(parts))
            parts = []
    if parts:
        buckets.append(_bucket(parts))
    return tuple(buckets)


def _bucket(parts: list[Gradient]) -> Bucket:
    return Bucket(math.fsum(one.nbytes for one in parts), max(one.ready for one in parts), tuple(parts))
