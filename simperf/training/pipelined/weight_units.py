"""Units of fully sharded data parallelism: layers whose weights are gathered together and given back together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from simperf.training.pipelined.work import LayerBucket, WeightUnit
from simperf.training.strategies import DataExchange
from simperf.workload.op import Op
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.passes import LayerPasses

__all__ = ["UnitBytes", "weight_units"]

#: layers that are one unit with each other, as the root module: they are not in any block
ROOT = ("embedding", "head", "ahead.head")


class UnitBytes(NamedTuple):
    """Bytes of an element of a unit, by what it is.

    Parameters
    ----------
    gathered : float
        A weight on its way [B].
    weight : float
        A weight as products read it [B].
    product : float
        A gradient as the backward pass makes it, or as it is added up over micro-batches [B].
    reduced : float
        A gradient on its way [B].
    narrow : float
        A weight that a recipe multiplies in a narrower precision, on its way and after it, where that is gathered; 0:
        as the others [B].
    """

    gathered: float = 2.0
    weight: float = 2.0
    product: float = 2.0
    reduced: float = 4.0
    narrow: float = 0.0


def weight_units(
    chunk: int,
    layers: Sequence[LayerPasses],
    options: DataExchange,
    nbytes: UnitBytes,
    *,
    stages: int,
    apart: bool = False,
) -> tuple[WeightUnit, ...]:
    """Units of a chunk, in the order of the forward pass.

    Parameters
    ----------
    chunk : int
        Of the stage.
    layers : sequence of LayerPasses
        Of the chunk.
    options : DataExchange
    nbytes : UnitBytes
    stages : int
        Of the pipeline.
    apart : bool
        Whether ranks have different experts, so that fewer have copies of one than of other weights.

    Examples
    --------
    >>> from simperf.workload.transformers.dimensions import Weight
    >>> names = ["embedding", "block", "block", "head"]
    >>> layers = [LayerPasses(name, (), (), (), (), (), 0.0, 0.0, (Weight("w", (10,)),)) for name in names]
    >>> units = weight_units(0, layers, DataExchange(), UnitBytes(), stages=1)
    >>> [(one.bucket.layers, one.reshard) for one in units]
    [((0, 3), False), ((1,), True), ((2,), False)]
    """
    root = tuple(index for index, layer in enumerate(layers) if layer.name in ROOT)
    blocks = [(index,) for index in range(len(layers)) if index not in root]
    last = blocks[-1] if blocks else ()
    found, read = [], options.flat and nbytes.gathered == nbytes.weight  # where they were gathered
    for own in sorted([*([root] if root else []), *blocks]):
        of_experts = sum(layers[index].of_experts for index in own) if apart else 0
        weights = sum(layers[index].parameters for index in own) - of_experts
        frozen = sum(one.nbytes for index in own for one in layers[index].frozen)
        scaled = sum(sum(layers[index].scaled) for index in own)
        scaled_experts = sum(sum(layers[index].scaled_experts) for index in own)
        if not apart:  # experts are gathered with the other weights
            scaled, scaled_experts = scaled + scaled_experts, 0
        if weights or frozen:
            never = options.reshard == "never" or (options.reshard == "auto" and (stages > 1 or own == last))
            found.append(
                WeightUnit(
                    LayerBucket(chunk, own[0], own, weights, scaled=scaled, frozen=frozen),
                    reshard=own != root and not never,
                    spread=()
                    if read
                    else _spread(weights, scaled, nbytes, frozen) + _spread(of_experts, scaled_experts, nbytes),
                    pack=_pack(weights, nbytes),
                    experts=LayerBucket(chunk, own[0], own, of_experts, True, scaled_experts) if of_experts else None,
                    pack_experts=_pack(of_experts, nbytes),
                )
            )
    return tuple(found)


def _pack(weights: int, nbytes: UnitBytes) -> tuple[Op, ...]:
    """The copy of gradients to the buffer that is reduced."""
    return (_copy("gradients.pack", weights, nbytes.product, nbytes.reduced),) if weights else ()


def _spread(every: int, scaled: int, nbytes: UnitBytes, frozen: float = 0.0) -> tuple[Op, ...]:
    """The copy of a unit's gathered weights out of their buffer, with those that are `frozen` [B]."""
    if not (every or frozen):
        return ()
    narrow = scaled if nbytes.narrow else 0
    one = _copy("weights.spread", every - narrow, nbytes.gathered, nbytes.weight)
    alike, elements = nbytes.narrow * narrow + frozen, narrow + int(frozen / nbytes.weight)
    if not alike:
        return (one,)
    read, written = one.nbytes_read + alike, one.nbytes_written + alike
    return (replace(one, nbytes_read=read, nbytes_written=written, elements=one.elements + elements),)


def _copy(name: str, elements: int, read: float, written: float) -> Op:
    op = each("copy", elements, flops=0.0, read=read, written=written, dtype="fp32", family="copy")
    return replace(op, name=name)
