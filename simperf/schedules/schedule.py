"""A pipeline schedule as a pure plan: which stage does which pass of which micro-batch, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

__all__ = ["PASSES", "Pass", "PassKind", "Schedule"]

PassKind = Literal["F", "B", "W"]

#: forward; backward, or its gradients of inputs alone; gradients of weights
PASSES: tuple[PassKind, ...] = get_args(PassKind)


class Pass(NamedTuple):
    """One pass over one chunk of layers.

    Parameters
    ----------
    kind : str
        ``"F"``: forward. ``"B"``: backward; only the gradients of inputs where the schedule has a ``"W"`` pass for the
        gradients of weights.
    microbatch : int
        From 0.
    chunk : int
        Which of the stage's chunks of layers, from 0.
    """

    kind: PassKind
    microbatch: int
    chunk: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.microbatch}" + (f".{self.chunk}" if self.chunk else "")


@dataclass(frozen=True, slots=True)
class Schedule:
    """The passes of every stage of a pipeline, in order, without a clock.

    A pass waits for the one before it on its stage, and for what it needs: F for F of the chunk before it in the model,
    B for F of its own chunk and B of the chunk after it, W for B of its own chunk.

    Parameters
    ----------
    name : str
    microbatches : int
    stages : tuple of tuple of Pass
        The passes of each stage in the order in which it does them.
    path : tuple of (int, int)
        Stage and chunk of each part of the model, in the order of the forward pass.
    in_flight : tuple of int
        Most chunks whose activations each stage keeps at a time: from the start of F to the end of B, or of W where
        there is one.
    second : tuple of (int, int), optional
        Stage and chunk of each part of a second copy of the model, which the last half of the micro-batches go through
        instead: the copies' parts are on different chunks.
    beside : tuple of frozenset of int, optional
        Of each stage, places in its order of forward passes that are done beside the backward pass behind: each hides
        the other's communication. Gradients of weights that follow at once are part of that backward pass.
    runs : int
        How often the pipeline is filled and drained, each time with an equal share of the micro-batches.

    Examples
    --------
    >>> from simperf.schedules import make_schedule
    >>> [str(one) for one in make_schedule("1f1b", stages=2, microbatches=3).stages[0]]
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    """

    name: str
    microbatches: int
    stages: tuple[tuple[Pass, ...], ...]
    path: tuple[tuple[int, int], ...]
    in_flight: tuple[int, ...]
    second: tuple[tuple[int, int], ...] = ()
    beside: tuple[frozenset[int], ...] = ()
    runs: int = 1

    @property
    def chunks(self) -> int:
        """Most chunks of layers on one stage."""
        return max((chunk for _, chunk in (*self.path, *self.second)), default=-1) + 1

    @property
    def paths(self) -> tuple[tuple[tuple[tuple[int, int], ...], range], ...]:
        """Each way through a copy of the model, with the micro-batches that take it."""
        if not self.second:
            return ((self.path, range(self.microbatches)),)
        half = self.microbatches // 2
        return ((self.path, range(half)), (self.second, range(half, self.microbatches)))

    @property
    def split(self) -> bool:
        """Whether gradients of weights are passes of their own."""
        return any(one.kind == "W" for passes in self.stages for one in passes)

    @property
    def copies(self) -> int:
        """Copies of the model on the stages together."""
        return len(self.paths)

    def turns(self, stage: int) -> Iterator[tuple[Pass, ...]]:
        """Passes of a stage in order, those together that are done beside each other.

        One pass, or a forward and a backward one, with the gradients of weights of the latter if they follow at once.
        """
        passes = self.stages[stage]
        pairs = self.beside[stage] if self.beside else frozenset()
        place = 0
        while place < len(passes):
            count = 1
            if place in pairs:
                behind = passes[place + 2] if place + 2 < len(passes) else None
                count = 3 if behind == passes[place + 1]._replace(kind="W") else 2
            yield passes[place : place + count]
            place += count

    def final(self, stage: int) -> frozenset[Pass]:
        """Passes of a stage, one of each chunk in each run of the pipeline, that complete gradients of weights."""
        kind, each = "W" if self.split else "B", self.microbatches // self.runs
        return frozenset(
            {(one.chunk, one.microbatch // each): one for one in self.stages[stage] if one.kind == kind}.values()
        )

    def repeated(self, runs: int) -> Schedule:
        """The schedule so many times in a row, each time with as many micro-batches more.

        Raises
        ------
        ValueError
            It has two copies of the model.

        Examples
        --------
        >>> from simperf.schedules import make_schedule
        >>> [str(one) for one in make_schedule("1f1b", stages=2, microbatches=1).repeated(2).stages[0]]
        ['F0', 'B0', 'F1', 'B1']
        """
        if self.second:
            raise ValueError("a schedule of two copies of the model is not repeated")
        count, turns = self.microbatches, range(runs)
        stages = tuple(
            tuple(one._replace(microbatch=one.microbatch + turn * count) for turn in turns for one in passes)
            for passes in self.stages
        )
        beside = tuple(
            frozenset(place + turn * len(passes) for turn in turns for place in places)
            for places, passes in zip(self.beside, self.stages, strict=False)
        )
        return replace(self, microbatches=count * runs, stages=stages, beside=beside, runs=runs * self.runs)

    def needs(self, stage: int, one: Pass) -> tuple[tuple[int, Pass], ...]:
        """Stage and pass of all that a pass needs, beside the pass before it on its stage."""
        path = self.second if (stage, one.chunk) in self.second else self.path
        at = path.index((stage, one.chunk))
        found = []
        if one.kind == "F" and at:
            before, chunk = path[at - 1]
            found.append((before, Pass("F", one.microbatch, chunk)))
        if one.kind == "B":
            found.append((stage, one._replace(kind="F")))
            if at + 1 < len(path):
                after, chunk = path[at + 1]
                found.append((after, Pass("B", one.microbatch, chunk)))
        if one.kind == "W":
            found.append((stage, one._replace(kind="B")))
        return tuple(found)
