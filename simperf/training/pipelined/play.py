"""A pipeline at work: classes of like ranks, a process for each, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from simperf.collectives.settings import default_algorithm
from simperf.engine.device import Device
from simperf.engine.kernel import Kernel
from simperf.execution import Program, wait
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.layout import Layout, by_server
from simperf.time_use import RankClass
from simperf.training.pipelined.channels import Placer
from simperf.training.pipelined.classes import Classes, refine
from simperf.training.pipelined.closing import ClassLinks, close_layers
from simperf.training.pipelined.communicators import (
    Communicator,
    Joined,
    Key,
    Place,
    communicators,
)
from simperf.training.pipelined.groups import ClassGroup, ClassMember
from simperf.training.pipelined.host_memory import hosts_of
from simperf.training.pipelined.layer_graphs import LayerGraphs
from simperf.training.pipelined.offloaded_stage import OffloadedStage
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.sharded_stage import ShardedStage
from simperf.training.pipelined.stage import StageProcess, dimensions_of_streams
from simperf.training.pipelined.work import Boundary, LayerBucket, StepWork, layer_buckets
from simperf.workload.op import Op

__all__ = ["Pipeline"]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A job of stages on a machine.

    Parameters
    ----------
    layout : Layout
    nodes : tuple of str
        Node of each rank.
    work : StepWork
    pacing : Pacing
    bucket : float
        Size at which a bucket of gradients is closed [B].
    speeds : tuple of float
        How many times as fast each rank is [1].
    options : mapping
        Of NCCL.
    marks : mapping of str to hashable
        What tells links apart beside their capacities.
    """

    layout: Layout
    nodes: tuple[str, ...]
    work: StepWork
    pacing: Pacing = field(default_factory=Pacing)
    bucket: float = float("inf")
    speeds: tuple[float, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    marks: Mapping[str, Hashable] = field(default_factory=dict)

    def speed(self, rank: int) -> float:
        """Speed of a rank [1]."""
        return self.speeds[rank] if self.speeds else 1.0

    def place(self, rank: int) -> int:
        """Place of a rank among those that the experts are spread over, where these get unequal rows; else 0."""
        return self.layout.expert_mesh.coordinates(rank)["ep"] if self.work.others else 0

    def stage(self, rank: int) -> int:
        """Stage of a rank."""
        return self.layout.mesh.coordinates(rank)["pp"]

    def apart(self, m: Session) -> str:
        """The reason for which every rank has to be simulated; empty if one of each class will do."""
        if default_algorithm(m.simulation.machine, self.nodes) != "nccl":
            return "these devices do not communicate by NCCL"
        if m.simulation.own_times:
            return "hosts have network stacks, or links token buckets"
        if self.work.offload and len(self.nodes) > 1:
            return "they share the links and memory of their hosts"
        machine = m.machine
        for ranks in by_server(machine, self.nodes).values():
            host = machine.host_of(self.nodes[ranks[0]])
            if len(ranks) > machine.cores(host):
                return f"{len(ranks)} processes share the {machine.cores(host)} cores of {host}"
        return ""

    def processes(self, m: Session, *, exact: bool, steps: int, reuse: bool = True) -> list[StageProcess]:
        """The processes that are to be simulated: of one rank of each class, or of every rank.

        Parameters
        ----------
        m : Session
            Gets the ranks that each device stands for.
        exact : bool
            Every rank is a class of its own, and every kernel is simulated.
        steps : int
        reuse : bool
            Layers that nothing outside touches are simulated once.
        """
        work, joined = self.work, self.joined()
        buckets = [self._buckets(stage) for stage in range(work.stages)]
        groups = [one.communicator for one in joined]
        classes = self._classes(m, groups, exact=exact)
        members: dict[int, list[int]] = {}
        for rank, colour in enumerate(classes.ranks):
            members.setdefault(colour, []).append(rank)
        devices = {colour: m.simulation.device(self.nodes[ranks[0]]) for colour, ranks in members.items()}
        first = {ranks[0]: colour for colour, ranks in members.items()}
        keys: dict[int, dict[Place, int]] = {rank: {} for rank in first}
        for index, one in enumerate(joined):
            for rank in one.communicator.ranks:
                if rank in first:
                    keys[rank][one.key] = index
        made: dict[tuple[int, Boundary | None], ProcessGroup] = {}

        def group(index: int, edge: Boundary | None = None) -> ProcessGroup:
            """The process group of a communicator's class."""
            colour = classes.communicators[index]
            if (colour, edge) not in made:
                one = groups[classes.communicators.index(colour)]
                made[colour, edge] = self._group(m, one, classes, colour, devices)
                m.groups["pipeline", colour, edge] = made[colour, edge]
            return made[colour, edge]

        grid, found = self.layout.mesh, list[StageProcess]()
        works = [work.at(place) for place in range(1 + len(work.others))]
        for rank, colour in first.items():
            device, stage = devices[colour], self.stage(rank)
            own: dict[Key | Boundary, ProcessGroup] = {
                key: group(index) for key, index in keys[rank].items() if isinstance(key, str)
            }
            own |= {
                edge: group(keys[rank][here, there], edge)
                for edge, here, there in work.edges()
                if stage in (here, there)
            }
            like = tuple(self.nodes[one] for one in members[colour])
            mesh, numbers = tuple(zip(grid.dimensions, grid.sizes, strict=True)), tuple(members[colour])
            m.ranks[device.name] = RankClass(
                like, stage=stage, streams=dimensions_of_streams(own), numbers=numbers, mesh=mesh
            )
            found.append(self._process(m, rank, device, works[self.place(rank)], own, buckets[stage], steps))
        if reuse and not exact:
            links = ClassLinks(classes, groups, tuple(map(str, self.marks)))
            mine = {rank: {key: classes.communicators[one] for key, one in own.items()} for rank, own in keys.items()}
            close_layers(m, found, lambda one: links.closed(mine[one.rank], units=bool(work.units)))
        return found

    def _process(
        self,
        m: Session,
        rank: int,
        device: Device,
        work: StepWork,
        own: dict[Key | Boundary, ProcessGroup],
        buckets: list[LayerBucket],
        steps: int,
    ) -> StageProcess:
        """The process of a rank that does this work and has these groups."""
        stage, speed = self.stage(rank), self.speed(rank)
        kernel = partial(self._kernel, m, device, speed)
        kind = OffloadedStage if work.offload else ShardedStage if work.units else StageProcess
        made = kind(rank, device, stage, work, own, buckets, self.pacing, kernel, speed, steps)
        if isinstance(made, OffloadedStage):
            (host,) = hosts_of(m.machine, [device.name])
            made.host, made.cpu = host, m.simulation.device(host)
            made.bandwidth = getattr(m.machine.nodes[host].part, "memory_bandwidth", math.inf)
        made.spent.listen(device.stream())
        if work.captured:
            made.graphs = LayerGraphs.of(m.profile, work.all_layers(stage))
        return made

    def joined(self) -> list[Joined]:
        """All communicators, with what their ranks find them by."""
        buckets = [self._buckets(stage) for stage in range(self.work.stages)]
        return communicators(self.layout, self.work, buckets, sharded=self.pacing.sharded)

    def _buckets(self, stage: int) -> list[LayerBucket]:
        """Buckets of a stage's gradients."""
        work = self.work
        if work.units:
            return [bucket for unit in reversed(work.units[stage]) for bucket in reversed(unit.buckets)]
        size = self.bucket if self.pacing.gradients else float("inf")
        return [
            bucket
            for chunk in sorted(work.chunks(stage), key=lambda one: -work.part(stage, one))
            for bucket in layer_buckets(chunk, work.layers(stage, chunk), size, work.ends[stage].gradient)
        ]

    def play(self, m: Session, processes: Sequence[StageProcess]) -> Program:
        """Simulate the processes to their end."""
        threads = [
            m.spawn(one.program(), f"rank{one.rank}", host=str(m.machine.host_of(one.device.name))) for one in processes
        ]
        for thread in threads:
            yield wait(thread.done, why="wait: ranks")

    def _classes(self, m: Session, groups: Sequence[Communicator], *, exact: bool) -> Classes:
        if exact:
            each: list[dict[Any, Any]] = [{} for _ in groups]
            return Classes(tuple(range(len(self.nodes))), tuple(range(len(groups))), tuple(each))
        nodes, stages = m.machine.nodes, self.layout.mesh.places("pp")
        places = self.layout.expert_mesh.places("ep") if self.work.others else [0] * len(stages)
        looks = [
            (stages[rank], id(nodes[node].part), self.speed(rank), places[rank]) for rank, node in enumerate(self.nodes)
        ]
        placer = Placer(m, self.nodes, self.options)
        return refine(looks, groups, [placer.place(one) for one in groups], placer.links, marks=self.marks)

    def _group(
        self, m: Session, one: Communicator, classes: Classes, colour: int, devices: Mapping[int, Device]
    ) -> ProcessGroup:
        inside: dict[int, list[int]] = {}
        for number, rank in enumerate(one.ranks):
            inside.setdefault(classes.ranks[rank], []).append(number)
        members = [ClassMember(tuple(numbers), devices[own]) for own, numbers in inside.items()]
        nodes = [self.nodes[rank] for rank in one.ranks]
        plans = classes.plans[colour]
        played = bool(self.marks) and not plans  # what is computed as a whole knows no link that changes
        own: dict[str, Any] = {"rows": one.rows, "kernel": one.kernel}
        return ClassGroup(m, nodes, members, plans=plans, options=self.options, exact=played, **own)

    @staticmethod
    def _kernel(m: Session, device: Device, speed: float, op: Op, within: str) -> Kernel:
        found = m.kernel(op, device, within=within)
        return found if speed == 1.0 else replace(found, time=found.time / speed)
