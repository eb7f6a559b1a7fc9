"""Training by data parallelism: what is trained, where and how, and the processes that do it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.memory import Holding, hold
from simperf.training.alone import time_alone
from simperf.training.data.buckets import BUCKET, FIRST_BUCKET, Bucket, assign_buckets
from simperf.training.data.data_parallel import data_parallel
from simperf.training.data.ddp import ddp
from simperf.training.data.group import Group
from simperf.training.data.heterogeneous import even_split, proportional_split
from simperf.training.data.local_sgd import local_sgd
from simperf.training.data.naive import naive
from simperf.training.data.symmetry import make_replicas
from simperf.training.feeding import Feeding, attach, tell_feeds
from simperf.training.fitting import fit_speed
from simperf.training.jitter import Constant, Distribution, jittered, stream
from simperf.training.options import STRATEGIES, kernel_by_kernel, unused
from simperf.training.outcome import spread, step_time, tell
from simperf.training.replica import Replica, Workload, faster
from simperf.training.step import TrainingStep
from simperf.training.stragglers import LinkChange, change_links
from simperf.training.variation import slowest

__all__ = ["Training", "train"]

#: samples of a step where nobody says how many
BATCH = 256
#: micro-batches of one device that are played, equally far apart, before more of them are counted and not played
PLAYED = (8, 12, 16)
#: the same where one of them is more kernels than may wait to run, so that the second finds things as any other does
PLAYED_LONG = (2, 3, 4)
#: part of a time that is rounding
ROUNDING = 1e-10


@dataclass(frozen=True, slots=True)
class Training:
    """Everything about a run of data parallelism.

    Parameters
    ----------
    workload : Workload
    nodes : tuple of str
        Devices that take part; the first is rank 0.
    strategy : str
        A key of `STRATEGIES`.
    batch : int
        Samples of one step of the optimizer on all devices.
    batch_per_gpu : int
        The same on each device instead; 0 takes `batch`.
    split : str
        ``"even"`` or ``"proportional"``.
    speeds : tuple of float
        How many times as fast each device is; 1 for those that are not named.
    steps, accumulate, every : int
        Steps of the optimizer, micro-batches a step, steps between averages of local SGD.
    algorithm, options
        Of all-reduce, see `simperf.training.group.Group`.
    bucket, first_bucket : float
        Limits of the buckets [B].
    overlap : bool
        Whether buckets travel while the backward pass goes on.
    slowdown : float
        Of kernels beside a collective.
    broadcast : bool
        Whether the weights of rank 0 go to all at the start.
    bucket_view : bool
        Whether gradients lie in their buckets from the start; otherwise they are copied there and back.
    variation : float
        Standard deviation of the time that devices of one make take for the same work, of its mean; all wait for
        the slowest, see `simperf.training.variation`.
    loop : float
        Work of each process for a batch, beside launching [s].
    feeding : Feeding
        Where mini-batches come from; by default they lie in pinned memory.
    watched : bool
        Every process waits for its devices after each step, as one that looks at the loss.
    jitter : Distribution
        Of the time of a device's kernels from one mini-batch to the next, over its mean [1]; each device's by itself.
    changes : tuple of LinkChange
        Links that are slow or down for a time.
    alone : float
        Samples a second of one device by itself on its share of the batch, as measured; scales the kernels
        [1/s]. 0 takes them as they are.
    counted : float
        What is counted of a sample, such as the tokens of a sentence: rates, `alone` too, are in that.
    dataset : int
        Samples of an epoch, whose time is reported then.
    exact : bool or None
        See `simperf.training.symmetry.make_replicas`.

    Raises
    ------
    InputError
        All that has no meaning.
    """

    workload: Workload
    nodes: tuple[str, ...]
    strategy: str = "ddp"
    batch: int = BATCH
    batch_per_gpu: int = 0
    split: str = "even"
    speeds: tuple[float, ...] = ()
    steps: int = 3
    algorithm: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    bucket: float = BUCKET
    first_bucket: float = FIRST_BUCKET
    overlap: bool = True
    slowdown: float = 1.0
    accumulate: int = 1
    every: int = 1
    broadcast: bool = False
    bucket_view: bool = True
    variation: float = 0.0
    loop: float = 0.0
    feeding: Feeding = field(default_factory=Feeding)
    watched: bool = False
    jitter: Distribution = field(default_factory=Constant)
    changes: tuple[LinkChange, ...] = ()
    alone: float = 0.0
    counted: float = 1.0
    dataset: int = 0
    exact: bool | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise UnknownNameError("strategy", self.strategy, STRATEGIES)
        ranks = len(self.nodes)
        whole = self.samples % self.accumulate == 0 if self.accumulate >= 1 else False
        problems = [
            Problem(message, key=key, value=str(value))
            for key, value, right, message in (
                ("steps", self.steps, self.steps >= 1, "one step or more is expected"),
                ("accumulate", self.accumulate, whole, f"a divisor of the batch of {self.samples} is expected"),
                ("devices", ranks, ranks >= 1, "one device or more is expected"),
                ("devices", ranks, len(set(self.nodes)) == ranks, "a device takes part once"),
                ("counted", self.counted, 0 < self.counted < math.inf, "a number above 0 is expected"),
                ("speeds", len(self.speeds), len(self.speeds) <= ranks, f"there are more speeds than {ranks} devices"),
            )
            if not right
        ]
        problems += unused(self)
        if self.batch_per_gpu and self.batch != BATCH:
            expected = "batch or batch_per_gpu"
            problems.append(
                Problem("batch_per_gpu stands for it", key="batch", value=str(self.batch), expected=expected)
            )
        if self.uneven and self.exact is False and ranks > 1:
            told = "with data loaders, jitter or slow links every rank has times of its own"
            problems.append(Problem(told, key="exact", value="no", expected="auto or yes"))
        if problems:
            raise InputError(problems)

    @property
    def uneven(self) -> bool:
        """Whether ranks differ by more than what they compute."""
        return not self.feeding.idle or self.jitter != Constant() or bool(self.changes)

    @property
    def samples(self) -> int:
        """Of one step of the optimizer on all devices."""
        return self.batch_per_gpu * len(self.nodes) or self.batch


def train(m: Session, run: Training) -> Program:
    """Play a run through and report what came of it."""
    kernel_by_kernel(m)
    _one_server(m, run)
    steps = _steps(m, run)
    if run.alone:
        rate = run.alone / run.counted
        speed = fit_speed(steps[0], rate, lambda step: _time_alone(m, run, step) / run.accumulate)
        m.notes.append(f"kernels at {speed:.3f} times the catalogue's speed, so that one device does {run.alone:g}/s")
        scaled = {id(step): faster(step, speed) for step in steps}
        steps = [scaled[id(step)] for step in steps]
    nominal = steps[0]
    behind = slowest(len(steps), run.variation)
    if behind < 1.0:
        together = {id(step): faster(step, behind) for step in steps}
        steps = [together[id(step)] for step in steps]
        m.notes.append(f"all devices keep the pace of the slowest of {len(steps)}: {behind:.3f} times the mean")
    every = STRATEGIES[run.strategy] or run.uneven or m.simulation.own_times
    replicas, exact = make_replicas(m, run.nodes, steps, exact=True if every else run.exact)
    group = _group(m, run, replicas, exact)
    if run.exact is None and (why := group.told_apart(_works(run, steps[0]))):
        m.notes.append(f"every rank is simulated: {why}")
        replicas, exact = make_replicas(m, run.nodes, steps, exact=True)
        group = _group(m, run, replicas, exact)
    _hold(run, replicas)
    _feed(m, run, replicas)
    _disturb(m, run, replicas)
    threads = [
        m.spawn(program, f"rank{replica.rank}", host=replica.host)
        for replica, program in _programs(m, run, replicas, group)
    ]
    for thread in threads:
        yield wait(thread.done, why="wait: ranks")
    group.settle()
    share = steps[0].samples * run.accumulate * run.counted
    single = _time_alone(m, run, nominal) if len(steps) > 1 else 0.0
    if len(steps) > 1 and not single:
        m.notes.append("a step of one device by itself takes no time: there is no scaling efficiency")
    alone = share / single if single else 0.0
    period = run.every if run.strategy == "local-sgd" else 1
    tell(m, replicas, samples=run.samples * run.counted, alone=alone, group=group, period=period)
    m.work(f"samples of {run.workload.name}", run.samples * run.counted * run.steps)
    tell_feeds(m, [replica.feed for replica in replicas], batches=run.steps * run.accumulate)
    if run.dataset:
        if (differ := spread(replicas, period=period)) > ROUNDING:
            m.notes.append(
                f"steps after the first differ by {100 * differ:.2g} %: the epoch is reckoned from their mean"
            )
        m.metric("time per epoch", math.ceil(run.dataset / run.samples) * step_time(replicas, period=period), "s")


def _one_server(m: Session, run: Training) -> None:
    """Refuse devices of several servers where one process drives them all."""
    nodes = m.machine.nodes
    servers = dict.fromkeys(nodes[name].server for name in run.nodes if name in nodes)
    if STRATEGIES[run.strategy] and len(servers) > 1:
        message = f"{run.strategy} is one process, which drives the devices of one server; these are in {len(servers)}"
        raise InputError(Problem(message, key="strategy", value=run.strategy, expected="ddp, or devices of one server"))


def _group(m: Session, run: Training, replicas: Sequence[Replica], exact: bool) -> Group:
    return Group(
        m, run.nodes, replicas, algorithm=run.algorithm, slowdown=run.slowdown, exact=exact, options=run.options
    )


def _works(run: Training, step: TrainingStep) -> dict[tuple[str, float], int]:
    """Collectives of the run by name and payload [B]."""
    if run.strategy == "local-sgd":
        return {("all-reduce", step.nbytes_gradients): run.steps // max(1, run.every)}
    sizes = Counter(bucket.nbytes for bucket in _buckets(run, step))
    works = {("all-reduce", nbytes): run.steps * times for nbytes, times in sizes.items()}
    return works | ({("broadcast", step.nbytes_gradients): 1} if run.broadcast else {})


def _steps(m: Session, run: Training) -> list[TrainingStep]:
    """The step of each rank; ranks that do the same share one object."""
    made: dict[tuple[Any, ...], TrainingStep] = {}
    speeds = [*run.speeds, *[1.0] * (len(run.nodes) - len(run.speeds))]
    nodes = m.machine.nodes

    def step(rank: int, samples: int) -> TrainingStep:
        node = run.nodes[rank]
        part = nodes[node].part if node in nodes else None
        key = (id(part), speeds[rank], samples)
        if key not in made:
            made[key] = faster(run.workload.step(m, m.simulation.device(node), samples), speeds[rank])
        return made[key]

    def time(rank: int) -> Callable[[int], float]:
        return lambda samples: step(rank, samples).compute_time

    samples, ranks = run.samples // run.accumulate, len(run.nodes)
    if run.split == "even":
        shares = even_split(samples, ranks)
    else:
        even_split(samples, ranks)  # a sample or more for each, or there is nothing to split
        shares = proportional_split(samples, [time(rank) for rank in range(ranks)])
        if 0 in shares:
            idle = run.nodes[shares.index(0)]
            raise InputError(Problem(f"{idle} is so slow that it is best left out", key="devices", value=idle))
        m.notes.append("samples of each device: " + ", ".join(map(str, shares)))
    return [step(rank, share) for rank, share in enumerate(shares)]


def _hold(run: Training, replicas: Sequence[Replica]) -> None:
    """Take the replicas' memory from their devices."""
    holdings = []
    for replica in replicas:
        if replica.step.memory:
            extra, need = _beside(run, replica)
            replica.memory = {**replica.step.memory, **extra}
            nodes = [run.nodes[rank] for rank in replica.members]
            holdings.append(Holding(replica.device.memory, replica.memory, replica.step.samples, need, nodes))
    ranks = len(run.nodes)

    def right(fits: int) -> str:
        most = fits * run.accumulate * (1 if run.batch_per_gpu else ranks)
        turns = range(run.accumulate + 1, 0 if STRATEGIES[run.strategy] else 1 + run.samples // ranks)
        enough = next((n for n in turns if run.samples % n == 0 and run.samples <= fits * n * ranks), 0)
        return f"at most {most}" + (f", or accumulate = {enough}" if enough else "")

    hold(holdings, key="batch_per_gpu" if run.batch_per_gpu else "batch", right=right)


def _beside(run: Training, replica: Replica) -> tuple[dict[str, float], Callable[[int], float]]:
    """What a replica holds beside its step [B], and all that it holds of any number of samples [B]."""
    ranks, step = len(run.nodes), replica.step
    extra: dict[str, float] = {}
    if run.strategy == "ddp" and ranks > 1:
        extra["buckets"] = step.nbytes_gradients
    if run.strategy == "data-parallel" and replica.rank == 0 and ranks > 1:
        extra["whole batch"] = step.nbytes_input * ranks
        extra["gathered outputs"] = 2 * step.nbytes_output * ranks

    def need(samples: int) -> float:
        share = samples / step.samples
        more = extra.get("buckets", 0.0) + share * (math.fsum(extra.values()) - extra.get("buckets", 0.0))
        return math.fsum(run.workload.memory(samples).values()) + more

    return extra, need


def _feed(m: Session, run: Training, replicas: Sequence[Replica]) -> None:
    """Give every process of the run its data loader."""
    one_process = STRATEGIES[run.strategy]
    samples = [replica.step.samples for replica in replicas]
    fed = [(replicas[0], math.fsum(samples))] if one_process else list(zip(replicas, samples, strict=True))
    attach(m, fed, run.feeding, batches=run.steps * run.accumulate)


def _disturb(m: Session, run: Training, replicas: Sequence[Replica]) -> None:
    """Give every device its pace, and let links change."""
    change_links(m.simulation, run.changes)
    if run.jitter != Constant():
        for replica in replicas:
            factors = stream(run.jitter, m.rng(f"pace of rank {replica.rank}"))
            replica.paces = map(jittered, repeat(replica.step), repeat(factors))


def _programs(m: Session, run: Training, replicas: Sequence[Replica], group: Group) -> list[tuple[Replica, Program]]:
    """The processes of the run, each with the replica whose host runs it."""
    if run.strategy == "naive":
        return [(replicas[0], naive(m, replicas, steps=run.steps, loop=run.loop))]
    pace: dict[str, Any] = {"steps": run.steps, "loop": run.loop, "watched": run.watched}
    if run.strategy == "data-parallel":
        return [(replicas[0], data_parallel(m, replicas, group, **pace))]
    pace["accumulate"] = run.accumulate
    if run.strategy == "local-sgd":
        return [(one, local_sgd(m, one, group, every=run.every, **pace)) for one in replicas]
    more: dict[str, Any] = {"broadcast": run.broadcast, "bucket_view": run.bucket_view, **pace}
    return [(one, ddp(m, one, group, buckets=_buckets(run, one.step), **more)) for one in replicas]


def _buckets(run: Training, step: TrainingStep) -> tuple[Bucket, ...]:
    if len(run.nodes) == 1:
        return ()
    buckets = assign_buckets(step.gradients, run.bucket, first=run.first_bucket)
    if run.overlap:
        return buckets
    return tuple(replace(bucket, ready=len(step.backward) - 1) for bucket in buckets)


def _time_alone(m: Session, run: Training, step: TrainingStep) -> float:
    """Time of a step of rank 0 by itself, on its own share of the batch [s].

    Of many micro-batches a few are played, where each further one takes the same time.
    """
    long = len(step.forward) + len(step.backward) > m.simulation.depth
    played = PLAYED_LONG if long else PLAYED
    if run.accumulate > played[-1]:
        times = [_alone(m, run, step, accumulate=count) for count in played]
        once, again = (later - sooner for sooner, later in pairwise(times))
        if abs(again - once) <= ROUNDING * times[-1]:
            return times[-1] + (run.accumulate - played[-1]) * again / (played[-1] - played[-2])
    return _alone(m, run, step, accumulate=run.accumulate)


def _alone(m: Session, run: Training, step: TrainingStep, *, accumulate: int) -> float:
    return time_alone(
        m,
        step,
        run.nodes[0],
        steps=run.steps,
        feeding=run.feeding,
        accumulate=accumulate,
        loop=run.loop,
        watched=run.watched,
        by_hand=run.strategy == "naive",
    )
