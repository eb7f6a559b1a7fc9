"""Data parallelism: the processes of a job in which every device has the whole model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, repeat
from typing import Any

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.memory import Holding, hold
from simperf.training.alone import time_alone
from simperf.training.boards import on_boards
from simperf.training.data.buckets import Bucket, assign_buckets
from simperf.training.data.data_parallel import data_parallel
from simperf.training.data.ddp import ddp
from simperf.training.data.group import Group
from simperf.training.data.heterogeneous import even_split, proportional_split
from simperf.training.data.loading import placed_batches
from simperf.training.data.local_sgd import local_sgd
from simperf.training.data.naive import naive
from simperf.training.data.reads import HostReads
from simperf.training.data.symmetry import make_replicas
from simperf.training.data_loaders import attach, tell_feeds
from simperf.training.jitter import jittered, stream
from simperf.training.job import Job
from simperf.training.outcome import spread, step_time, tell, tell_launches
from simperf.training.replica import Replica, faster
from simperf.training.step import Ahead, ReplicaStep
from simperf.training.stragglers import change_links
from simperf.training.strategies import DDP, ONE_PROCESS, STRATEGIES, ByHand, DataParallel, LocalSGD
from simperf.training.variation import slowest

__all__ = ["ReplicatedRun"]

#: micro-batches of one device that are played, equally far apart, before more of them are counted and not played
PLAYED = (8, 12, 16)
#: the same where one of them is more kernels than may wait to run, so that the second finds things as any other does
PLAYED_LONG = (2, 3, 4)
#: part of a time that is rounding
ROUNDING = 1e-10

_EXACT: Mapping[str, bool | None] = {"auto": None, "yes": True, "no": False}


class ReplicatedRun:
    """A job of which every device has the whole model: DDP, DataParallel, by hand, or local SGD.

    Parameters
    ----------
    m : Session
    job : Job

    Raises
    ------
    InputError
        All that has no meaning on this machine.
    """

    def __init__(self, m: Session, job: Job) -> None:
        self.m, self.job, self.strategy = m, job, job.strategy
        self.nodes = _nodes(m, job)
        self.samples = job.samples(len(self.nodes))
        self.feeding = job.input.feeding()
        self.accumulate = self.strategy.accumulate if isinstance(self.strategy, DDP | LocalSGD) else 1
        #: micro-batches of the step of one device that others are compared with
        self.alone_accumulate = job.devices.alone_accumulate or self.accumulate
        self.watched = self.strategy.watched if isinstance(self.strategy, DDP | LocalSGD | DataParallel) else False
        self.reads = HostReads(step=self.watched)
        if isinstance(self.strategy, DDP):
            self.reads = replace(self.reads, **dict.fromkeys(self.strategy.waits, True))
        #: whether one process drives all devices
        self.one_process = isinstance(self.strategy, ONE_PROCESS)
        #: whether ranks differ by more than what they compute
        self.uneven = not (self.feeding.idle and job.disturbances.steady) or bool(job.disturbances.changes)
        self._long_run = 0.0
        self._refuse()
        self._one_server()

    def _refuse(self) -> None:
        devices, ranks, accumulate = self.job.devices, len(self.nodes), self.accumulate
        speeds = len(devices.speeds)
        whole = self.samples % accumulate == 0 if accumulate >= 1 else False
        stragglers, counted = self.job.disturbances.stragglers, self.job.input.counted
        problems = [
            Problem(message, key=key, value=str(value))
            for key, value, right, message in (
                ("accumulate", accumulate, whole, f"a divisor of the batch of {self.samples} is expected"),
                ("devices", ranks, ranks >= 1, "one device or more is expected"),
                ("devices", ranks, len(set(self.nodes)) == ranks, "a device takes part once"),
                ("counted", counted, 0 < counted < math.inf, "a number above 0 is expected"),
                ("speeds", speeds, speeds <= ranks, f"there are more speeds than {ranks} devices"),
                ("stragglers", stragglers, stragglers <= ranks, f"there are {ranks} devices"),
            )
            if not right
        ]
        if devices.gpus and devices.nodes:
            problems.append(Problem("the devices are named", key="gpus", value=str(devices.gpus), expected="no gpus"))
        if devices.exact == "no" and self.one_process:
            message = f"{self.name} is one process, which drives every rank"
            problems.append(Problem(message, key="exact", value="no", expected="auto or yes, or strategy ddp"))
        if self.uneven and devices.exact == "no" and ranks > 1:
            told = "with data loaders, jitter or slow links every rank has times of its own"
            problems.append(Problem(told, key="exact", value="no", expected="auto or yes"))
        if problems:
            raise InputError(problems)

    @property
    def name(self) -> str:
        """Of the strategy, as files have it."""
        return next(name for name, kind in STRATEGIES.items() if isinstance(self.strategy, kind))

    @property
    def machines(self) -> int:
        """Servers of the machine whose devices train."""
        return len(self._servers())

    @property
    def long_run(self) -> float:
        """Time of the whole run with all its steps, once it was simulated [s]; 0 if nobody asked."""
        return self._long_run

    def _servers(self) -> dict[str, None]:
        nodes = self.m.machine.nodes
        return dict.fromkeys(nodes[name].server for name in self.nodes if name in nodes)

    def _one_server(self) -> None:
        """Refuse devices of several servers where one process drives them all."""
        servers = self._servers()
        if self.one_process and len(servers) > 1:
            message = f"{self.name} is one process, which drives the devices of one server; these are in {len(servers)}"
            raise InputError(
                Problem(message, key="strategy", value=self.name, expected="ddp, or devices of one server")
            )

    def steps(self) -> list[ReplicaStep]:
        """The step of each rank; ranks that do the same share one object."""
        m, job, devices = self.m, self.job, self.job.devices
        made: dict[tuple[Any, ...], ReplicaStep] = {}
        speeds = [*devices.speeds, *[1.0] * (len(self.nodes) - len(devices.speeds))]
        nodes = m.machine.nodes

        def step(rank: int, samples: int) -> ReplicaStep:
            node = self.nodes[rank]
            part = nodes[node].part if node in nodes else None
            key = (id(part), speeds[rank], samples)
            if key not in made:
                own = job.model.step(m, m.simulation.device(node), samples)
                made[key] = faster(placed_batches(own, job.input.batches), speeds[rank])
            return made[key]

        def time(rank: int) -> Callable[[int], float]:
            return lambda samples: step(rank, samples).compute_time

        samples, ranks = self.samples // self.accumulate, len(self.nodes)
        if devices.split == "even":
            shares = even_split(samples, ranks)
        else:
            even_split(samples, ranks)  # a sample or more for each, or there is nothing to split
            shares = proportional_split(samples, [time(rank) for rank in range(ranks)])
            if 0 in shares:
                idle = self.nodes[shares.index(0)]
                raise InputError(
                    Problem(
                        f"{idle} is so slow that it is best left out",
                        key="devices",
                        value=idle,
                        expected="the devices without it",
                    )
                )
            m.notes.append("samples of each device: " + ", ".join(map(str, shares)))
        return [step(rank, share) for rank, share in enumerate(shares)]

    def paced(self, steps: Sequence[ReplicaStep]) -> list[ReplicaStep]:
        """The steps at the speed of the slowest device over that of one taken at random, noted if it is not 1."""
        count = len(self.nodes)
        speed = slowest(count, self.job.disturbances.variation)
        if speed < 1.0:
            self.m.notes.append(f"all devices keep the pace of the slowest of {count}: {speed:.3f} times the mean")
        return on_boards(self.m.machine, self.nodes, steps, speed=speed)

    def time_alone(self, step: ReplicaStep) -> float:
        """Time of a step of rank 0 by itself, on its own micro-batch [s]: that of a whole step over their number."""
        return self._step_alone(step) / self.alone_accumulate

    def play(self, steps: Sequence[ReplicaStep], nominal: ReplicaStep) -> Program:
        """Simulate the job and report what came of it."""
        m, job, given = self.m, self.job, _EXACT[self.job.devices.exact]
        steps = self._with_stragglers(steps)
        every = self.one_process or self.uneven or m.simulation.own_times
        replicas, exact = make_replicas(m, self.nodes, steps, exact=True if every else given)
        group = self._group(replicas, exact)
        if given is None and (why := group.told_apart(self._works(steps[0]))):
            m.notes.append(f"every rank is simulated: {why}")
            replicas, exact = make_replicas(m, self.nodes, steps, exact=True)
            group = self._group(replicas, exact)
        if job.input.batches == "ahead":
            for replica in replicas:
                replica.ahead = Ahead()
        self._hold(replicas)
        self._feed(replicas)
        self._disturb(replicas)
        threads = [
            m.spawn(program, f"rank{replica.rank}", host=replica.host)
            for replica, program in self._programs(replicas, group)
        ]
        for thread in threads:
            yield wait(thread.done, why="wait: ranks")
        group.settle()
        share = steps[0].samples * self.accumulate * job.input.counted
        single = self._step_alone(nominal) * self.accumulate / self.alone_accumulate if len(steps) > 1 else 0.0
        if len(steps) > 1 and not single:
            m.notes.append("a step of one device by itself takes no time: there is no scaling efficiency")
        self._report(replicas, group, alone=share / single if single else 0.0)
        tell_launches(m, (one.launch_time + rank.launched_beside for one, rank in zip(threads, replicas, strict=False)))

    def _report(self, replicas: Sequence[Replica], group: Group, *, alone: float) -> None:
        """Report what came of the run; `alone` is the rate of one device by itself [1/s]."""
        m, job = self.m, self.job
        period = self.strategy.every if isinstance(self.strategy, LocalSGD) else 1
        counted = self.samples * job.input.counted
        tell(m, replicas, samples=counted, alone=alone, group=group, period=period)
        m.work(f"samples of {job.model.name}", counted * job.steps)
        tell_feeds(m, [replica.feed for replica in replicas], batches=job.steps * self.accumulate)
        time = step_time(replicas, period=period)
        differ = spread(replicas, period=period) if job.input.dataset or job.total else 0.0
        if job.input.dataset:
            if differ > ROUNDING:
                m.notes.append(
                    f"steps after the first differ by {100 * differ:.2g} %: the epoch is computed from their mean"
                )
            m.metric("time per epoch", math.ceil(job.input.dataset / self.samples) * time, "s")
        if job.total:
            self._long_run = m.now + (job.total - job.steps) * time
            m.metric("run time", self._long_run, "s")
            text = "steps of the run that are not simulated take the mean of the others but the first, which differ by"
            m.notes.append(f"{text} {100 * differ:.2g} %")

    def _with_stragglers(self, steps: Sequence[ReplicaStep]) -> list[ReplicaStep]:
        """The steps with the last devices slow."""
        count, slowdown = self.job.disturbances.stragglers, self.job.disturbances.slowdown
        if not count or slowdown == 1.0:
            return list(steps)
        slow = {id(step): faster(step, 1.0 / slowdown) for step in steps[-count:]}
        return [*steps[:-count], *(slow[id(step)] for step in steps[-count:])]

    def _group(self, replicas: Sequence[Replica], exact: bool) -> Group:
        told: dict[str, Any] = {}
        if isinstance(self.strategy, DDP | LocalSGD):
            told = {"algorithm": self.strategy.algorithm, "options": self.strategy.options}
        if isinstance(self.strategy, DDP):
            told["slowdown"] = self.strategy.slowdown
        return Group(self.m, self.nodes, replicas, exact=exact, **told)

    def _works(self, step: ReplicaStep) -> dict[tuple[str, float], int]:
        """Collectives of the run by name and payload [B]."""
        if isinstance(self.strategy, LocalSGD):
            return {("all-reduce", step.nbytes_gradients): self.job.steps // max(1, self.strategy.every)}
        sizes = Counter(bucket.nbytes for bucket in self._buckets(step))
        works = {("all-reduce", nbytes): self.job.steps * times for nbytes, times in sizes.items()}
        once = isinstance(self.strategy, DDP) and self.strategy.broadcast
        return works | ({("broadcast", step.nbytes_gradients): 1} if once else {})

    def _hold(self, replicas: Sequence[Replica]) -> None:
        """Take the replicas' memory from their devices."""
        holdings = []
        for replica in replicas:
            if replica.step.memory:
                extra, need = self._beside(replica)
                replica.memory = {**replica.step.memory, **extra}
                nodes = [self.nodes[rank] for rank in replica.members]
                holdings.append(Holding(replica.device.memory, replica.memory, replica.step.samples, need, nodes))
        ranks, weak = len(self.nodes), self.job.batch_per_gpu

        def right(fits: int) -> str:
            most = fits * self.accumulate * (1 if weak else ranks)
            turns = range(self.accumulate + 1, 0 if self.one_process else 1 + self.samples // ranks)
            enough = next((n for n in turns if self.samples % n == 0 and self.samples <= fits * n * ranks), 0)
            return f"at most {most}" + (f", or accumulate = {enough}" if enough else "")

        hold(holdings, key="batch_per_gpu" if weak else "batch", right=right)

    def _beside(self, replica: Replica) -> tuple[dict[str, float], Callable[[int], float]]:
        """What a replica holds beside its step [B], and all that it holds of any number of samples [B]."""
        ranks, step = len(self.nodes), replica.step
        extra: dict[str, float] = {}
        if isinstance(self.strategy, DDP) and ranks > 1:
            extra["buckets"] = step.nbytes_gradients
        if isinstance(self.strategy, DataParallel) and replica.rank == 0 and ranks > 1:
            extra["whole batch"] = step.nbytes_input * ranks
            extra["gathered outputs"] = 2 * step.nbytes_output * ranks

        def need(samples: int) -> float:
            share = samples / step.samples
            more = extra.get("buckets", 0.0) + share * (math.fsum(extra.values()) - extra.get("buckets", 0.0))
            return math.fsum(self.job.model.memory(samples).values()) + more

        return extra, need

    def _feed(self, replicas: Sequence[Replica]) -> None:
        """Give every process of the run its data loader."""
        samples = [replica.step.samples for replica in replicas]
        whole = [(replicas[0], math.fsum(samples))]
        fed = whole if self.one_process else list(zip(replicas, samples, strict=True))
        attach(self.m, fed, self.feeding, batches=self.job.steps * self.accumulate)

    def _disturb(self, replicas: Sequence[Replica]) -> None:
        """Give every device its pace, and let links change."""
        disturbances = self.job.disturbances
        change_links(self.m.simulation, disturbances.changes)
        if not disturbances.steady:
            paces = disturbances.paces
            for replica in replicas:
                factors = stream(paces, self.m.rng(f"pace of rank {replica.rank}"))
                replica.paces = map(jittered, repeat(replica.step), repeat(factors))

    def _programs(self, replicas: Sequence[Replica], group: Group) -> list[tuple[Replica, Program]]:
        """The processes of the run, each with the replica whose host runs it."""
        m, strategy = self.m, self.strategy
        pace: dict[str, Any] = {"steps": self.job.steps, "loop": self.job.input.loop}
        if isinstance(strategy, ByHand):
            return [(replicas[0], naive(m, replicas, **pace))]
        if isinstance(strategy, DataParallel):
            return [(replicas[0], data_parallel(m, replicas, group, watched=self.watched, **pace))]
        pace["accumulate"] = self.accumulate
        if isinstance(strategy, LocalSGD):
            pace |= {"every": strategy.every, "watched": self.watched}
            return [(one, local_sgd(m, one, group, **pace)) for one in replicas]
        assert isinstance(strategy, DDP)
        pace["reads"] = self.reads
        more: dict[str, Any] = {"broadcast": strategy.broadcast, "bucket_view": strategy.bucket_view, **pace}
        return [(one, ddp(m, one, group, buckets=self._buckets(one.step), **more)) for one in replicas]

    def _buckets(self, step: ReplicaStep) -> tuple[Bucket, ...]:
        if len(self.nodes) == 1 or not isinstance(self.strategy, DDP):
            return ()
        buckets = assign_buckets(step.gradients, self.strategy.bucket, first=self.strategy.first_bucket)
        if self.strategy.overlap:
            return buckets
        return tuple(replace(bucket, ready=len(step.backward) - 1) for bucket in buckets)

    def _step_alone(self, step: ReplicaStep) -> float:
        """Time of a step of rank 0 by itself, on its own share of the batch [s].

        Of many micro-batches a few are simulated, where each further one takes the same time.
        """
        long = len(step.forward) + len(step.backward) > self.m.simulation.depth
        played = PLAYED_LONG if long else PLAYED
        if self.alone_accumulate > played[-1]:
            times = [self._alone(step, accumulate=count) for count in played]
            once, again = (later - sooner for sooner, later in pairwise(times))
            if abs(again - once) <= ROUNDING * times[-1]:
                return times[-1] + (self.alone_accumulate - played[-1]) * again / (played[-1] - played[-2])
        return self._alone(step, accumulate=self.alone_accumulate)

    def _alone(self, step: ReplicaStep, *, accumulate: int) -> float:
        return time_alone(
            self.m,
            step,
            self.nodes[0],
            steps=self.job.steps,
            feeding=self.feeding,
            accumulate=accumulate,
            loop=self.job.input.loop,
            reads=self.reads,
            by_hand=isinstance(self.strategy, ByHand),
            ahead=self.job.input.batches == "ahead",
        )


def _nodes(m: Session, job: Job) -> tuple[str, ...]:
    """The nodes that take part."""
    there: tuple[str, ...] = m.machine.workers
    if job.devices.nodes:
        return job.devices.nodes
    if not there:
        raise ProgramError("the machine has no GPU to train on; name the nodes that take part as devices")
    if job.gpus > len(there):
        expected = f"at most {len(there)}, or 0 for all"
        raise InputError(Problem(f"the machine has {len(there)}", key="gpus", value=str(job.gpus), expected=expected))
    return there[: job.gpus or None]
