"""Workers of a parameter server: each computes at its own pace, and the store keeps them together.

Whether they wait for each other is the store's rule, not theirs: the same loop runs synchronously,
asynchronously, with bounded staleness or with backup workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import simpy

from simperf.engine.device import Device
from simperf.engine.items import Marker
from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.execution import Program, copy, launch, record, synchronize, wait
from simperf.execution.drives import find_disk
from simperf.execution.session import Session
from simperf.training.data.loading import AHEAD
from simperf.training.jitter import Constant, Distribution, scaled, stream
from simperf.training.servers.kvstore import KVStore, KVWorker
from simperf.training.step import ReplicaStep

__all__ = ["BatchReader", "Loop", "Pace", "Pool", "needed_by", "worker"]


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of the workers: how steadily they compute.

    Parameters
    ----------
    jitter : Distribution
        Of the factor on the computing time of a step; its mean should be 1.
    stragglers : int
        Workers that are always slow: the last ones.
    factor : float
        By how much [1].
    """

    jitter: Distribution = field(default_factory=Constant)
    stragglers: int = 0
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.stragglers < 0 or not 0.0 < self.factor < math.inf:
            raise InputError(Problem("stragglers of 0 or more and a factor above 0 are expected", key="stragglers"))

    def factors(self, rng: Callable[[], np.random.Generator], *, straggler: bool) -> Iterator[float]:
        """Factors on the computing time, step by step, drawn from the stream that `rng` makes."""
        base = self.factor if straggler else 1.0
        if isinstance(self.jitter, Constant):
            return repeat(base * self.jitter.mean)
        return (base * number for number in stream(self.jitter, rng()))


class Pool:
    """Mini-batches that are left: teams take them one by one, so that fast ones take more.

    Parameters
    ----------
    store : KVStore
    steps : int
        Mini-batches for each team on average.
    """

    def __init__(self, store: KVStore, steps: int) -> None:
        self.store, self.steps = store, steps
        self.left = steps * len(store.teams)
        self.taken = 0
        self._granted: list[list[bool]] = [[] for _ in store.teams]

    def take(self, kv: KVWorker) -> bool:
        """Whether there is work for the worker's next step; GPUs of one team get the same answer."""
        if self.store.options.rule.collects:
            granted = kv.step < self.steps
            self.taken += granted and kv.gpu == kv.team.route.gpus[0]
            return granted
        answers = self._granted[kv.team.number]
        if len(answers) == kv.turn:
            answers.append(self.left > 0)
            self.left -= answers[-1]
            self.taken += answers[-1]
        return answers[kv.turn]


class BatchReader:
    """Reads a machine's batches from its disk, one ahead (step 1 of the chapter's seven).

    Parameters
    ----------
    m : Session
    node : str
        The disk.
    nbytes : float
        What one GPU's batch is on the disk [B].

    Raises
    ------
    InputError
        There is no such disk.
    """

    def __init__(self, m: Session, node: str, nbytes: float) -> None:
        self.nbytes = nbytes
        self._disk = find_disk(m, node)

    def batch(self) -> simpy.Event:
        """Event that comes when one more batch has been read."""
        return self._disk.read(self.nbytes, sequential=True)


@dataclass(frozen=True, slots=True)
class Loop:
    """Loop of a worker over its steps.

    Parameters
    ----------
    overlap : bool
        A gradient is pushed as soon as its backward kernel is done, not after the whole backward pass.
    barrier : bool
        The next step begins when all weights are there; without it, each layer's forward kernel
        waits for its own weights only (Zhang et al., "Poseidon", ATC 2017; P3, MLSys 2019).
    updates : bool
        The worker runs the step's own update kernels on what it has pulled (the servers only add up).
    ahead : bool
        Mini-batches are copied to the device beside the step before theirs.
    """

    overlap: bool = True
    barrier: bool = True
    updates: bool = False
    ahead: bool = False


def needed_by(step: ReplicaStep) -> dict[int, list[int]]:
    """Keys whose weights each forward kernel reads first.

    Keys number the gradients from the last to become ready. A step does not say which forward kernel reads
    which weight; the forward pass is taken to mirror the backward pass in the share of its time that has passed.

    Examples
    --------
    >>> from simperf.training.step import even_step
    >>> needed_by(even_step(3, forward=3.0, backward=6.0, nbytes=1.0))
    {0: [0], 1: [1], 2: [2]}
    """
    found: dict[int, list[int]] = {}
    if not step.forward:
        return found
    ends = np.cumsum([kernel.time for kernel in step.backward])
    starts = np.cumsum([0.0, *(kernel.time for kernel in step.forward)])[:-1]
    whole, total = max(float(ends[-1]), 1e-300), sum(kernel.time for kernel in step.forward)
    for position, gradient in enumerate(step.gradients):
        at = (1.0 - float(ends[gradient.ready]) / whole) * total
        kernel = max(0, int(np.searchsorted(starts, at + 1e-9 * total, side="right")) - 1)
        found.setdefault(kernel, []).append(len(step.gradients) - 1 - position)
    return {kernel: sorted(found[kernel]) for kernel in sorted(found)}


def worker(  # noqa: C901 (reads like a worker's loop)
    m: Session,
    kv: KVWorker,
    step: ReplicaStep,
    pool: Pool,
    *,
    loop: Loop,
    pace: Iterator[float],
    reader: BatchReader | None = None,
    done: Callable[[], None] | None = None,
) -> Program:
    """Train on one GPU until the pool is empty.

    Parameters
    ----------
    m : Session
    kv : KVWorker
        This GPU's view of the store.
    step : ReplicaStep
    pool : Pool
    loop : Loop
    pace : iterator of float
        Factors on the computing time.
    reader : BatchReader, optional
        Where its batches come from.
    done : callable, optional
        Called after every step.
    """
    gpu, host = m.simulation.device(kv.gpu), kv.team.route.host
    needs = {} if loop.barrier else needed_by(step)
    ready: dict[int, list[int]] = {}
    for position, gradient in enumerate(step.gradients):
        last = gradient.ready if loop.overlap else len(step.backward) - 1
        ready.setdefault(last, []).append(len(step.gradients) - 1 - position)
    weights: dict[int, simpy.Event] = {}
    batch = reader.batch() if reader else None
    batches = _BatchesAhead(gpu, host, step.nbytes_input)
    while pool.take(kv):
        slow = next(pace)
        if batch is not None and reader is not None:
            yield wait(batch, why="wait: data")
            batch = reader.batch()
        if step.nbytes_input and loop.ahead:
            yield from batches.next()
        elif step.nbytes_input:
            yield copy(host, gpu, nbytes=step.nbytes_input, name="batch to device")
        for index, kernel in enumerate(step.forward):  # loss = net(x)
            for key in needs.get(index, ()):
                if key in weights:
                    yield wait(weights[key], gpu)
            yield launch(_slowed(kernel, slow), gpu)
        for index, kernel in enumerate(step.backward):  # loss.backward()
            yield launch(_slowed(kernel, slow), gpu)
            if index in ready:
                grad = yield record(gpu, "gradients ready")
                for key in ready[index]:
                    kv.push(key, grad)
                    weights[key] = kv.pull(key)
        yield wait(grad, why="wait: backward")
        if loop.barrier:
            yield kv.wait()
        for kernel in step.update if loop.updates else ():  # optimizer.step()
            yield launch(_slowed(kernel, slow), gpu)
        kv.next()
        if done is not None:
            done()
    yield kv.wait()
    if loop.updates:
        yield synchronize(gpu)  # the last update
    kv.leave()


class _BatchesAhead:
    """Mini-batches of a worker that are copied on a stream of their own, beside the step before theirs."""

    def __init__(self, gpu: Device, host: str, nbytes: float) -> None:
        self.gpu, self.host, self.nbytes = gpu, host, nbytes
        self._copied: Marker | None = None

    def next(self) -> Program:
        """Let the device wait for the mini-batch of this step, and copy that of the next."""
        if self._copied is None:
            self._copied = yield from self._copy()
        yield wait(self._copied, self.gpu)
        self._copied = yield from self._copy()

    def _copy(self) -> Generator[Any, Any, Marker]:
        side = self.gpu.stream(AHEAD)
        yield copy(self.host, self.gpu, nbytes=self.nbytes, stream=side, name="batch to device")
        copied: Marker = yield record(side, "batch copied")
        return copied


def _slowed(kernel: Kernel, factor: float) -> Kernel:
    return kernel if factor == 1.0 else scaled(kernel, factor)
