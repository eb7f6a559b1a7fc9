"""Layouts of one machine before any is simulated: whether each fits, and the least time that a step of it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from simperf.errors import InputError, SimperfError
from simperf.memory import DRIVER
from simperf.run import session_of
from simperf.study.layouts.axes import LayoutChoice, layout_choices
from simperf.study.layouts.bounds import StepBounds
from simperf.study.layouts.request import LayoutRequest, TrainingMachine
from simperf.study.layouts.scenarios import JobMaker
from simperf.study.preflight import MOST_POINTS
from simperf.training.job import Job
from simperf.training.pipelined.excess import least_events
from simperf.training.pipelined.fitting_changes import Divided

__all__ = ["MOST_SEARCHED", "WeighedLayout", "WeighedMachine", "weigh"]

#: events of all runs of a search that have more of them than a run simulates unasked: some minutes
MOST_SEARCHED = 20_000_000


#: why a crowded layout is not simulated
_CROWDED = f"batch: more than {MOST_SEARCHED:.3g} events would be simulated"


@dataclass(frozen=True, slots=True)
class WeighedLayout:
    """A layout that was not simulated yet.

    Parameters
    ----------
    choice : LayoutChoice
    memory : float
        Most that a rank of any stage holds [B].
    bound : float
        Least time of a step [s]; infinite where it does not fit.
    """

    choice: LayoutChoice
    memory: float
    bound: float


@dataclass(slots=True)
class WeighedMachine:
    """All layouts of a machine.

    Parameters
    ----------
    machine : TrainingMachine
    capacity : float
        Memory of a GPU beside the driver's context [B].
    fitting : list of WeighedLayout
        By rising bound.
    full : list of WeighedLayout
        What does not fit, by rising memory.
    undivided : int
        Combinations that divide neither the GPUs, the model, nor the batch.
    refusals : dict of str to int
        Why others cannot be simulated, and how many of them.
    crowded : list of WeighedLayout
        Of these, such as fit, but whose numbers alone tell that a run of them is refused for its events.
    most_samples : int
        The largest batch with which one of the crowded layouts is simulated; 0 if there is none of them.
    jobs : JobMaker
    architecture : str
        Of the GPUs.
    bounds : StepBounds
    """

    machine: TrainingMachine
    capacity: float
    jobs: JobMaker
    architecture: str
    bounds: StepBounds
    fitting: list[WeighedLayout] = field(default_factory=list)
    full: list[WeighedLayout] = field(default_factory=list)
    undivided: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    crowded: list[WeighedLayout] = field(default_factory=list)
    most_samples: int = 0

    @property
    def layouts(self) -> int:
        """Layouts whose memory was found."""
        return len(self.fitting) + len(self.full)

    def divided(self, choice: LayoutChoice) -> Divided:
        """The divided model of a layout."""
        return self.jobs.divided(choice, self.architecture)

    def tightened(self, one: WeighedLayout) -> WeighedLayout:
        """A layout that fits with a bound that takes longer to find: of its passes in the order of the plan."""
        if one.choice.layout.pp == 1:
            return one
        divided = self.divided(one.choice)
        bound = self.bounds.in_order(self.jobs.job(one.choice), divided, divided.work())
        return replace(one, bound=max(one.bound, bound))

    def least_events(self) -> float:
        """Events that a run of the layout with the least bound simulates, at least; 0 where none fits."""
        if not self.fitting:
            return 0.0
        choice = self.fitting[0].choice
        return _least_events(self.jobs.job(choice), self.divided(choice))


def _least_events(job: Job, divided: Divided) -> float:
    """Events of a layout's run, by its numbers alone."""
    return job.steps * least_events(divided.layout, divided.strategy, divided.batch, divided.model.model.layers)


def _largest_batch(job: Job, divided: Divided) -> int | None:
    """Largest batch of which a layout's run is not refused, by its numbers alone; None where that asked for is not."""
    events = _least_events(job, divided)
    if events <= MOST_SEARCHED:
        return None
    group = divided.layout.dp * divided.strategy.microbatch
    return math.floor(divided.batch * MOST_SEARCHED / events / group) * group


def weigh(request: LayoutRequest, machine: TrainingMachine) -> WeighedMachine:
    """Find memory and bound of every layout of a machine; nothing is simulated.

    Parameters
    ----------
    request : LayoutRequest
    machine : TrainingMachine

    Raises
    ------
    InputError
        Tables of the request that no scenario takes.
    """
    jobs = JobMaker(request, machine)
    axes = request.axes
    given = {"gpus": machine.gpus, "domain": machine.domain, "batch": request.batch}
    found: WeighedMachine | None = None
    undivided, refusals = 0, dict[str, int]()
    count = sum(one is not None for one in layout_choices(axes, request.model, **given))
    if count > MOST_POINTS and not request.force:
        message = f"{count:,} layouts on {machine.gpus} GPUs of {machine.name} are more than {MOST_POINTS:,}"
        expected = "fewer values of some axes; or --force (plan.force = true), which tries all"
        raise InputError(request.toml.problem(("layouts",), message, expected=expected))
    for choice in layout_choices(axes, request.model, **given):
        if choice is None:
            undivided += 1
            continue
        if found is None:
            found = _prepared(jobs, choice)
        try:
            job, divided = jobs.job(choice), found.divided(choice)
            work = divided.sample()
            memory = divided.most(work)
            fits = memory <= found.capacity
            weighed = WeighedLayout(choice, memory, found.bounds.time(job, divided, work) if fits else math.inf)
        except SimperfError as error:
            why = _reason(error)
            refusals[why] = refusals.get(why, 0) + 1
            continue
        most = _largest_batch(job, divided) if fits and not request.force else None
        if most is not None:
            found.most_samples = max(found.most_samples, most)
            refusals[_CROWDED] = refusals.get(_CROWDED, 0) + 1
            found.crowded.append(weighed)
        else:
            (found.fitting if fits else found.full).append(weighed)
    if found is None:
        raise _nothing_divides(request, machine)
    found.undivided, found.refusals = undivided, refusals
    found.fitting.sort(key=lambda one: (one.bound, one.choice.name))
    found.full.sort(key=lambda one: (one.memory, one.choice.name))
    return found


def _prepared(jobs: JobMaker, choice: LayoutChoice) -> WeighedMachine:
    """What all layouts of a machine need."""
    scenario = jobs.scenario(choice)
    built = scenario.machine
    assert built is not None
    nodes = tuple(built.workers[: jobs.machine.gpus])
    part: Any = min(
        (built.nodes[node].part for node in nodes), key=lambda one: getattr(one, "memory_capacity", math.inf)
    )
    capacity = float(getattr(part, "memory_capacity", math.inf)) - DRIVER
    bounds = StepBounds(session_of(scenario), nodes)
    return WeighedMachine(jobs.machine, capacity, jobs, str(getattr(part, "architecture", "")), bounds)


def _reason(error: SimperfError) -> str:
    """Why a layout cannot be simulated, in a line."""
    if isinstance(error, InputError) and error.problems:
        first = error.problems[0]
        return f"{first.key}: {first.message}" if first.key else first.message
    return str(error).splitlines()[0]


def _nothing_divides(request: LayoutRequest, machine: TrainingMachine) -> InputError:
    """No combination divides GPUs, model and batch: name what would."""
    batch, gpus = request.batch, machine.gpus
    message = f"no layout divides {gpus} GPUs of {machine.name}, {request.model.layers} layers and the batch"
    whole, given = max(1, math.ceil(batch / gpus)) * gpus, request.toml.data.get("layouts", {})
    axes = [key for key in ("tp", "cp", "pp", "ep", "microbatch", "chunks") if key in given]
    if whole == batch and axes:
        expected = "another value, or none: without one, all that divide are tried"
        told = [request.toml.problem(("layouts", one), message, value=given[one], expected=expected) for one in axes]
        return InputError(told)
    expected = f"a batch that {gpus} divides, such as {whole}, or wider axes"
    return InputError(request.toml.problem(("layouts", "batch"), message, value=batch, expected=expected))
