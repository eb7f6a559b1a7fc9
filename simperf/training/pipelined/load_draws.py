"""Loads of experts that change: each layer has one of several draws in each micro-batch.

Every rank waits at each exchange for the one whose experts got most rows, and all of them do the same in between. So
the time of a step is that of a rank which has the most rows in every layer of every micro-batch, whoever that is: it is
simulated for all, and its exchanges carry what that rank gets or sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from simperf.workload.transformers.passes import LayerPasses

__all__ = ["LoadDraws", "Parts"]

#: layers of each part of the model
Parts: TypeAlias = tuple[tuple[LayerPasses, ...], ...]


@dataclass(frozen=True, slots=True)
class LoadDraws:
    """Draws of the load that the experts of each layer have in each micro-batch.

    Parameters
    ----------
    parts : tuple of tuple of tuple of LayerPasses
        By load.
    microbatches : int
        Of a step.
    seed : int
        By which the load of each layer and micro-batch is drawn.

    Examples
    --------
    >>> draws = LoadDraws(((("a", "b"),), (("A", "B"),)), microbatches=4, seed=0)
    >>> [draws.layers(0, microbatch) for microbatch in range(4)]
    [('A', 'B'), ('A', 'b'), ('A', 'B'), ('A', 'b')]
    """

    parts: tuple[Parts, ...] = ()
    microbatches: int = 0
    seed: int = 0
    _chosen: Sequence[Sequence[Sequence[int]]] = field(default=(), init=False, repr=False, compare=False)
    _known: dict[tuple[int, int], tuple[LayerPasses, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        streams = np.random.SeedSequence([self.seed, len(self.parts)]).spawn(len(self.parts[0]) if self.parts else 0)
        chosen = [
            np.random.default_rng(one).integers(len(self.parts), size=(self.microbatches, len(part))).tolist()
            for one, part in zip(streams, self.parts[0] if self.parts else (), strict=True)
        ]
        object.__setattr__(self, "_chosen", chosen)

    def layers(self, part: int, microbatch: int) -> tuple[LayerPasses, ...]:
        """Layers of a part in a micro-batch."""
        if (part, microbatch) not in self._known:
            own = self._chosen[part][microbatch]
            self._known[part, microbatch] = tuple(self.parts[load][part][index] for index, load in enumerate(own))
        return self._known[part, microbatch]

    def every(self, part: int) -> Iterator[LayerPasses]:
        """Layers of a part with each load."""
        for parts in self.parts:
            yield from parts[part]
