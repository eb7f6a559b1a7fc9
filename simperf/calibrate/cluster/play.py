"""What the boxed hosts do, as the simulator plays it: the counterpart of `simperf.calibrate.cluster.jobs`.

The ring of gloo is that of its source (``gloo/allreduce.cc``): the payload is cut into at least two segments a rank,
none larger than 1 MiB; a rank has two segments under way at a time, so that one is added up while the other travels.
"""

from __future__ import annotations

from collections.abc import Callable

import simpy

from simperf.calibrate.cluster.machine import BoxedMachine, Steps
from simperf.collectives import Plan

__all__ = ["SEGMENT", "finish", "gloo_ring", "gloo_segments", "play_plan", "round_trip", "send", "train"]

#: largest segment of gloo's ring [B]
SEGMENT = 1024 * 1024


def finish(machine: BoxedMachine, threads: list[Steps], again: float | None = None) -> float:
    """Run threads from the common start to the end of the last [s].

    Parameters
    ----------
    machine : BoxedMachine
    threads : list of generator
        One a host.
    again : float, optional
        Payload of an all-reduce that is repeated [B]. Who is done goes on to the next one at once: fills the payload,
        and agrees on the next start by an all-reduce of one number (`simperf.calibrate.cluster.worker.Work.together`).
        No thread makes way for one of its own priority (`simperf.calibrate.cluster.priority`), so that others who are
        done too, but have to read the clock yet, wait for a core until it sleeps again.
    """
    cores = simpy.Resource(machine.env, max(1, round(machine.constants.cores)))

    def next_one(rank: int, nbytes: float, core: simpy.resources.resource.Request) -> Steps:
        yield machine.work(machine.constants.around + machine.constants.add * nbytes)
        cores.release(core)
        yield from gloo_ring(machine, rank, len(threads), 8.0, slot=1)

    def entered(rank: int, steps: Steps) -> Steps:
        yield machine.work(machine.constants.start)
        yield from steps
        if again is not None:
            core = cores.request()
            yield core
            machine.process(next_one(rank, again, core))

    done = machine.env.all_of([machine.process(entered(rank, steps)) for rank, steps in enumerate(threads)])
    machine.env.run(done)
    return float(machine.env.now)


def send(machine: BoxedMachine, rank: int, nbytes: float) -> Steps:
    """Rank 0 sends to rank 1."""
    yield machine.work(machine.constants.call)
    yield machine.send(0, 1, nbytes) if rank == 0 else machine.receive(0, 1)


def round_trip(machine: BoxedMachine, rank: int, nbytes: float, times: int = 1) -> Steps:
    """Rank 0 sends to rank 1, which sends it back."""
    slept = 0.0
    for turn in range(2 * times):
        yield from machine.resume(slept, machine.constants.call)
        src, began = turn % 2, float(machine.env.now)
        yield machine.send(src, 1 - src, nbytes) if rank == src else machine.receive(src, 1 - src)
        slept = 0.0 if rank == src else float(machine.env.now) - began


def train(machine: BoxedMachine, rank: int, nbytes: float, messages: int) -> Steps:
    """Rank 0 sends so many messages to rank 1 without waiting for any."""
    events = []
    for _ in range(messages):
        yield machine.work(machine.constants.call)
        events.append(machine.send(0, 1, nbytes) if rank == 0 else machine.receive(0, 1))
    yield machine.env.all_of(events)


def play_plan(machine: BoxedMachine, plan: Plan, rank: int, nbytes: float) -> Steps:
    """One participant's part in a plan, round by round."""
    (channel,) = plan.channels
    constants = machine.constants
    slept = 0.0
    for phase in channel.phases:
        for one in phase:
            rows = list(one.rows())
            takes, leaving = [], []
            for src, dst, _, span, reduce in rows:
                if dst == rank:
                    yield from machine.resume(slept, constants.call)
                    slept = 0.0
                    takes.append((machine.receive(src, dst), nbytes * span / channel.nchunks, reduce))
            for src, dst, _, span, _ in rows:
                if src == rank:
                    yield from machine.resume(slept, constants.call)
                    slept = 0.0
                    leaving.append(machine.send(src, dst, nbytes * span / channel.nchunks))
            for event, size, reduce in takes:
                began = float(machine.env.now)
                yield event
                slept = max(slept, float(machine.env.now) - began)
                if reduce:
                    yield machine.work(constants.add * size)
            for event in leaving:
                yield event


def gloo_ring(machine: BoxedMachine, rank: int, ranks: int, nbytes: float, slot: int = 0) -> Steps:
    """One rank's part in gloo's all-reduce: a thread of its group does it, and wakes the caller at the end."""
    yield machine.work(machine.constants.call)
    yield from machine.hand_over()
    yield from gloo_segments(machine, rank, ranks, nbytes, slot)
    yield from machine.hand_over()


def gloo_segments(machine: BoxedMachine, rank: int, ranks: int, nbytes: float, slot: int = 0) -> Steps:
    """Gloo's all-reduce from the moment at which its own thread takes it up."""
    count = max(-(-int(nbytes) // SEGMENT), 2 * ranks)
    count = -(-count // ranks) * ranks
    each = count // ranks
    size = 4 * -(-int(nbytes) // (4 * count))
    before, after = (rank - 1) % ranks, (rank + 1) % ranks

    def length(first: int, index: int) -> float:
        offset = ((rank + first) * each + index) * size % (count * size)
        return max(0.0, min(float(size), nbytes - offset))

    def halves(first: int, added: Callable[[float], Steps]) -> Steps:
        turns = count - each
        under_way: list[tuple[simpy.Event | None, simpy.Event | None, float]] = []
        for index in range(turns + 2):
            if index >= 2:
                received, sent, got = under_way[index - 2]
                if received is not None:
                    began = float(machine.env.now)
                    yield received
                    yield from machine.resume(float(machine.env.now) - began)
                    yield from added(got)
                if sent is not None:
                    yield sent
            if index < turns:
                leaves, comes = length(first, index), length(first + 1, index)
                received = machine.receive(after, rank, slot) if comes > 0 else None
                sent = machine.send(rank, before, leaves, slot) if leaves > 0 else None
                under_way.append((received, sent, comes))

    def adding(nbytes: float) -> Steps:
        yield machine.work(machine.constants.add * nbytes)

    def nothing(_: float) -> Steps:
        yield from ()

    yield from halves(1, adding)
    yield from halves(0, nothing)
