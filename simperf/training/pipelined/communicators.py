"""Communicators of a job: which ranks communicate, and what they do together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from simperf.collectives.relayed import TokenKernel
from simperf.layout import Layout
from simperf.training.pipelined.weight_shares import WeightShares
from simperf.training.pipelined.work import LayerBucket, StepEnd, StepWork

__all__ = [
    "AROUND",
    "INSIDE",
    "MESSAGE",
    "NORM",
    "REPLICAS",
    "Communicator",
    "Dimension",
    "Joined",
    "Key",
    "Payload",
    "Place",
    "communicators",
]

#: what its time counts for: a dimension of the layout (``"etp"`` and ``"edp"`` are tensor and data parallelism of the
#: experts), or the norm of the gradients, which all ranks add up
Dimension: TypeAlias = Literal["tp", "cp", "ep", "etp", "pp", "dp", "edp", "norm"]

#: dimensions whose ranks communicate inside of layers
INSIDE: tuple[Dimension, ...] = ("tp", "cp", "ep", "etp")

#: dimensions along which gradients and weights travel
AROUND: tuple[Dimension, ...] = ("dp", "edp")

#: what a rank finds its process group by: the dimension, or copies of what data-parallel ranks share
Key: TypeAlias = Dimension | Literal["replicas", "expert replicas"]

#: groups of the copies of what is shared along a dimension
REPLICAS: Mapping[Dimension, Key] = {"dp": "replicas", "edp": "expert replicas"}

#: what a rank finds a communicator by: that, or the stages of sender and receiver
Place: TypeAlias = Key | tuple[int, int]

#: name of what one rank sends to another
MESSAGE = "send"
#: size of the norm of the gradients [B]
NORM = 4.0


class Payload(NamedTuple):
    """An operation of a communicator: a collective, or `MESSAGE`, of a payload [B]."""

    name: str
    nbytes: float


@dataclass(frozen=True, slots=True)
class Communicator:
    """Ranks that communicate.

    Parameters
    ----------
    dimension : str
        What its time counts for.
    ranks : tuple of int
        In ascending order; of messages, the sender and the receiver.
    payloads : tuple of Payload
        All that is done among them.
    rows : tuple of int
        What each of them gets in exchanges of unequal amounts; none where they are equal.
    kernel : TokenKernel, optional
        What exchanges their tokens in place of NCCL.
    """

    dimension: Dimension
    ranks: tuple[int, ...]
    payloads: tuple[Payload, ...]
    rows: tuple[int, ...] = ()
    kernel: TokenKernel | None = None

    @property
    def directed(self) -> bool:
        """Whether its first rank sends to its second one."""
        return any(one.name == MESSAGE for one in self.payloads)


class Joined(NamedTuple):
    """A communicator, and what its ranks find it by."""

    key: Place
    communicator: Communicator


def communicators(
    layout: Layout, work: StepWork, buckets: Sequence[Sequence[LayerBucket]], *, sharded: bool
) -> list[Joined]:
    """All communicators of a job that have more than one rank.

    Parameters
    ----------
    layout : Layout
    work : StepWork
    buckets : sequence of sequence of LayerBucket
        Of each stage.
    sharded : bool
        Whether data-parallel ranks update a part of the weights each.
    """
    mesh, shards, found = layout.mesh, layout.sharding_mesh, list[Joined]()
    holders = [work.holders(stage) for stage in range(work.stages)]
    stages = mesh.places("pp")

    def add(
        key: Place,
        dimension: Dimension,
        ranks: tuple[int, ...],
        payloads: Iterable[Payload],
        rows: tuple[int, ...] = (),
        kernel: TokenKernel | None = None,
    ) -> None:
        if len(ranks) > 1 and (done := tuple(dict.fromkeys(payloads))):
            found.append(Joined(key, Communicator(dimension, ranks, done, rows, kernel)))

    def of_copies(groups: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Groups of ranks, those of stages that have copies of the same parts together."""
        joined: dict[tuple[int, ...], list[int]] = {}
        for ranks in groups:
            at = mesh.coordinates(ranks[0])
            key = tuple((at | {"pp": holders[at["pp"]][0]}).values())
            joined.setdefault(key, []).extend(ranks)
        return [tuple(sorted(ranks)) for ranks in joined.values()]

    payloads = _inside_payloads(work)
    for dimension in INSIDE:
        for ranks in layout.groups(dimension):
            stage = stages[ranks[0]]
            place = layout.expert_mesh.coordinates(ranks[0])["ep"] if work.others else 0
            rows = work.rows if dimension == "ep" else ()
            kernel = work.kernel if dimension == "ep" else None
            add(dimension, dimension, ranks, payloads[stage, place].get(dimension, ()), rows, kernel)
    of_buckets = [_of_buckets(own, work.ends[stage], sharded) for stage, own in enumerate(buckets)]
    for ranks in of_copies(shards.groups("dp_shard", "cp") if sharded else mesh.groups("dp", "cp")):
        add("dp", "dp", ranks, of_buckets[stages[ranks[0]]]["dp"])
    of_experts = layout.expert_sharding_mesh
    for ranks in of_copies(of_experts.groups("dp_shard") if sharded else layout.groups("edp")):
        add("edp", "edp", ranks, of_buckets[stages[ranks[0]]]["edp"])
    shares = WeightShares.of(layout, work.plan.copies)
    for around, grid in zip(AROUND, (shards, of_experts), strict=True):
        for ranks in grid.groups("dp_replicate"):
            stage, over = stages[ranks[0]], shares.along(around)
            sizes = [
                one.weights * work.ends[stage].gradient
                for one in buckets[stage]
                if one.weights and one.dimension == around
            ]
            add(REPLICAS[around], around, ranks, (Payload("all-reduce", nbytes / over) for nbytes in sizes))
    ways = dict.fromkeys((here, there) for _, here, there in work.edges())
    last = work.plan.path[-1][0]
    for ranks in mesh.groups("pp"):
        for here, there in ways:
            add((here, there), "pp", (ranks[here], ranks[there]), [Payload(MESSAGE, work.message)])
        if work.tied and last:
            add("pp", "pp", (ranks[0], ranks[last]), [Payload("all-reduce", work.tied)])
    for own in _norm_groups(layout, work, stages, holders, sharded=sharded):
        add("norm", "norm", own, [Payload("all-reduce", NORM)])
    return found


def _inside_payloads(work: StepWork) -> dict[tuple[int, int], dict[str, dict[Payload, None]]]:
    """Payloads of collectives inside layers by dimension, by stage and place of a rank's experts."""
    payloads: dict[tuple[int, int], dict[str, dict[Payload, None]]] = {}
    for stage in range(work.stages):
        for place in range(1 + len(work.others)):
            inside = payloads[stage, place] = {}
            for one in work.at(place).syncs(stage):
                inside.setdefault(one.dimension, {})[Payload(one.name, one.nbytes)] = None
    return payloads


def _norm_groups(
    layout: Layout,
    work: StepWork,
    stages: Sequence[int],
    holders: Sequence[tuple[int, ...]],
    *,
    sharded: bool,
) -> Iterator[tuple[int, ...]]:
    """Ranks that add up the norm of their gradients."""
    if not any(end.norm for end in work.ends):
        return
    whole = sharded or layout.ep > 1  # ranks own different gradients everywhere, but for copies
    mesh, shards = layout.mesh, layout.sharding_mesh
    for ranks in shards.groups("tp", "cp", "dp_shard", "pp") if whole else mesh.groups("tp", "pp"):
        for copy in range(1 if whole else work.plan.copies):  # each copy of the model by itself
            yield tuple(rank for rank in ranks if whole or _copy(stages[rank], holders) == copy)


def _copy(stage: int, holders: Sequence[tuple[int, ...]]) -> int:
    """Index of a stage among those that have the same parts."""
    return holders[stage].index(stage)


def _of_buckets(buckets: Iterable[LayerBucket], end: StepEnd, sharded: bool) -> dict[str, list[Payload]]:
    """Collectives of the buckets of a stage, by the dimension along which they travel."""
    found: dict[str, list[Payload]] = {"dp": [], "edp": []}
    for bucket in buckets:
        own = found[bucket.dimension]
        if bucket.weights:
            own.append(Payload("reduce-scatter" if sharded else "all-reduce", bucket.weights * end.gradient))
        if sharded:
            own.append(Payload("all-gather", end.gathered(bucket)))
    return found
