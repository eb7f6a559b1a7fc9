"""Closed layers: passes over a layer that nothing outside touches are simulated once, and their outcome is used again.

A pass over a layer is closed if the links of its collectives carry nothing else of the job. What it does then depends
on one thing: the lead of the process, the time by which the device comes to the pass after the process has begun to
launch it. With a lead of the whole time that launching takes, no kernel waits for its launch; without one, the device
has been idle. Both are simulated kernel by kernel, and so is every other lead that comes up, each once.

Layers are closed only where the kernels of each of them take longer than their launches. Then the bounded queue of the
compute stream, once it is full, keeps the process so far ahead that no kernel waits for its launch before the process
waits for its device again; how far does not matter. A queue that a few layers fill does not: there every kernel is
simulated, since it is the end of each of them that lets the process continue.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import simpy

from simperf.engine.device import Stream
from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Category, Recorder, Span
from simperf.engine.simulation import Simulation
from simperf.execution import launch, record, wait
from simperf.execution.session import Session
from simperf.execution.thread import Spend
from simperf.training.pipelined.communicators import Dimension, Payload
from simperf.training.pipelined.groups import ClassGroup
from simperf.training.pipelined.stage_time import StageTime
from simperf.workload.transformers.passes import Item

__all__ = [
    "ClosedBlock",
    "ClosedLayer",
    "ClosedPass",
    "Payloads",
    "Sequel",
    "in_blocks",
    "launch_block",
    "never_closed",
    "play_alone",
]

#: collectives by dimension, and how many of each there are
Payloads: TypeAlias = Mapping[Dimension, Mapping[Payload, int]]

#: digits of a lead, in parts of the time that launching takes, to which two are the same
DIGITS = 12
#: part of the queue that the launches of one block fill at most: what is left keeps the process ahead
SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ClosedPass:
    """A pass over a layer with some lead.

    Parameters
    ----------
    time : float
        From when the device comes to it to its end [s].
    host : float
        Time that its launches take [s].
    items : int
        Items of the compute stream.
    spent : StageTime
        What it went to.
    work : float
        Shares of the device that kernels asked for, times their times [s].
    payloads : mapping of str to mapping of Payload to int
        Collectives by dimension.
    spans : tuple of Span
        On the timeline, from when the device comes to it, on tracks of the device.
    """

    time: float
    host: float
    items: int
    spent: StageTime
    work: float
    payloads: Payloads
    spans: tuple[Span, ...]


@dataclass(eq=False, slots=True)
class ClosedLayer:
    """A pass over a layer.

    Parameters
    ----------
    play : callable
        Simulates it with a lead [s] in a session of its own.
    """

    play: Callable[[float], ClosedPass]
    ahead: ClosedPass = field(init=False)
    _idle: ClosedPass = field(init=False)
    _between: dict[float, ClosedPass] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._idle = self.play(0.0)
        self.ahead = self.play(self._idle.host)

    @property
    def bound_by_device(self) -> bool:
        """Whether its kernels take longer than their launches."""
        return self.ahead.time >= self.ahead.host

    def fits(self, depth: float) -> bool:
        """Whether a queue of a depth holds so much more than its items that they may leave it together."""
        return self.ahead.items <= SHARE * depth

    def with_lead(self, lead: float) -> ClosedPass:
        """Its outcome where the process has a lead [s]."""
        if lead >= self.ahead.host:
            return self.ahead
        if lead <= 0.0:
            return self._idle
        key = round(lead / self.ahead.host, DIGITS)
        if key not in self._between:
            self._between[key] = self.play(lead)
        return self._between[key]


def never_closed(items: tuple[Item, ...], within: str) -> ClosedLayer | None:
    """No layer is closed."""
    return None


class Sequel:
    """Closed layers one after the other.

    Parameters
    ----------
    layers : sequence of ClosedLayer

    Attributes
    ----------
    items : int
        Items of the compute stream.
    host : float
        Time that their launches take [s].
    far : float
        Lead with which none of them waits for its launches [s].
    spent, work, payloads
        Of all of them together in that case, as in `ClosedPass`; payloads of each that has any.
    """

    __slots__ = ("far", "host", "items", "layers", "payloads", "spent", "work")

    def __init__(self, layers: Sequence[ClosedLayer]) -> None:
        self.layers, ahead = layers, [layer.ahead for layer in layers]
        self.items, self.host = sum(one.items for one in ahead), sum(one.host for one in ahead)
        self.far = max(one.host for one in ahead)  # a lead grows from layer to layer
        self.work, self.spent = sum(one.work for one in ahead), StageTime()
        for one in ahead:
            self.spent.add(one.spent)
        self.payloads = [pair for one in ahead for pair in one.payloads.items() if pair[1]]


class ClosedBlock:
    """Closed layers as one item of a compute stream.

    Parameters
    ----------
    name : str
    sequel : Sequel
        The layers.
    began : float
        When the process has begun to launch them [s].
    spent : StageTime
        Of the rank.
    groups : mapping of str to ClassGroup
        Of its collectives.
    """

    __slots__ = ("began", "groups", "name", "sequel", "spent")

    holds = 0.0
    category: Category = "wait"
    launch: float | None = 0.0
    kernels: tuple[Kernel, ...] = ()  # as of a graph, whose parts are on the timeline themselves

    def __init__(
        self,
        name: str,
        sequel: Sequel,
        began: float,
        spent: StageTime,
        groups: Mapping[Dimension, ClassGroup],
    ) -> None:
        self.name, self.sequel, self.began, self.spent, self.groups = name, sequel, began, spent, groups

    def start(self, stream: Stream) -> None:
        """Find out when each layer ends."""
        now = stream.device.env.now
        if stream.device.recorder is None and now - self.began >= self.sequel.far:
            end = self._end_ahead(stream, now)
        else:
            end = self._end(stream, now)
        stream.path += end - now
        alarm = stream.device.env.timeout(end - now)
        assert alarm.callbacks is not None

        def finish(event: Any) -> None:
            stream.completed += self.sequel.items - 1
            stream.finish(event)

        alarm.callbacks.append(finish)

    def _end_ahead(self, stream: Stream, since: float) -> float:
        """Time at which the last layer ends if no kernel waits for its launch."""
        sequel = self.sequel
        self.spent.add(sequel.spent)
        stream.device.share.work += sequel.work
        for dimension, payloads in sequel.payloads:
            self.groups[dimension].add(payloads)
        for layer in sequel.layers:
            since += layer.ahead.time
        return since

    def _end(self, stream: Stream, since: float) -> float:
        """Time at which the last layer ends, with the lead that each of them has."""
        launched, share, recorder = self.began, stream.device.share, stream.device.recorder
        for layer in self.sequel.layers:
            done = layer.with_lead(since - launched)
            self.spent.add(done.spent)
            share.work += done.work
            for dimension, payloads in done.payloads.items():
                self.groups[dimension].add(payloads)
            if recorder is not None:
                for one in done.spans:
                    track = f"{stream.device.name}/{one.track}"
                    recorder.span(track, one.name, since + one.start, since + one.end, one.category)
            since += done.time
            launched += layer.ahead.host
        return since


def launch_block(block: ClosedBlock, stream: Stream) -> Generator[Any, Any, None]:
    """Launch a block, when the queue has room for all that it stands for."""
    env, items = stream.device.env, block.sequel.items
    while (waiting := stream.submitted - stream.completed) and waiting + items > stream.depth:
        free: simpy.Event = env.event()
        stream.when_free(partial(_succeed, free))
        yield free
    block.began = float(env.now)
    yield launch(block, stream)
    stream.submitted += items - 1
    yield Spend(block.sequel.host, f"launch {block.name}", "overhead")


def _succeed(event: simpy.Event, _: simpy.Event) -> None:
    event.succeed()


def in_blocks(layers: Sequence[ClosedLayer], depth: float) -> list[Sequel]:
    """Layers in groups whose items fill `SHARE` of a queue of `depth` items at most."""
    found: list[list[ClosedLayer]] = []
    items = 0
    for layer in layers:
        if not found or items + layer.ahead.items > SHARE * depth:
            found.append([])
            items = 0
        found[-1].append(layer)
        items += layer.ahead.items
    return [Sequel(own) for own in found]


def play_alone(
    m: Session,
    device: str,
    lead: float,
    process: Callable[[Session], tuple[StageTime, Generator[Any, Any, None]]],
    payloads: Payloads,
) -> ClosedPass:
    """Simulate a pass over a layer in a session of its own.

    Parameters
    ----------
    m : Session
        Whose machine, mode and costs hold.
    device : str
        Where it runs.
    lead : float
        Time by which the device comes to it after the process [s].
    process : callable
        Gives what is spent and the program of the pass in a session.
    payloads : mapping of str to mapping of Payload to int
        Collectives that it does, by dimension.
    """
    outer = m.simulation
    recorder = Recorder() if outer.recorder is not None else None
    simulation = Simulation(outer.machine, seed=outer.seed, depth=outer.depth, recorder=recorder)
    single = Session(simulation, mode=m.mode, profile=m.profile, cost=m.cost)
    gpu = simulation.device(device)
    spent, program = process(single)
    told: dict[str, float] = {}

    def play() -> Generator[Any, Any, None]:
        stream = gpu.stream()
        yield launch(Kernel("lead", time=lead, launch=0.0), gpu)
        before, busy = stream.submitted, gpu.share.work
        spent.listen(stream, before)
        yield from program
        told["host"], told["items"] = simulation.now, stream.submitted - before
        yield wait((yield record(gpu, "layer done")))
        told["end"], told["work"] = simulation.now, gpu.share.work - busy
        spent.slowed += gpu.share.lost

    single.play(play())
    head = f"{device}/"
    # a stream waits from when its wait is launched, here as early as the lead: the layer before still has it then
    spans = tuple(
        one._replace(track=one.track.removeprefix(head), start=max(0.0, one.start - lead), end=one.end - lead)
        for one in (recorder.spans if recorder is not None else ())
        if one.track.startswith(head) and one.name != "lead"
    )
    time = told["end"] - lead
    return ClosedPass(time, told["host"], int(told["items"]), spent, told["work"], payloads, spans)
