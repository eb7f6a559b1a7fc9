"""Training on the boxed cluster, as the simulator plays it: the counterpart of `simperf.calibrate.cluster.training`."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import simpy

from simperf.calibrate.cluster.machine import BoxedMachine, Steps
from simperf.calibrate.cluster.play import gloo_segments
from simperf.training.buckets import Bucket, assign_buckets
from simperf.training.step import Gradient

__all__ = ["Compute", "ddp_rank", "ddp_steps", "serve", "worker"]

#: threads of a process group of gloo: so many collectives of a rank go on at a time
THREADS = 2


@dataclass(frozen=True, slots=True)
class Compute:
    """A training step of one process alone, on a network of equal linear layers.

    Parameters
    ----------
    forward, backward, update : float
        Of the whole network [s].
    layers : int
    width : int
        Inputs and outputs of a layer.
    """

    forward: float
    backward: float
    update: float
    layers: int
    width: int

    @property
    def nbytes(self) -> float:
        """All gradients [B]."""
        return 4.0 * self.width * self.width * self.layers

    @property
    def kernels(self) -> tuple[float, ...]:
        """Of the backward pass, last layer first [s]; the first layer needs no gradient of its input."""
        share = self.backward / (2 * self.layers - 1)
        return (*(2 * share for _ in range(self.layers - 1)), share)

    def buckets(self, cap: float) -> tuple[Bucket, ...]:
        """Cut gradients as DistributedDataParallel does if it is told a size."""
        each = self.nbytes / self.layers
        return assign_buckets([Gradient(f"w{index}", each, index) for index in range(self.layers)], cap, first=cap)

    @classmethod
    def of(cls, model: Mapping[str, int], forward: float, backward: float, update: float) -> Compute:
        """A model of `simperf.calibrate.cluster.experiments` with its measured times."""
        return cls(forward, backward, update, int(model["layers"]), int(model["width"]))


class _Threads:
    """Threads of a rank's process group: they take collectives in order."""

    def __init__(self, machine: BoxedMachine, rank: int, ranks: int) -> None:
        self.machine, self.rank, self.ranks = machine, rank, ranks
        self._queue = simpy.Store(machine.env)
        self._count = 0
        for _ in range(THREADS):
            machine.process(self._thread())

    def all_reduce(self, nbytes: float) -> simpy.Event:
        done = simpy.Event(self.machine.env)
        self._count += 1
        self._queue.put((self._count, nbytes, done))
        return done

    def _thread(self) -> Steps:
        while True:
            slot, nbytes, done = yield self._queue.get()
            yield from self.machine.hand_over()
            yield from gloo_segments(self.machine, self.rank, self.ranks, nbytes, slot)
            yield from self.machine.hand_over()
            done.succeed()


def ddp_rank(
    machine: BoxedMachine, rank: int, ranks: int, compute: Compute, cap: float, steps: int
) -> Generator[simpy.Event, Any, list[float]]:
    """One rank's process; returns when each step ended [s]."""
    threads, constants, ends = _Threads(machine, rank, ranks), machine.constants, []
    buckets = compute.buckets(cap)
    for _ in range(steps):
        yield machine.work(compute.forward)
        pending, works = list(buckets), []
        for index, kernel in enumerate(compute.kernels):
            yield machine.work(kernel)
            while pending and pending[0].ready == index:
                bucket = pending.pop(0)
                yield machine.work(constants.add * bucket.nbytes + constants.call)  # divides by the number of ranks
                works.append(threads.all_reduce(bucket.nbytes))
        yield from works
        yield machine.work(compute.update)
        ends.append(float(machine.env.now))
    return ends


def ddp_steps(machine: BoxedMachine, ranks: int, compute: Compute, cap: float, steps: int = 3) -> list[float]:
    """Steps of rank 0, the first left out [s]."""
    found = [machine.process(ddp_rank(machine, rank, ranks, compute, cap, steps)) for rank in range(ranks)]
    machine.env.run(machine.env.all_of(found))
    ends: list[float] = found[0].value or []
    return [after - before for before, after in pairwise(ends)]


def worker(machine: BoxedMachine, rank: int, server: int, compute: Compute, steps: int) -> Steps:
    """One worker of a parameter server: computes, pushes its gradient, pulls weights."""
    constants, nbytes = machine.constants, compute.nbytes
    for _ in range(steps):
        yield machine.work(compute.forward + compute.backward + constants.add * nbytes)
        yield machine.work(constants.call)
        yield machine.send(rank, server, nbytes)
        yield machine.work(constants.call)
        yield machine.receive(server, rank)
        yield machine.work(constants.add * nbytes)


def serve(machine: BoxedMachine, workers: int, compute: Compute, steps: int, *, synchronous: bool) -> list[Steps]:
    """The server's threads, one a worker."""
    constants, nbytes, server = machine.constants, compute.nbytes, workers
    lock = simpy.Resource(machine.env)
    rounds: dict[int, tuple[list[int], simpy.Event]] = {}

    def together(turn: int) -> simpy.Event:
        come, event = rounds.setdefault(turn, ([], simpy.Event(machine.env)))
        come.append(1)
        if len(come) == workers:
            event.succeed()
        return event

    def one(rank: int) -> Steps:
        for turn in range(steps):
            yield machine.work(constants.call)
            yield machine.receive(rank, server)
            with lock.request() as mine:
                yield mine
                yield machine.work(constants.add * nbytes)
            if synchronous:
                yield together(turn)
            yield machine.work(constants.call)
            yield machine.send(server, rank, nbytes)

    return [one(rank) for rank in range(workers)]
