"""Memory of layers whose weights data-parallel ranks share: what is whole while a layer runs, and buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from simperf.memory import LayerMemory, allocated
from simperf.training.pipelined.stage import Pacing
from simperf.training.pipelined.work import StepEnd, WeightUnit

__all__ = ["sharded_layers"]


def sharded_layers(
    layers: Sequence[LayerMemory],
    units: Sequence[WeightUnit],
    end: StepEnd,
    ranks: Mapping[str, int],
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
    ranks : mapping of str to int
        That share the weights, and those of experts, by their dimensions.
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
            gradient=sum(one.weights * end.gradient / ranks[one.dimension] for one in own.buckets)
            if own is not None and makes
            else 0.0,
        )
