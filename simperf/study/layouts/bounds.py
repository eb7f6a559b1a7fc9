"""Lower bounds on the time of a step of a divided model: below what any run of the layout gives.

A bound counts what no overlap hides. The compute stream of a rank runs the kernels of its passes one after another,
each at least as long as alone, and waits inside of layers for collectives, each at least as long as alone on its
links. A stage begins when the stages before it have done the first forward pass, and after its last backward pass
theirs follow (the plan's bubble, Narayanan et al., SC 2021, section 2.2). Gradients and weights that are exchanged
after the passes cross the ports of a server, at their full bandwidth. Left out are launches, messages between stages,
sharing of links and of a GPU, and whatever the schedule has beyond its bubble.

A tighter bound, which takes longer to find, has the passes of all stages in the order of the plan, with the messages
between them (`simperf.study.layouts.pass_order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.layout import Layout
from simperf.study.layouts.pass_order import PassTimes, ends_of_passes
from simperf.training.job import Job
from simperf.training.pipelined.channels import Placer
from simperf.training.pipelined.communicators import MESSAGE, Communicator, Payload
from simperf.training.pipelined.division import pacing_of
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.pipelined.work import StepEnd, StepWork
from simperf.workload.op import Op
from simperf.workload.transformers.passes import Item, LayerPasses, Sync

__all__ = ["StepBounds"]


@dataclass(frozen=True, slots=True)
class _Stage:
    """Least times of a stage in a step [s].

    Parameters
    ----------
    begin, busy, before, after : float
        Before its passes; of all its passes; after them up to the norm of the gradients; and behind that.
    inputs : float
        The same as `busy` without passes for the gradients of weights alone.
    traffic : float
        Of gradients and weights alone, whatever they are hidden behind.
    """

    begin: float
    busy: float
    inputs: float
    before: float
    after: float
    traffic: float


class _Asked(NamedTuple):
    """A layout with its work, the pace of its kernels, and whether gradients of weights are passes of their own."""

    layout: Layout
    work: StepWork
    speed: float
    split: bool


@dataclass(slots=True)
class StepBounds:
    """Lower bounds of layouts on one machine.

    Parameters
    ----------
    session : Session
        Of a scenario on the machine, in which nothing is simulated.
    nodes : sequence of str
        Of the GPUs that train.
    """

    session: Session
    nodes: Sequence[str]
    _placer: Placer = field(init=False)
    _items: dict[int, tuple[tuple[Item, ...], float, tuple[Sync, ...]]] = field(default_factory=dict, init=False)
    _syncs: dict[tuple[object, ...], float] = field(default_factory=dict, init=False)
    _layers: dict[tuple[object, ...], tuple[object, tuple[float, float, float]]] = field(
        default_factory=dict, init=False
    )
    _shares: dict[tuple[object, ...], float] = field(default_factory=dict, init=False)
    _servers: list[str] = field(init=False)
    _ports: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self._placer = Placer(self.session, self.nodes, {})
        self._servers = [node.partition("/")[0] for node in self.nodes]
        machine = self.session.machine
        alone = machine.fabric is None
        self._ports = {} if alone else {one.name: fsum(port.bandwidth for port in one.ports) for one in machine.servers}

    def time(self, job: Job, divided: Divided, work: StepWork) -> float:
        """The least time of a step of a job [s].

        Parameters
        ----------
        job : Job
            Whose stack, devices and steps hold.
        divided : Divided
            Its model, layout, strategy and batch.
        work : StepWork
            Of them, with few of the micro-batches or with all.
        """
        asked, times = self._times(job, divided, work)
        stages = self._stages(job, divided, asked, times)
        return max(_through(asked, stages, times, job, divided), *(one.traffic for one in stages))

    def in_order(self, job: Job, divided: Divided, work: StepWork) -> float:
        """The same with the passes of all stages in the order of the plan, and messages between them [s].

        Parameters
        ----------
        job, divided
            As of `time`.
        work : StepWork
            Of them, with all of the micro-batches.
        """
        asked, times = self._times(job, divided, work)
        stages = self._stages(job, divided, asked, times)
        longest = max(_through(asked, stages, times, job, divided), *(one.traffic for one in stages))
        if job.steps != 1 or work.stages == 1:
            return longest
        messages = {edge: self._message(asked, here, there) for edge, here, there in work.edges()}
        kernels, syncs = self._of_items(work.received, "forward")
        received = kernels / asked.speed + fsum(self._alone(one, asked, 0) for one in syncs)
        ahead = pacing_of(divided.layout, divided.strategy).messages
        parts = [dict(zip("FBW", own, strict=True)) for own in times]
        begun = [one.begin for one in stages]
        ends = ends_of_passes(work, PassTimes(parts, messages, received, ahead), begun)
        done = [end + one.before for end, one in zip(ends, stages, strict=True)]
        if divided.strategy.exchange.clip and work.plan.copies == 1:  # the norm, which all ranks wait for
            return max(longest, max(done) + max(one.after for one in stages))
        return max(longest, *(end + one.after for end, one in zip(done, stages, strict=True)))

    def _times(self, job: Job, divided: Divided, work: StepWork) -> tuple[_Asked, list[tuple[float, ...]]]:
        """What is asked, and the least times of each part's forward, backward and apart weights' passes [s]."""
        node = self.nodes[0]
        speed = job.stack.pace(getattr(self.session.machine.nodes[node].part, "architecture", "")).share
        split = any(one.kind == "W" for one in work.plan.stages[0])
        asked = _Asked(divided.layout, work, speed, split)
        times: list[tuple[float, ...]] = []
        of_part: dict[tuple[int, ...], tuple[float, ...]] = {}  # by the layers of a part and where it is
        for part, layers in enumerate(work.parts):
            place = self._place(divided.layout, work.plan.path[part][0])
            key = (place, *map(id, layers))
            if key not in of_part:
                counted = Counter(id(one.forward) for one in _least(work, layers))
                first = {id(one.forward): one for one in layers}
                each = [(count, self._layer(first[number], asked, place)) for number, count in counted.items()]
                of_part[key] = tuple(fsum(count * one[kind] for count, one in each) for kind in range(3))
            times.append(of_part[key])
        return asked, times

    def _place(self, layout: Layout, stage: int) -> int:
        """The first stage of which collectives go the same ways: each one where stages differ in their servers."""
        within = layout.cp == layout.ep == 1 and layout.expert_tp <= layout.tp
        server = len(self.session.machine.gpus) // max(1, len(self.session.machine.servers))
        return 0 if within and server % layout.tp == 0 else stage

    def _layer(self, one: LayerPasses, asked: _Asked, stage: int) -> tuple[float, float, float]:
        """Least times of a layer's forward pass, of its backward pass, and of its gradients of weights apart."""
        own = one.forward, one.backward, one.input_gradients, one.weight_gradients
        work = asked.work
        key = (
            *map(id, own),
            asked.layout,
            stage,
            asked.split,
            asked.speed,
            bool(work.plan.beside),
            work.rows,
            work.kernel,
        )
        if key not in self._layers:
            passes = (one.forward, one.input_gradients, one.weight_gradients)
            passes = passes if asked.split else (one.forward, one.backward, ())
            found = []
            for items, within in zip(passes, ("forward", "backward", "backward"), strict=True):
                kernels, syncs = self._of_items(items, within)
                # passes beside each other hide each other's communication
                waits = 0.0 if work.plan.beside else fsum(self._alone(sync, asked, stage) for sync in syncs)
                found.append(kernels / asked.speed + waits)
            self._layers[key] = own, (found[0], found[1], found[2])
        return self._layers[key][1]

    def _of_items(self, items: tuple[Item, ...], within: str) -> tuple[float, tuple[Sync, ...]]:
        """Time of the kernels of a pass at full speed [s], and collectives that it waits for."""
        if id(items) not in self._items:
            device = self.session.simulation.device(self.nodes[0])
            kernels = fsum(self.session.kernel(one, device, within=within).time for one in items if isinstance(one, Op))
            syncs = tuple(one for one in items if isinstance(one, Sync) and one.waits)
            self._items[id(items)] = items, kernels, syncs
        return self._items[id(items)][1:]

    def _kernels(self, items: Iterable[Item], speed: float) -> float:
        """Time of kernels around the passes [s]."""
        device = self.session.simulation.device(self.nodes[0])
        kernels = (self.session.kernel(one, device, within="update") for one in items if isinstance(one, Op))
        return fsum(one.time for one in kernels) / speed

    def _alone(self, sync: Sync, asked: _Asked, stage: int) -> float:
        """Time of a collective with its links to itself, among the ranks of a stage's first [s]."""
        layout, work = asked.layout, asked.work
        experts = sync.dimension in ("ep", "etp")
        rows, kernel = (work.rows, work.kernel) if sync.dimension == "ep" else ((), None)
        sizes = layout.tp, layout.cp, layout.ep, layout.etp, layout.pp, layout.dp
        key = sync.dimension, sync.name, sync.nbytes, stage, sizes if stage or sync.dimension != "tp" else layout.tp
        if key not in self._syncs:
            mesh = layout.expert_mesh if experts else layout.mesh
            ranks = mesh.group(mesh.rank({"pp": stage}), "tp" if sync.dimension == "etp" else sync.dimension)
            payload = Payload(sync.name, sync.nbytes)
            one = Communicator(sync.dimension, ranks, (payload,), rows, kernel)  # type: ignore[arg-type]
            try:
                channels = self._placer.place(one).pattern.plans[payload].channels if len(ranks) > 1 else None
            except InputError:  # a collective that goes send by send
                channels = None
            self._syncs[key] = 0.0 if channels is None else channels.time
        return self._syncs[key]

    def _message(self, asked: _Asked, here: int, there: int) -> float:
        """Time of a message from stage to stage with its links to itself, between the first ranks of each [s]."""
        mesh, payload = asked.layout.mesh, Payload(MESSAGE, asked.work.message)
        ranks = mesh.rank({"pp": here}), mesh.rank({"pp": there})
        channels = self._placer.place(Communicator("pp", ranks, (payload,))).pattern.plans[payload].channels
        return 0.0 if channels is None else channels.time

    def _stages(self, job: Job, divided: Divided, asked: _Asked, times: Sequence[tuple[float, ...]]) -> list[_Stage]:
        """Least times of each stage."""
        layout, work, copies, speed = asked.layout, asked.work, asked.work.plan.copies, asked.speed
        pacing, found = pacing_of(layout, divided.strategy), list[_Stage]()
        microbatches = divided.batch // (layout.dp * divided.strategy.microbatch)
        each, ends = microbatches // copies, dict[object, tuple[float, ...]]()
        server = len(self.session.machine.gpus) // max(1, len(self.session.machine.servers))
        alike = layout.tp * layout.cp * layout.dp % server == 0  # each stage begins with a server
        across = self._across(layout, 0, copies)
        of_stage: dict[object, tuple[StepEnd, _Stage]] = {}  # by what a stage has and where it is
        for stage, parts in enumerate(_parts_of_stages(work)):
            across = across if alike else self._across(layout, stage, copies)
            key = across, *((times[part], *map(id, work.parts[part])) for part in parts)
            if not work.units and key in of_stage and of_stage[key][0] == work.ends[stage]:
                found.append(of_stage[key][1])
                continue
            forward, backward, weights = (each * fsum(times[part][kind] for part in parts) for kind in range(3))
            end = work.ends[stage]
            layers = [layer for part in parts for layer in work.parts[part]]
            count, experts = (fsum(getattr(one, key) for one in layers) for key in ("parameters", "of_experts"))
            if layout.spreads_experts:
                count -= experts
            else:
                experts = 0.0
            gradients = across * end.gradient * count
            gathered = across * min(end.weight, end.narrow or end.weight) * count
            gathered = gathered if pacing.sharded else 0.0
            times_reduced = times_gathered = 1
            if work.units:
                resharded = all(unit.reshard for unit in work.units[stage])
                times_reduced = microbatches if pacing.each else 1
                times_gathered = 1 if pacing.stays else microbatches * (1 + resharded)
            own = end.begin, end.replicated, end.norm, end.update
            if own not in ends:
                ends[own] = tuple(self._kernels(items, speed) for items in own)
            begin, replicated, norm, update = ends[own]
            update = 0.0 if job.devices.offload else update
            open_end = not pacing.gradients and not work.units
            found.append(
                _Stage(
                    begin,
                    forward + backward + weights,
                    forward + backward,
                    (gradients if open_end else 0.0) + replicated + norm,
                    update + (gathered if not work.units and not pacing.weights else 0.0),
                    times_reduced * gradients + (times_gathered * gathered if work.units else 0.0),
                )
            )
            of_stage[key] = end, found[-1]
        return found

    def _across(self, layout: Layout, stage: int, copies: int) -> float:
        """Least time in which payloads of a stage's ranks with like weights cross the ports of a server [s/B]."""
        key = layout, stage, copies
        if key not in self._shares:
            self._shares[key] = self._share_across(layout, stage, copies)
        return self._shares[key]

    def _share_across(self, layout: Layout, stage: int, copies: int) -> float:
        """The same, found again [s/B]."""
        mesh = layout.sharding_mesh if layout.sharding != "none" else layout.mesh
        names = ("dp_shard", "cp") if layout.sharding != "none" else ("dp", "cp")
        if copies > 1 or not self._ports:
            return 0.0
        first = mesh.rank({"pp": stage})
        ranks = mesh.group(first, *names)
        server = self._servers[first]
        here = sum(self._servers[rank] == server for rank in ranks)
        groups = 0
        for tensor in range(layout.tp):
            other = mesh.group(mesh.rank({"pp": stage, "tp": tensor}), *names)
            groups += sum(self._servers[rank] == server for rank in other) == here
        return groups * (len(ranks) - here) / len(ranks) / self._ports[server]


def _parts_of_stages(work: StepWork) -> list[list[int]]:
    """Parts of the model on each stage, by rising chunks."""
    found: list[dict[int, int]] = [{} for _ in range(work.stages)]
    for path, _ in work.plan.paths:
        for part, (stage, chunk) in enumerate(path):
            found[stage][chunk] = part
    return [[own[chunk] for chunk in sorted(own)] for own in found]


def _least(work: StepWork, layers: Sequence[LayerPasses]) -> Sequence[LayerPasses]:
    """Layers of a part but those with experts, where the loads of these differ: they take any time above 0."""
    return [one for one in layers if not one.experts] if work.draws.parts or work.others else layers


def _through(
    asked: _Asked, stages: Sequence[_Stage], times: Sequence[tuple[float, ...]], job: Job, divided: Divided
) -> float:
    """The longest way through the step by way of one stage [s]."""
    plan, one_step = asked.work.plan, job.steps == 1
    barrier = divided.strategy.exchange.clip and plan.copies == 1  # the norm, which all ranks wait for
    alone = max(one.begin + one.busy + one.before + one.after for one in stages)
    if plan.copies > 1 or not (one_step or barrier):
        return alone
    head = tail = 0.0
    first, seen, longest = stages[plan.path[0][0]], set[int](), 0.0
    for (stage, _), (forward, backward, _) in zip(plan.path, times, strict=True):
        if stage not in seen:  # its first part: passes over those before it come before and behind
            one = stages[stage]
            begun = max(one.begin * one_step, first.begin + head)
            own, others = begun + one.busy + one.before, begun + one.inputs + tail + first.before
            longest = max(longest, own if barrier else own + one.after, others if barrier else others + first.after)
        seen.add(stage)
        head, tail = head + forward, tail + backward
    if barrier:
        longest += max(one.after for one in stages) if one_step else first.after
    return max(alone, longest)
