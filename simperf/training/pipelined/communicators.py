"""Communicators of a job: which ranks communicate, and what they do together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from simperf.layout import Layout
from simperf.training.pipelined.work import Bucket, StepEnd, StepWork

__all__ = ["MESSAGE", "NORM", "Communicator", "Dimension", "Joined", "Key", "Payload", "communicators"]

#: what its time counts for: a dimension of the layout, or the norm of the gradients, which all ranks add up
Dimension: TypeAlias = Literal["tp", "pp", "dp", "norm"]

#: what a rank finds a communicator by: its dimension, or the stages of sender and receiver
Key: TypeAlias = Dimension | tuple[int, int]

#: name of what one rank sends to another
MESSAGE = "send"
#: size of the norm of the gradients [B]
NORM = 4.0


class Payload(NamedTuple):
    """What is done in a communicator: a collective, or `MESSAGE`, of a payload [B]."""

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
    """

    dimension: Dimension
    ranks: tuple[int, ...]
    payloads: tuple[Payload, ...]

    @property
    def directed(self) -> bool:
        """Whether its first rank sends to its second one."""
        return any(one.name == MESSAGE for one in self.payloads)


class Joined(NamedTuple):
    """A communicator, and what its ranks find it by."""

    key: Key
    communicator: Communicator


def communicators(
    layout: Layout, work: StepWork, buckets: Sequence[Sequence[Bucket]], *, sharded: bool
) -> list[Joined]:
    """All communicators of a job that have more than one rank.

    Parameters
    ----------
    layout : Layout
    work : StepWork
    buckets : sequence of sequence of Bucket
        Of each stage.
    sharded : bool
        Whether data-parallel ranks update a part of the weights each.
    """
    mesh, found = layout.mesh, list[Joined]()

    def add(key: Key, dimension: Dimension, ranks: tuple[int, ...], payloads: Iterable[Payload]) -> None:
        if len(ranks) > 1 and (done := tuple(dict.fromkeys(payloads))):
            found.append(Joined(key, Communicator(dimension, ranks, done)))

    for ranks in mesh.groups("tp"):
        add("tp", "tp", ranks, (Payload(one.name, one.nbytes) for one in work.syncs(mesh.coordinates(ranks[0])["pp"])))
    for ranks in mesh.groups("dp", "cp"):
        stage = mesh.coordinates(ranks[0])["pp"]
        add("dp", "dp", ranks, _of_buckets(buckets[stage], work.ends[stage], sharded))
    ways = dict.fromkeys((here, there) for _, here, there in work.edges())
    last = work.plan.path[-1][0]
    for ranks in mesh.groups("pp"):
        for here, there in ways:
            add((here, there), "pp", (ranks[here], ranks[there]), [Payload(MESSAGE, work.message)])
        if work.tied and last:
            add("pp", "pp", (ranks[0], ranks[last]), [Payload("all-reduce", work.tied)])
    if any(end.norm for end in work.ends):
        for ranks in mesh.groups(*mesh.dimensions) if sharded else mesh.groups("tp", "pp"):
            add("norm", "norm", ranks, [Payload("all-reduce", NORM)])
    return found


def _of_buckets(buckets: Iterable[Bucket], end: StepEnd, sharded: bool) -> Iterator[Payload]:
    for bucket in buckets:
        yield Payload("reduce-scatter" if sharded else "all-reduce", bucket.weights * end.gradient)
        if sharded:
            yield Payload("all-gather", bucket.weights * end.weight)
