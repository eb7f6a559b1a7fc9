"""Hybrid parallelism: what is too large is spread over the devices, the rest is copied to all of them.

D. Mudigere and others, "Software-Hardware Co-design for Fast and Scalable Training of Deep Learning Recommendation
Models" (ISCA 2022). A device works with its tables on the whole batch and with its copy of the top layers on its part
of it; in between, every device gives every other its samples' vectors, and in the backward pass their gradients: two
all-to-all exchanges, which nothing can hide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem
from simperf.execution import Program, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.memory import Holding, hold
from simperf.training.data.buckets import BUCKET, FIRST_BUCKET, Bucket, assign_buckets
from simperf.training.data.exchange import backward, exchange
from simperf.training.data.group import CollectiveHold, Group
from simperf.training.data.symmetry import make_replicas
from simperf.training.execution_mode import kernel_by_kernel
from simperf.training.fitting import fit_speed
from simperf.training.outcome import step_time, tell
from simperf.training.replica import Replica, faster
from simperf.training.sharded.recommender import RankPart, Recommender, spread
from simperf.training.variation import slowest

__all__ = ["HybridRun", "hybrid", "train_hybrid"]


def hybrid(
    m: Session,
    replica: Replica,
    group: Group,
    *,
    part: RankPart,
    nbytes: float,
    steps: int,
    buckets: Sequence[Bucket] = (),
    watched: bool = False,
) -> Program:
    """One rank's process.

    Parameters
    ----------
    m : Session
    replica : Replica
        The rank.
    group : Group
        All ranks.
    part : RankPart
        Where its passes are cut by the exchanges.
    nbytes : float
        What a rank gives to all in one exchange; that of the rank with the most vectors [B].
    steps : int
        Steps of the optimizer.
    buckets : sequence of Bucket
        Of the top layers' gradients, the only ones that are added up.
    watched : bool
        Whether the process waits for its device after every step, as one does that takes the time of each.
    """
    gpu, step = replica.device, replica.step

    def all_to_all(why: str) -> Program:  # torch.distributed.all_to_all
        if group.size > 1:
            yield from exchange(replica, group.all_to_all(replica, nbytes), why)

    for _ in range(steps):
        for kernel in step.forward[: part.before]:  # vectors = bottom(x)
            yield launch(kernel, gpu)
        yield from all_to_all("vectors ready")
        for kernel in step.forward[part.before :]:  # l = loss(top(vectors), y)
            yield launch(kernel, gpu)
        works = yield from backward(replica, group, buckets, part=slice(part.after))  # l.backward()
        yield from all_to_all("gradients of vectors ready")
        works += yield from backward(replica, group, buckets, part=slice(part.after, None))
        for work in works:
            yield launch(CollectiveHold(work), gpu)
        for kernel in step.update:  # optimizer.step()
            yield launch(kernel, gpu)
        replica.mark((yield record(gpu, "step done")))
        if watched:  # torch.cuda.synchronize()
            yield synchronize(gpu)
    yield synchronize(gpu)


@dataclass(frozen=True, slots=True)
class HybridRun:
    """Everything about a run.

    Parameters
    ----------
    model : Recommender
    nodes : tuple of str
        Devices, the first of which has the bottom layers.
    batch : int
        Samples of a step on all devices.
    steps : int
    algorithm : str
        As in `simperf.training.data.group.Group`.
    variation : float
        Standard deviation of the time that equal devices take for the same work, of its mean.
    alone : float
        Samples a second of one device with the whole batch and all tables, as measured; scales the kernels [1/s].
    watched : bool
        As in `hybrid`.

    Raises
    ------
    InputError
        No tables, no steps, no devices, or a batch that cannot be shared evenly.
    """

    model: Recommender
    nodes: tuple[str, ...]
    batch: int = 65536
    steps: int = 3
    algorithm: str = "nccl"
    variation: float = 0.0
    alone: float = 0.0
    watched: bool = False

    def __post_init__(self) -> None:
        ranks, tables = len(self.nodes), self.model.tables
        checks = (
            ("tables", list(tables), bool(tables), "sizes of 1 and more, and at least one, are expected"),
            ("devices", ranks, ranks >= 1, "one device or more is expected"),
            ("steps", self.steps, self.steps >= 1, "one step or more is expected"),
            (
                "batch",
                self.batch,
                self.batch >= 1 and not (ranks and self.batch % ranks),
                f"a multiple of {ranks} is expected",
            ),
        )
        problems = [Problem(message, key=key, value=str(value)) for key, value, right, message in checks if not right]
        if problems:
            raise InputError(problems)


def train_hybrid(m: Session, run: HybridRun) -> Program:
    """Simulate a run through and report what came of it."""
    kernel_by_kernel(m)
    whole = _parts(m, run, run.nodes[:1])[0]
    speed = 1.0
    if run.alone:
        speed = fit_speed(whole.step, run.alone, lambda step: _time_alone(m, run, replace(whole, step=step)))
        m.notes.append(f"kernels at {speed:.3f} times the catalogue's speed, so that one device does {run.alone:g}/s")
    alone = run.batch / _time_alone(m, run, replace(whole, step=faster(whole.step, speed)))
    parts = _parts(m, run, run.nodes)
    behind = speed * slowest(len(parts), run.variation)
    made = {id(part): replace(part, step=faster(part.step, behind)) for part in parts}
    parts = [made[id(part)] for part in parts]
    nbytes = max(part.nbytes for part in parts)
    replicas, group = _ranks(m, run, parts, nbytes)
    for replica in replicas:
        replica.memory = dict(parts[replica.rank].step.memory)
    hold(
        [
            Holding(one.device.memory, one.memory, run.batch, nodes=[run.nodes[rank] for rank in one.members])
            for one in replicas
        ],
        key="tables",
        otherwise="more devices to spread them over, or fewer rows",
    )
    threads = [
        m.spawn(
            hybrid(
                m,
                replica,
                group,
                part=parts[replica.rank],
                nbytes=nbytes,
                steps=run.steps,
                buckets=_buckets(parts[replica.rank], len(parts)),
                watched=run.watched,
            ),
            f"rank{replica.rank}",
            host=replica.host,
        )
        for replica in replicas
    ]
    for thread in threads:
        yield wait(thread.done, why="wait: ranks")
    group.settle()
    tell(m, replicas, samples=run.batch, alone=alone, group=group)
    m.work("samples of recommender", run.batch * run.steps)
    if len(parts) > 1:
        m.metric("exchanged per step and GPU", 2 * nbytes, "B")
        m.metric("tables on one GPU, max over ranks", max(part.step.memory["tables"] for part in parts), "B")


def _parts(m: Session, run: HybridRun, nodes: Sequence[str]) -> list[RankPart]:
    """Each rank's part of the step; ranks with as many tables share one."""
    share = run.batch // len(nodes)
    made: dict[tuple[object, ...], RankPart] = {}
    found = []
    for rank, tables in enumerate(spread(run.model.tables, len(nodes))):
        device = m.simulation.device(nodes[rank])
        rows = sum(run.model.tables[i] for i in tables)
        key = (id(device.part), len(tables), rows, rank == 0)
        if key not in made:
            made[key] = run.model.part(m, device, tables, batch=run.batch, share=share, bottom=rank == 0)
        found.append(made[key])
    return found


def _ranks(m: Session, run: HybridRun, parts: Sequence[RankPart], nbytes: float) -> tuple[list[Replica], Group]:
    """The ranks and their group: each simulated by itself where they end a collective at different times."""
    steps = [part.step for part in parts]
    replicas, exact = make_replicas(m, run.nodes, steps, dimension="")
    group = Group(m, run.nodes, replicas, algorithm=run.algorithm, exact=exact)
    sizes = Counter(bucket.nbytes for bucket in _buckets(parts[0], len(parts)))
    works = {("all-reduce", size): run.steps * times for size, times in sizes.items()}
    if why := group.told_apart(works | {("all-to-all", nbytes): 2 * run.steps}):
        m.notes.append(f"every rank is simulated: {why}")
        replicas, exact = make_replicas(m, run.nodes, steps, exact=True, dimension="")
        group = Group(m, run.nodes, replicas, algorithm=run.algorithm, exact=exact)
    return replicas, group


def _buckets(part: RankPart, ranks: int) -> tuple[Bucket, ...]:
    return assign_buckets(part.step.gradients, BUCKET, first=FIRST_BUCKET) if ranks > 1 else ()


def _time_alone(m: Session, run: HybridRun, part: RankPart) -> float:
    """Time of a step of one device with everything, whether or not that fits into its memory [s]."""
    single = m.another()
    replicas, _ = make_replicas(single, run.nodes[:1], [part.step])
    group = Group(single, run.nodes[:1], replicas)
    single.play(hybrid(single, replicas[0], group, part=part, nbytes=0.0, steps=3, watched=run.watched))
    return step_time(replicas)
