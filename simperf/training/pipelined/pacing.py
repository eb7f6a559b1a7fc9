"""Overlaps of a rank of a pipeline, and waits of its process."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Pacing"]


@dataclass(frozen=True, slots=True)
class Pacing:
    """Overlaps of a rank, and waits of its process.

    Parameters
    ----------
    gradients : bool
        Buckets of gradients travel while the backward pass continues.
    weights : bool
        The next step begins while weights are gathered.
    messages : bool
        The message for a pass is received during the pass before it.
    synchronous : bool
        The process waits for each message that it receives.
    sharded : bool
        Each data-parallel rank updates a part of the weights, and gathers the others.
    each : bool
        Gradients are reduced after the backward pass of each micro-batch, not of the last one.
    prefetch : int
        Of weights that are gathered as they are needed: layers ahead of the one that runs.
    flat : bool
        They are gathered where they are read.
    stays : bool
        Those that are not given back after a forward pass stay up to the last backward pass of the step.
    """

    gradients: bool = False
    weights: bool = False
    messages: bool = False
    synchronous: bool = False
    sharded: bool = False
    each: bool = False
    prefetch: int = 1
    flat: bool = False
    stays: bool = False
