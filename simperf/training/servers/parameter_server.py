"""Training with parameter servers, from the machine to the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import sub

from simperf.errors import InputError, Problem
from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.memory import Holding, hold
from simperf.training.jitter import Constant
from simperf.training.options import kernel_by_kernel
from simperf.training.outcome import tell_cost, tell_memory, tell_use
from simperf.training.servers.kvstore import KVStore, StoreOptions
from simperf.training.servers.placement import loads
from simperf.training.servers.registration import announce
from simperf.training.servers.worker import Loop, Pace, Pool, Reader, worker
from simperf.training.step import TrainingStep
from simperf.training.stragglers import LinkChange, change_links

__all__ = ["ServerRun", "parameter_server", "report"]


@dataclass(slots=True)
class ServerRun:
    """What came out of training with parameter servers.

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


def parameter_server(
    m: Session,
    step: TrainingStep,
    *,
    gpus: Sequence[str],
    servers: Sequence[str],
    steps: int,
    options: StoreOptions | None = None,
    loop: Loop | None = None,
    pace: Pace | None = None,
    disk: str = "",
    nbytes_stored: float = 0.0,
    need: Callable[[int], float] | None = None,
    opening: bool = False,
    total: int = 0,
    changes: Sequence[LinkChange] = (),
) -> Program:
    """Train with a parameter server; returns a `ServerRun`.

    Parameters
    ----------
    m : Session
    step : TrainingStep
        Of one GPU.
    gpus : sequence of str
        Workers.
    servers : sequence of str
        Node of each server.
    steps : int
        Mini-batches for each worker; where they do not wait for each other, fast ones take more.
    options : StoreOptions, optional
    loop : Loop, optional
    pace : Pace, optional
    disk : str
        Disk of each machine that holds the data, without the machine's name; none reads nothing.
    nbytes_stored : float
        A GPU's batch on that disk [B].
    need : callable, optional
        Memory of any number of samples on a GPU [B], to say how many would fit.
    opening : bool
        Every key is made known to its server first, as in `simperf.training.servers.registration`.
    total : int
        Steps of the whole run: those after `steps` take the mean of the simulated ones but the first; 0 for no more
        than `steps`.
    changes : sequence of LinkChange
        Links that are slow or down for a time.

    Raises
    ------
    InputError
        No steps, fewer in all than are simulated, or anything that `KVStore` refuses.
    DeviceMemoryError
        A GPU's memory does not hold its part of the training.
    """
    kernel_by_kernel(m)
    options, loop, pace = options or StoreOptions(), loop or Loop(), pace or Pace()
    if steps < 1:
        raise InputError(Problem("at least one step is needed", key="steps", value=str(steps)))
    if total and total < steps:
        raise InputError(
            Problem(f"{steps} steps are simulated, more than the whole run has", key="total", value=str(total))
        )
    sizes = [gradient.nbytes for gradient in reversed(step.gradients)]
    if pace.stragglers > len(gpus):
        raise InputError(Problem(f"{pace.stragglers} stragglers of {len(gpus)} workers", key="stragglers"))
    alike = isinstance(pace.jitter, Constant) and not pace.stragglers and not disk and not changes
    store = KVStore(m, sizes, gpus=gpus, servers=servers, options=options, alike=alike)
    change_links(m.simulation, changes)
    pool = Pool(store, steps)
    count = len(store.workers)
    if store.copies > 1:
        m.notes.append(f"{store.copies} machines do the same at the same time: one is simulated for all")
    readers: dict[str, Reader] = {}
    began, finished, ended = m.now, [0], [m.now]
    ends: list[float] = []
    if opening:
        yield from announce(m, store)
    opened = m.now - began

    def stamp() -> None:
        finished[0] += 1
        ended[0] = m.now
        if finished[0] % count == 0:
            ends.append(m.now)

    if step.memory:
        hold([Holding(m.simulation.device(kv.gpu).memory, step.memory, step.samples, need) for kv in store.workers])
    threads = []
    for index, kv in enumerate(store.workers):
        if disk and kv.team.route.host not in readers:
            prefix = kv.gpu.rpartition("/")[0]
            readers[kv.team.route.host] = Reader(m, f"{prefix}/{disk}" if prefix else disk, nbytes_stored)
        factors = pace.factors(partial(m.rng, f"worker{index}"), straggler=index >= count - pace.stragglers)
        program = worker(
            m,
            kv,
            step,
            pool,
            loop=loop,
            pace=factors,
            reader=readers.get(kv.team.route.host),
            done=stamp,
        )
        threads.append(m.spawn(program, f"worker{index}", host=kv.team.route.host))
    if options.rule.backup:
        yield wait(store.reached(steps), why="wait: last update")
    else:
        for thread in threads:
            yield wait(thread.done, why="wait: workers")
    store.settle()
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
    return ServerRun(
        store,
        count * store.copies,
        pool.taken * store.copies,
        time,
        step_time,
        trained * step.samples / time if time else 0.0,
        max(0.0, step_time - _computing(step, updates=loop.updates)),
        time + (total - rounds) * step_time if total else 0.0,
        (max(later) - min(later)) * len(later) / sum(later) if later else 0.0,
        opened,
    )


def _computing(step: TrainingStep, *, updates: bool) -> float:
    kernels = (*step.forward, *step.backward, *(step.update if updates else ()))
    return sum(kernel.time for kernel in kernels)


def report(m: Session, run: ServerRun, step: TrainingStep, *, alone: float) -> None:
    """Put the numbers of a run into the session's metrics.

    Parameters
    ----------
    m : Session
    run : ServerRun
    step : TrainingStep
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
