"""Refusal of a divided model that does not fit into its GPUs' memory, with changes of the job with which it would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

from simperf.errors import DeviceMemoryError, InputError, Problem
from simperf.layout import Layout
from simperf.layout.layout import Sharding
from simperf.memory import DRIVER, Allocator, StageMemory
from simperf.training.offload import Offload
from simperf.training.pipelined.division import divide, pacing_of
from simperf.training.pipelined.stage_memory import fullest_stages, libraries_of, work_memory
from simperf.training.pipelined.work import StepWork
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel
from simperf.units import format_quantity
from simperf.workload.transformers.flops import RECOMPUTATIONS

__all__ = ["Change", "Divided", "changes_that_fit", "refuse_what_does_not_fit"]

#: changes that are told
MOST_TOLD = 4
#: micro-batches for each stage of a pipeline from which on most schedules hold no more at a time
_ENOUGH = 2


@dataclass(frozen=True, slots=True)
class Divided:
    """A divided model, as far as its memory depends on that.

    Parameters
    ----------
    model : Dimensions
    layout : Layout
    strategy : ModelParallel
    batch : int
        Samples of a step on all ranks together.
    architecture : str
        Of the GPU.
    offload : Offload
        What ranks hold in the memory of their hosts.
    allocator : str
        Of a GPU's memory, one of `simperf.memory.ALLOCATORS`.
    """

    model: Dimensions
    layout: Layout
    strategy: ModelParallel
    batch: int
    architecture: str = ""
    offload: Offload = field(default_factory=Offload)
    allocator: Allocator = "none"

    def memory(self, work: StepWork | None = None) -> tuple[StageMemory, ...]:
        """Memory of a rank of each stage over a step.

        Parameters
        ----------
        work : StepWork, optional
            What `divide` gives for it, where that is known.

        Raises
        ------
        InputError
            What does not divide.
        """
        return self._held(self.work() if work is None else work)

    def peak(self) -> float:
        """Most that a rank of any stage holds [B]."""
        return self.most(self.sample())

    def most(self, work: StepWork) -> float:
        """Most that a rank of any stage holds [B], of work that `sample` gives."""
        return max(one.peak.total for one in self._held(work, fullest_stages(work)))

    def sample(self) -> StepWork:
        """The work of a step with few micro-batches, where no more are held at a time with all of them."""
        together = self.layout.dp * self.strategy.microbatch
        runs = self.strategy.exchange.runs
        enough = _ENOUGH * self.layout.pp * together * runs
        if self.batch > enough and self.batch % (together * runs) == 0:
            work = replace(self, batch=enough).work()
            if max(work.plan.in_flight) < work.plan.microbatches // runs * work.plan.chunks:
                return work
        return self.work()

    def work(self) -> StepWork:
        """The work of a step."""
        given = self.model, self.layout, self.strategy, self.batch
        return divide(*given, architecture=self.architecture, offload=self.offload)

    def _held(self, work: StepWork, stages: Sequence[int] | None = None) -> tuple[StageMemory, ...]:
        libraries, pacing = libraries_of(self.model.kernels), pacing_of(self.layout, self.strategy)
        return work_memory(
            work,
            self.layout,
            pacing,
            libraries=libraries,
            architecture=self.architecture,
            allocator=self.allocator,
            stages=stages,
        )


class Change(NamedTuple):
    """A change of a job with which it fits.

    Parameters
    ----------
    text : str
        Keys and values.
    peak : float
        What it needs then [B].
    divided : Divided
    """

    text: str
    peak: float
    divided: Divided


def changes_that_fit(divided: Divided, capacity: float) -> list[Change]:
    """Changes with which a job fits, on as many GPUs, the nearest first.

    Single ones: a part of the optimizer's states on each data-parallel rank, tokens shared by tensor-parallel ranks,
    more recomputation, smaller micro-batches, more tensor or pipeline parallelism in place of data parallelism; then
    pairs of these if none is enough. Each one is tried.

    Parameters
    ----------
    divided : Divided
    capacity : float
        Of a GPU [B].
    """
    single = list(_single(divided))

    @cache
    def tried(*chosen: int) -> Change | None:
        layout = {key: value for one in chosen for key, value in single[one].layout.items()}
        strategy = {key: value for one in chosen for key, value in single[one].strategy.items()}
        if strategy.get("sequence_parallel"):  # each rank has a part of a message only
            strategy["messages"] = replace(divided.strategy.messages, scattered=False)
        try:
            changed = replace(
                divided, layout=replace(divided.layout, **layout), strategy=replace(divided.strategy, **strategy)
            )
            peak = changed.peak()
        except InputError:
            return None
        return Change(" and ".join(single[one].text for one in chosen), peak, changed)

    found = [one for index in range(len(single)) if (one := tried(index)) and one.peak <= capacity]
    if not found:
        pairs = [(one, two) for one, two in combinations(range(len(single)), 2) if single[one].beside(single[two])]
        found = [one for pair in pairs if (one := tried(*pair)) and one.peak <= capacity]
    return found[:MOST_TOLD]


class _Single(NamedTuple):
    """A single change: in words, and fields of the layout and the strategy."""

    text: str
    layout: dict[str, Any]
    strategy: dict[str, Any]

    def beside(self, other: _Single) -> bool:
        """Whether both can be made."""
        return not (set(self.layout) & set(other.layout) or set(self.strategy) & set(other.strategy))


def _single(divided: Divided) -> Iterator[_Single]:
    layout, strategy = divided.layout, divided.strategy
    if layout.sharding == "none" and layout.dp > 1:
        sharding: Sharding = "zero-1"
        yield _Single(f'layout.sharding = "{sharding}"', {"sharding": sharding}, {})
    if layout.tp > 1 and not strategy.sequence_parallel:
        yield _Single("sequence_parallel = true", {}, {"sequence_parallel": True})
    for name in RECOMPUTATIONS[RECOMPUTATIONS.index(strategy.recompute) + 1 :]:
        yield _Single(f'recompute = "{name}"', {}, {"recompute": name})
    if strategy.recompute_layers:
        yield _Single("recompute_layers = 0", {}, {"recompute_layers": 0})
    size = strategy.microbatch
    for smaller in sorted((one for one in range(1, size) if size % one == 0), reverse=True):
        yield _Single(f"microbatch = {smaller}", {}, {"microbatch": smaller})
    for key in ("tp", "pp"):
        for factor in (2, 4, 8):
            if layout.dp % factor == 0:
                dp, more = layout.dp // factor, factor * getattr(layout, key)
                one = dp * layout.cp == 1
                if one and (strategy.exchange.bucket or strategy.exchange.overlap_weights):
                    continue  # without effect then, and refused
                whole = one and layout.sharding != "none"
                text = f"layout.{key} = {more} with layout.dp = {dp}" + whole * ' and layout.sharding = "none"'
                unshared = {"sharding": "none"} if whole else {}
                yield _Single(text, {key: more, "dp": dp, **unshared}, {})


def refuse_what_does_not_fit(
    divided: Divided, capacity: float, *, name: str = "a GPU", work: StepWork | None = None
) -> tuple[StageMemory, ...]:
    """Memory of each stage of a job that a GPU's memory holds, beside the driver's context.

    Parameters
    ----------
    divided : Divided
    capacity : float
        Of the GPU [B].
    name : str
        Of the GPU.
    work : StepWork, optional
        As of `Divided.memory`.

    Raises
    ------
    DeviceMemoryError
        It does not fit: on which stage, when and of what, and what would make it fit.
    """
    free = capacity - DRIVER
    stages = divided.memory(work)
    worst = max(range(len(stages)), key=lambda stage: stages[stage].peak.total)
    peak = stages[worst].peak
    if peak.total <= free:
        return stages
    parts = ", ".join(f"{kind} {format_quantity(size, 'B')}" for kind, size in peak.held.items() if size)
    message = (
        f"{name} is out of memory: stage {worst} needs {format_quantity(peak.total, 'B')} {peak.when} "
        f"({parts}), but it has {format_quantity(free, 'B')} beside the driver's context"
    )
    found = changes_that_fit(divided, free)
    expected = "; or ".join(f"{one.text} ({format_quantity(one.peak, 'B')})" for one in found)
    more = "more GPUs with more tensor or pipeline parallelism"
    raise DeviceMemoryError([Problem(message, key="layout", value=str(divided.layout), expected=expected or more)])
