"""A transformer's training divided by a layout, as far as its memory depends on that; and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.layout import Layout
from simperf.layout.layout import Sharding
from simperf.memory import DRIVER, StageMemory
from simperf.schedules import Schedule, make_schedule
from simperf.training.pipelined.stage_memory import Library, pipeline_memory
from simperf.units import format_quantity
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.flops import RECOMPUTATIONS, Recomputation
from simperf.workload.transformers.parallel import RankPasses, rank_passes
from simperf.workload.transformers.passes import LayerPasses

__all__ = ["Change", "DividedTraining", "changes_that_fit", "refuse_what_does_not_fit"]

#: changes that are told
MOST_TOLD = 4
#: pipelines that are tried have at most so many micro-batches: no more is held with more of them
_ENOUGH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedTraining:
    """What a rank of each stage trains.

    Parameters
    ----------
    model : Transformer
    layout : Layout
    batch : int
        Sequences of a step of all data-parallel ranks.
    microbatch : int
        Sequences that go through the pipeline together.
    schedule : str
    chunks : int
        Chunks of layers on a stage.
    recompute : str
        One of `simperf.workload.transformers.flops.RECOMPUTATIONS`.
    precision : str
        Of weights and activations.
    sequence_parallel : bool
    kernels : LayerKernels
        Of the software stack.
    architecture : str
        Of the GPU.

    Raises
    ------
    InputError
        What does not divide.
    """

    model: Transformer
    layout: Layout
    batch: int
    microbatch: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    recompute: Recomputation = "none"
    precision: str = "bf16"
    sequence_parallel: bool = False
    kernels: LayerKernels = field(default_factory=LayerKernels)
    architecture: str = ""

    def __post_init__(self) -> None:
        problems = []
        together = self.layout.dp * self.microbatch
        if self.batch < 1 or self.batch % together:
            near = max(together, self.batch // together * together)
            message = f"{self.layout.dp} data-parallel ranks with micro-batches of {self.microbatch} do not share it"
            problems.append(
                Problem(message, key="batch", value=str(self.batch), expected=f"{near} or {near + together}")
            )
        parts = self.layout.pp * self.chunks
        if self.model.layers % parts:
            near = self.model.layers // parts * parts
            message = f"{self.layout.pp} stages of {self.chunks} chunks do not share {self.model.layers} layers"
            expected = " or ".join(str(count) for count in (near, near + parts) if count)
            problems.append(Problem(message, key="layers", value=str(self.model.layers), expected=expected))
        for key in ("cp", "ep"):
            if (size := getattr(self.layout, key)) > 1:
                message = "such a layout is not yet played"
                problems.append(Problem(message, key=key, value=str(size), expected=f"{key} = 1"))
        if problems:
            raise InputError(problems)

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step on each data-parallel rank."""
        return self.batch // (self.layout.dp * self.microbatch)

    @property
    def passes(self) -> RankPasses:
        """What a rank computes."""
        return rank_passes(
            self.model,
            self.kernels,
            tp=self.layout.tp,
            sequence_parallel=self.sequence_parallel,
            microbatch=self.microbatch,
            recompute=self.recompute,
            precision=self.precision,
        )

    def plan(self, microbatches: int) -> Schedule:
        """The schedule, for so many micro-batches."""
        options = {"chunks": self.chunks} if self.schedule == "interleaved" else {}
        return make_schedule(self.schedule, stages=self.layout.pp, microbatches=microbatches, **options)

    def parts(self, passes: RankPasses, count: int) -> list[tuple[LayerPasses, ...]]:
        """Layers of each of so many parts of the model."""
        blocks = (passes.block,) * (self.model.layers // count)
        found = [blocks] * count
        found[0] = (passes.embedding, *found[0])
        found[-1] = (*found[-1], passes.head)
        return found

    @property
    def libraries(self) -> tuple[Library, ...]:
        """Libraries of matrix products: Transformer Engine is known by its placeholders."""
        return ("transformer-engine",) if self.kernels.placeholders == "by-shape" else ("torch",)

    def memory(self) -> tuple[StageMemory, ...]:
        """Memory of a rank of each stage over a step.

        Raises
        ------
        InputError
            What tensor parallelism does not divide, and models that are not yet played.
        """
        passes = self.passes
        plan = self.plan(self.microbatches)
        parts = self.parts(passes, len(plan.path))
        return pipeline_memory(
            plan, parts, passes, self.layout, libraries=self.libraries, architecture=self.architecture
        )

    def peak(self) -> float:
        """Most that a rank of any stage holds [B]."""
        count, pp = self.microbatches, self.layout.pp
        enough = _ENOUGH * pp * self.chunks
        short = self if count <= enough else replace(self, batch=enough * self.layout.dp * self.microbatch)
        return max(one.peak.total for one in short.memory())


class Change(NamedTuple):
    """A change of a job with which it fits.

    Parameters
    ----------
    text : str
        Keys and values.
    peak : float
        What it needs then [B].
    training : DividedTraining
    """

    text: str
    peak: float
    training: DividedTraining


def changes_that_fit(training: DividedTraining, capacity: float) -> list[Change]:
    """Changes with which a job fits, on as many GPUs, the nearest first.

    Single ones: a part of the optimizer's states on each data-parallel rank, tokens shared by tensor-parallel ranks,
    more recomputation, smaller micro-batches, more tensor or pipeline parallelism in place of data parallelism; then
    pairs of these if none is enough. Each one is tried.

    Parameters
    ----------
    training : DividedTraining
    capacity : float
        Of a GPU [B].
    """
    single = list(_single(training))

    @cache
    def tried(index: int, other: int = -1) -> Change | None:
        try:
            changed = replace(training, **single[index][1])
            text = single[index][0]
            if other >= 0:
                text, changed = f"{text} and {single[other][0]}", replace(changed, **single[other][1])
            peak = changed.peak()
        except InputError:
            return None
        return Change(text, peak, changed)

    found = [one for index in range(len(single)) if (one := tried(index)) and one.peak <= capacity]
    if not found:
        pairs = [(one, two) for one, two in combinations(range(len(single)), 2) if not _collide(single, one, two)]
        found = [one for pair in pairs if (one := tried(*pair)) and one.peak <= capacity]
    return found[:MOST_TOLD]


def _collide(single: list[tuple[str, dict[str, Any]]], one: int, two: int) -> bool:
    return bool(set(single[one][1]) & set(single[two][1]))


def _single(training: DividedTraining) -> Iterator[tuple[str, dict[str, Any]]]:
    """Single changes, as text and as fields."""
    layout = training.layout
    if layout.sharding == "none" and layout.dp > 1:
        sharding: Sharding = "zero-1"
        yield 'sharding = "zero-1"', {"layout": replace(layout, sharding=sharding)}
    if layout.tp > 1 and not training.sequence_parallel:
        yield "sequence_parallel = true", {"sequence_parallel": True}
    for name in RECOMPUTATIONS[RECOMPUTATIONS.index(training.recompute) + 1 :]:
        yield f'recompute = "{name}"', {"recompute": name}
    size = training.microbatch
    for smaller in sorted((one for one in range(1, size) if size % one == 0), reverse=True):
        yield f"microbatch = {smaller}", {"microbatch": smaller}
    for key in ("tp", "pp"):
        for factor in (2, 4, 8):
            if layout.dp % factor == 0:
                dp = layout.dp // factor
                changed = replace(
                    layout,
                    dp=dp,
                    sharding=layout.sharding if dp > 1 else "none",
                    **{key: factor * getattr(layout, key)},
                )
                yield f"{key} = {getattr(changed, key)} with dp = {dp}", {"layout": changed}


def refuse_what_does_not_fit(training: DividedTraining, capacity: float, *, name: str = "a GPU") -> None:
    """Refuse a job that a GPU's memory does not hold, beside the driver's context.

    Raises
    ------
    InputError
        It does not fit: on which stage, when and of what, and what would make it fit.
    """
    free = capacity - DRIVER
    stages = training.memory()
    worst = max(range(len(stages)), key=lambda stage: stages[stage].peak.total)
    peak = stages[worst].peak
    if peak.total <= free:
        return
    parts = ", ".join(f"{kind} {format_quantity(size, 'B')}" for kind, size in peak.held.items() if size)
    inside = f" in the {peak.layer}" if peak.layer else ""
    message = (
        f"stage {worst} needs {format_quantity(peak.total, 'B')} in pass {peak.name}{inside} ({parts}), "
        f"and {name} has {format_quantity(free, 'B')} beside the driver's context"
    )
    found = changes_that_fit(training, free)
    expected = "; or ".join(f"{one.text} ({format_quantity(one.peak, 'B')})" for one in found)
    more = "more GPUs with more tensor or pipeline parallelism"
    raise InputError(Problem(message, key="layout", value=str(training.layout), expected=expected or more))
