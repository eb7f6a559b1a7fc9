"""Memory of layers whose weights data-parallel ranks share: what is whole while a layer runs, and buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simperf.memory import LayerMemory, TensorKind, allocated
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.weight_shares import WeightShares
from simperf.training.pipelined.work import StepEnd, WeightUnit

__all__ = ["flat_layers", "sharded_layers"]


def sharded_layers(
    layers: Sequence[LayerMemory],
    units: Sequence[WeightUnit],
    end: StepEnd,
    shares: WeightShares,
    pacing: Pacing,
) -> Iterator[LayerMemory]:
    """Layers of a chunk with weights that are whole while they run, with buffers, and with parts of gradients.

    As in PyTorch's ``fully_shard``: forward, the buffer that a unit's weights came in is kept until the next unit's
    have come; backward, there are buffers of the units that are gathered ahead, and gradients of the unit before are in
    theirs until they are reduced: experts' before the others of a unit, and the larger of both is counted. Flat weights
    are their own buffer.

    Parameters
    ----------
    layers : sequence of LayerMemory
    units : sequence of WeightUnit
        Of the chunk, in the order of the forward pass.
    end : StepEnd
        Of the stage.
    shares : WeightShares
        Ranks that share the weights.
    pacing : Pacing
    """
    of = {index: unit for unit in units for index in unit.bucket.layers}

    def gathered(some: Iterable[WeightUnit]) -> float:
        return sum(allocated(end.gathered(bucket)) for unit in some for bucket in unit.buckets)

    for index, layer in enumerate(layers):
        own = of.get(index)
        before = [unit for unit in units if unit.bucket.ready <= index]
        behind = [unit for unit in units if unit.bucket.ready > index]
        whole = [unit for unit in units if unit is own or (not unit.reshard and (pacing.stays or unit in before))]
        ahead = [unit for unit in reversed(before) if unit not in whole][: pacing.prefetch]
        buffers = before[-2:] if pacing.prefetch else before[-1:]
        packed = max(one.weights for one in behind[0].buckets) * end.gradient if pacing.each and behind else 0.0
        makes = pacing.each and own is not None and index == own.bucket.ready
        yield layer._replace(
            forward_beside=(
                ("unsharded weights", gathered(whole)),
                ("gathered weights", gathered(buffers[1:] if pacing.flat else buffers)),
            ),
            backward_beside=(
                ("unsharded weights", gathered(whole)),
                ("gathered weights", gathered(ahead)),
                ("buckets", allocated(packed)),
            ),
            gradient=sum(one.weights * end.gradient / shares.along(one.dimension) for one in own.buckets)
            if own is not None and makes
            else 0.0,
        )


def flat_layers(
    layers: Sequence[LayerMemory], weights: Sequence[int], units: Sequence[WeightUnit], width: float
) -> Iterator[LayerMemory]:
    """Layers of a chunk whose units' weights are one tensor each, with the gradients of their parts.

    Each matrix is a view of the flat weights, so that autograd makes a gradient for each, keeps it up to the end of the
    unit's backward pass, and joins all of them into that of the flat weights (pytorch/pytorch,
    torch/distributed/fsdp/_flat_param.py: `_get_unflat_views` splits; the backward pass of a split concatenates). So
    both are there at a time, beside what is added up over micro-batches.

    Parameters
    ----------
    layers : sequence of LayerMemory
    weights : sequence of int
        Of each layer.
    units : sequence of WeightUnit
        Of the chunk.
    width : float
        Bytes of a gradient as it is made, which is as wide as the gathered weights [B].

    Examples
    --------
    A head of 10 weights and an embedding of 30 in one unit, in bf16: the head's gradient stays up to the embedding's,
    and then both are joined.

    >>> from simperf.training.pipelined.work import LayerBucket
    >>> layers = [LayerMemory(name, 0.0) for name in ("embedding", "block", "head")]
    >>> unit = WeightUnit(LayerBucket(0, 0, (0, 2), 40), False, (), ())
    >>> for one in flat_layers(layers, (30, 7, 10), [unit], 2.0):
    ...     print(one.name, one.backward, one.backward_beside)
    flat gradients 592.0 ()
    embedding 0.0 (('temporaries', 20.0),)
    block 0.0 (('temporaries', 20.0),)
    head 0.0 ()
    """
    for index, layer in enumerate(layers):
        begun = [unit for unit in units if unit.bucket.ready <= index]
        made = width * sum(weights[one] for unit in begun for one in unit.bucket.layers if one > index)
        for unit in begun:
            if unit.bucket.ready == index:
                whole = width * sum(weights[one] for one in unit.bucket.layers)
                both = whole + allocated(whole)
                yield LayerMemory("flat gradients", 0.0, 0.0, both, 0.0, 0.0, both, (), layer.backward_beside)
        beside: tuple[TensorKind, float] = ("temporaries", made)
        yield layer._replace(backward_beside=(*layer.backward_beside, beside)) if made else layer
