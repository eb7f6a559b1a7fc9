"""Training with parameter servers: the workers and the servers of a job, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import sub
from typing import Any, cast

from simperf.errors import InputError, Problem
from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.memory import Holding, hold
from simperf.training.alone import time_alone
from simperf.training.boards import on_boards
from simperf.training.data.loading import placed_batches
from simperf.training.data_loaders import Feeding
from simperf.training.jitter import Constant
from simperf.training.job import Devices, Input, Job
from simperf.training.outcome import tell_cost, tell_launches, tell_memory, tell_use
from simperf.training.servers.compression import DENSE
from simperf.training.servers.kvstore import KVStore, StoreOptions
from simperf.training.servers.placement import loads, server_nodes
from simperf.training.servers.registration import announce
from simperf.training.servers.worker import BatchReader, Loop, Pace, Pool, worker
from simperf.training.step import ReplicaStep
from simperf.training.stragglers import change_links
from simperf.training.strategies import Servers
from simperf.training.variation import slowest

__all__ = ["ServedRun", "ServerOutcome"]


@dataclass(slots=True)
class ServerOutcome:
    """Results of training with parameter servers.

    Parameters
    ----------
    store : KVStore
    workers : int
        GPUs.
    steps : int
        Mini-batches that were trained on, all teams together.
    time : float
        Whole run [s].
    step_time : float
        A step without the first one [s]: from the moment when all had done their first step, over the steps after it.
    samples_per_second : float
        Over the whole run [1/s].
    exposed : float
        Time of a step that the devices do not compute in [s].
    long_run : float
        Time of the run with all its steps, those that were not simulated too; 0 if nobody asked [s].
    differ : float
        By how much the simulated steps after the first differ, longest less shortest over their mean [1].
    opened : float
        Time before the first step [s].
    """

    store: KVStore
    workers: int
    steps: int
    time: float
    step_time: float
    samples_per_second: float
    exposed: float
    long_run: float = 0.0
    differ: float = 0.0
    opened: float = 0.0


class ServedRun:
    """A job whose workers push gradients to servers and pull weights from them.

    Parameters
    ----------
    m : Session
    job : Job

    Raises
    ------
    InputError
        All that has no meaning on this machine, or no effect with servers.
    """

    def __init__(self, m: Session, job: Job) -> None:
        strategy = job.strategy
        assert isinstance(strategy, Servers)
        self.m, self.job, self.strategy = m, job, strategy
        if problems := _without_effect(job, strategy):
            raise InputError(problems)
        self.gpus = strategy.workers(m.machine, job.gpus)
        self.servers = strategy.nodes or server_nodes(
            m.machine, self.gpus, servers=strategy.servers, where=strategy.where
        )
        samples, workers = job.samples(len(self.gpus)), len(self.gpus)
        if samples < workers or samples % workers:
            expected = f"a multiple of {workers}, or batch_per_gpu"
            raise InputError(Problem("workers share it evenly", key="batch", value=str(samples), expected=expected))
        self.batch = samples // workers
        there = len(set(self.servers))
        if there < len(self.servers):
            m.notes.append(f"{len(self.servers)} servers live on {there} nodes and share their ports")
        self.options = StoreOptions.of(strategy, job.stack)
        disturbances = job.disturbances
        self.pace = Pace(disturbances.paces, disturbances.stragglers, disturbances.slowdown)
        ahead = job.input.batches == "ahead"
        self.loop = Loop(strategy.overlap, strategy.barrier, updates=strategy.update.on_workers, ahead=ahead)
        self._alone = self._long_run = 0.0

    @property
    def machines(self) -> int:
        """Machines of the workers and of the servers."""
        nodes = self.m.machine.nodes
        return len({nodes[name].server for name in (*self.gpus, *self.servers) if name in nodes})

    @property
    def long_run(self) -> float:
        """Time of the whole run with all its steps, once it was simulated [s]; 0 if nobody asked."""
        return self._long_run

    def steps(self) -> list[ReplicaStep]:
        """The step of each worker, which is the same for all."""
        first = self.m.simulation.device(self.gpus[0])
        step = self.job.model.step(self.m, first, self.batch)
        return [placed_batches(step, self.job.input.batches)] * len(self.gpus)

    def time_alone(self, step: ReplicaStep) -> float:
        """Time of a step of one worker by itself [s]."""
        disk, stored = self.job.input.disk, self.job.input.stored
        feeding = Feeding(disk=disk, stored=stored, workers=1, prefetch=1) if disk and stored else Feeding()
        return time_alone(self.m, step, self.gpus[0], feeding=feeding, ahead=self.loop.ahead)

    def paced(self, steps: Sequence[ReplicaStep]) -> list[ReplicaStep]:
        """The steps at the speed of the slowest worker that is waited for, over that of one taken at random."""
        speed, consistency = 1.0, self.strategy.consistency
        if consistency.collects:
            speed = slowest(len(self.gpus), self.job.disturbances.variation, spared=consistency.backup)
        return on_boards(self.m.machine, self.gpus, steps, speed=speed)

    def play(self, steps: Sequence[ReplicaStep], nominal: ReplicaStep) -> Program:
        """Simulate the job and report what came of it."""
        m, job = self.m, self.job
        alone = self.time_alone(nominal)
        outcome = yield self.train(m, steps, self.options)
        self._long_run = outcome.long_run
        _report(m, outcome, steps[0], alone=alone)
        m.work(f"samples of {job.model.name}", outcome.samples_per_second * outcome.time)
        if self.strategy.compression.beside_dense:
            dense = self._dense(steps)
            m.metric("time relative to dense", (outcome.long_run or outcome.time) / (dense.long_run or dense.time))
            m.metric("dense: time per step", dense.step_time, "s")

    def _dense(self, steps: Sequence[ReplicaStep]) -> ServerOutcome:
        """The run without compression, in a session of its own."""
        beside, found = self.m.another(), []

        def train() -> Program:
            found.append((yield self.train(beside, steps, replace(self.options, codec=DENSE))))

        beside.play(train())
        return cast(ServerOutcome, found[0])

    def train(self, m: Session, each: Sequence[ReplicaStep], options: StoreOptions) -> Program:
        """Train in a session, with the step of `each` worker; returns a `ServerOutcome`."""
        job, pace, step = self.job, self.pace, each[0]
        steps, changes, gpus = job.steps, job.disturbances.changes, self.gpus
        own = dict(zip(gpus, each, strict=True))
        sizes = [gradient.nbytes for gradient in reversed(step.gradients)]
        if pace.stragglers > len(gpus):
            raise InputError(
                Problem(
                    f"{pace.stragglers} stragglers of {len(gpus)} workers",
                    key="stragglers",
                    expected=f"at most {len(gpus)}",
                )
            )
        alike = isinstance(pace.jitter, Constant) and not pace.stragglers and not job.input.disk and not changes
        alike = alike and len({id(one) for one in each}) == 1
        store = KVStore(m, sizes, gpus=gpus, servers=self.servers, options=options, alike=alike)
        change_links(m.simulation, changes)
        pool = Pool(store, steps)
        count = len(store.workers)
        if store.copies > 1:
            m.notes.append(f"{store.copies} machines do the same at the same time: one is simulated for all")
        began, finished, ended = m.now, [0], [m.now]
        ends: list[float] = []
        if options.serving.opening:
            yield from announce(m, store)
        opened = m.now - began

        def stamp() -> None:
            finished[0] += 1
            ended[0] = m.now
            if finished[0] % count == 0:
                ends.append(m.now)

        if step.memory:
            need = self._need
            hold([Holding(m.simulation.device(kv.gpu).memory, step.memory, step.samples, need) for kv in store.workers])
        readers: dict[str, BatchReader] = {}
        threads = []
        for index, kv in enumerate(store.workers):
            reader = self._reader(m, readers, kv.team.route.host, kv.gpu)
            factors = pace.factors(partial(m.rng, f"worker{index}"), straggler=index >= count - pace.stragglers)
            program = worker(m, kv, own[kv.gpu], pool, loop=self.loop, pace=factors, reader=reader, done=stamp)
            threads.append(m.spawn(program, f"worker{index}", host=kv.team.route.host))
        if options.rule.backup:
            yield wait(store.reached(steps), why="wait: last update")
        else:
            for thread in threads:
                yield wait(thread.done, why="wait: workers")
        store.settle()
        tell_launches(m, (thread.launch_time for thread in threads))
        time = m.now - began
        rounds = max(1, pool.taken // max(1, len(store.teams)))
        if options.rule.backup:
            rounds = steps
            step_time = time / steps
            trained = steps * options.rule.needed(len(store.teams)) * (count / len(store.teams))
        else:
            trained = pool.taken * store.copies * count / len(store.teams)
            step_time = (ended[0] - ends[0]) / (rounds - 1) if rounds > 1 else time
        later = list(map(sub, ends[1:], ends))
        return ServerOutcome(
            store,
            count * store.copies,
            pool.taken * store.copies,
            time,
            step_time,
            trained * step.samples / time if time else 0.0,
            max(0.0, step_time - max(_computing(one, updates=self.loop.updates) for one in each)),
            time + (job.total - rounds) * step_time if job.total else 0.0,
            (max(later) - min(later)) * len(later) / sum(later) if later else 0.0,
            opened,
        )

    def _need(self, samples: int) -> float:
        """Memory of any number of samples on a GPU [B]."""
        return math.fsum(self.job.model.memory(samples).values())

    def _reader(self, m: Session, readers: dict[str, BatchReader], host: str, gpu: str) -> BatchReader | None:
        """Where a worker's batches come from: its machine's reader, made for its first worker."""
        disk = self.job.input.disk
        if disk and host not in readers:
            prefix = gpu.rpartition("/")[0]
            nbytes = self.job.input.stored * self.batch
            readers[host] = BatchReader(m, f"{prefix}/{disk}" if prefix else disk, nbytes)
        return readers.get(host)


#: what workers of servers have no use for: they read one batch ahead from a disk, and share the batch evenly
_UNUSED: tuple[tuple[str, type[Any], tuple[str, ...]], ...] = (
    ("input", Input, ("loop", "decode", "workers", "prefetch", "jitter", "cv", "counted", "dataset")),
    ("devices", Devices, ("nodes", "split", "speeds", "exact")),
)


def _without_effect(job: Job, strategy: Servers) -> list[Problem]:
    """Parts of a job that workers of parameter servers do not have, and that were given."""
    problems = []
    for section, kind, names in _UNUSED:
        defaults = {one.name: getattr(kind(), one.name) for one in fields(kind)}
        for name in names:
            value = getattr(getattr(job, section), name)
            if value != defaults[name]:
                message = "workers of parameter servers have no use for it"
                problems.append(
                    Problem(message, key=f"{section}.{name}", value=str(value), expected="the option left out")
                )
    if not strategy.consistency.collects and job.disturbances.variation:
        expected = 'mode = "synchronous" or "backup", or no variation'
        value = f"{job.disturbances.variation:g}"
        problems.append(Problem("nobody waits for the slowest", key="variation", value=value, expected=expected))
    update = getattr(job.model, "update", 0.0)
    if update and not strategy.update.on_workers:
        message = "the servers update: a time of the optimizer is of workers that do"
        problems.append(Problem(message, key="update", value=f"{update:g}", expected="update.on_workers"))
    return problems


def _computing(step: ReplicaStep, *, updates: bool) -> float:
    kernels = (*step.forward, *step.backward, *(step.update if updates else ()))
    return sum(kernel.time for kernel in kernels)


def _report(m: Session, run: ServerOutcome, step: ReplicaStep, *, alone: float) -> None:
    """Put the numbers of a run into the session's metrics.

    Parameters
    ----------
    m : Session
    run : ServerOutcome
    step : ReplicaStep
        Of one GPU.
    alone : float
        Time of a step of one GPU by itself [s]; 0 if there is nothing to compare with.
    """
    store = run.store
    m.metric("time per step", run.step_time, "s")
    if run.opened:
        m.metric("time before the first step", run.opened, "s")
    if run.long_run:
        m.metric("run time", run.long_run, "s")
        text = "steps of the run that are not simulated take the mean of the others but the first, which differ by"
        m.notes.append(f"{text} {100 * run.differ:.2g} %")
    m.metric("samples per second", run.samples_per_second, "1/s")
    tell_cost(m, run.step_time, run.samples_per_second)
    if alone:
        m.metric("scaling efficiency", run.samples_per_second * alone / (step.samples * run.workers))
    m.metric("exposed communication", run.exposed, "s")
    tell_use(m, [m.simulation.device(kv.gpu) for kv in store.workers])
    tell_memory(m, step.memory)
    m.metric("server memory busy", max(site.busy for site in store.server_sites()) / run.time if run.time else 0.0)
    kept = loads(store.shards, len(store.servers))
    m.metric("fullest server", max(kept), "B")
    m.metric("bytes carried", store.courier.carried, "B")
    if not store.options.rule.collects:
        ages = store.staleness
        m.metric("staleness mean", ages.mean)
        m.metric("staleness median", ages.quantile(0.5))
        m.metric("staleness 95 %", ages.quantile(0.95))
        m.metric("staleness highest", ages.highest)
        total = sum(ages.counts.values())
        if total:
            text = ", ".join(f"{age}: {100 * ages.counts[age] / total:.1f} %" for age in sorted(ages.counts)[:24])
            m.notes.append(f"staleness of the gradients: {text}{' ...' if len(ages.counts) > 24 else ''}")
    if store.options.rule.backup:
        m.metric("gradients dropped", store.dropped)
