"""Tensors with their lifetimes, and what they hold of a device's memory while operations run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Literal, NamedTuple, get_args

__all__ = ["KINDS", "Tensor", "TensorKind", "held"]

TensorKind = Literal[
    "weights",
    "master",  # fp32 copy of weights
    "optimizer",  # states
    "buffers",  # of the model, such as running means
    "gradients",
    "activations",  # what the forward pass keeps for the backward pass
    "temporaries",  # what lives shorter
    "input",  # mini-batch
    "buckets",  # of gradients
    "tables",  # of embeddings
    "whole batch",  # inputs of all devices on one
    "gathered outputs",  # of all devices on one
    "workspace",  # what a kernel needs beside its operands
    "joined gradients",  # copies of all gradients in one tensor, for the update
    "messages",  # between pipeline stages
    "gradient placeholders",  # in place of gradients that a kernel has added to a buffer
    "unsharded weights",  # whole while they are needed, of those that each rank keeps a part of
    "gathered weights",  # buffers that they are gathered in
    "context",  # of driver and communication library
]

#: what holds memory
KINDS: tuple[TensorKind, ...] = get_args(TensorKind)


class Tensor(NamedTuple):
    """A piece of device memory with its lifetime, in numbers of operations.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    nbytes : float
        Size [B].
    born, dies : int
        It is there from operation `born` on; `dies` is the first operation without it.
    """

    kind: TensorKind
    nbytes: float
    born: int
    dies: int


def held(tensors: Iterable[Tensor], count: int) -> dict[TensorKind, list[float]]:
    """Memory that tensors hold while each of `count` operations runs, by kind [B].

    A tensor is there at least for the operation that makes it.

    Parameters
    ----------
    tensors : iterable of Tensor
    count : int
        Operations.

    Examples
    --------
    >>> kept, short = Tensor("activations", 8.0, 0, 3), Tensor("temporaries", 2.0, 1, 1)
    >>> held([kept, short], 4)
    {'activations': [8.0, 8.0, 8.0, 0.0], 'temporaries': [0.0, 2.0, 0.0, 0.0]}
    """
    changes: dict[TensorKind, list[float]] = {}
    for one in tensors:
        series = changes.get(one.kind)
        if series is None:
            series = changes[one.kind] = [0.0] * (count + 1)
        series[one.born] += one.nbytes
        series[max(one.dies, one.born + 1) if one.dies < count else count] -= one.nbytes
    return {kind: list(accumulate(series))[:count] for kind, series in changes.items()}
