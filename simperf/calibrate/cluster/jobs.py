"""Kinds of work for boxed hosts: sends, all-reduces, additions."""

from __future__ import annotations

from typing import Any

from simperf.calibrate.cluster.order import HostOrder
from simperf.calibrate.cluster.training import asynchronous, ddp, step

__all__ = ["add", "all_reduce", "asynchronous", "ddp", "plan", "round_trip", "send", "step", "train"]


def _payload(nbytes: float) -> Any:
    import torch

    return torch.ones(max(1, int(nbytes) // 4))


def send(work: HostOrder) -> list[list[float]]:
    """Rank 0 sends to rank 1, which is waiting for it."""
    import torch.distributed as dist

    data = _payload(work.order["nbytes"])

    def once() -> None:
        if work.rank == 0:
            dist.send(data, 1, group=work.group)
        else:
            dist.recv(data, 0, group=work.group)

    return work.repeat(once)


def round_trip(work: HostOrder) -> list[list[float]]:
    """Rank 0 sends to rank 1, which sends it back."""
    import torch.distributed as dist

    data = _payload(work.order["nbytes"])

    def once() -> None:
        if work.rank == 0:
            dist.send(data, 1, group=work.group)
            dist.recv(data, 1, group=work.group)
        else:
            dist.recv(data, 0, group=work.group)
            dist.send(data, 0, group=work.group)

    return work.repeat(once)


def train(work: HostOrder) -> list[list[float]]:
    """Rank 0 sends so many messages to rank 1, one after the other without waiting for any."""
    import torch.distributed as dist

    rows = [_payload(work.order["nbytes"]) for _ in range(int(work.order["messages"]))]

    def once() -> None:
        if work.rank == 0:
            events = [dist.isend(row, 1, group=work.group) for row in rows]
        else:
            events = [dist.irecv(row, 0, group=work.group) for row in rows]
        for event in events:
            event.wait()

    return work.repeat(once)


def all_reduce(work: HostOrder) -> list[list[float]]:
    """Gloo's own all-reduce."""
    import torch.distributed as dist

    data = _payload(work.order["nbytes"])

    def once() -> None:
        dist.all_reduce(data, group=work.group)

    def prepare() -> None:
        data.fill_(1.0)

    return work.repeat(once, prepare=prepare)


def add(work: HostOrder) -> list[list[float]]:
    """Each rank adds one payload to another, with nothing to send."""
    import torch

    data, other = _payload(work.order["nbytes"]), torch.ones(max(1, int(work.order["nbytes"]) // 4))

    def once() -> None:
        data.add_(other)

    return work.repeat(once)


def plan(work: HostOrder) -> list[list[float]]:
    """A plan of `simperf.collectives`, step by step: the ring, the tree and the server that people write by hand."""
    import torch
    import torch.distributed as dist

    from simperf.collectives import make_plan

    made = make_plan("all-reduce", work.order["algorithm"], nranks=int(work.order["workers"]))
    (channel,) = made.channels
    data = _payload(work.order["nbytes"])
    cuts = [len(data) * index // channel.nchunks for index in range(channel.nchunks + 1)]
    rounds = []
    for phase in channel.phases:
        for one in phase:
            rows = list(one.rows())
            sends = [(data[cuts[c] : cuts[c + s]], dst) for src, dst, c, s, _ in rows if src == work.rank]
            takes = [(data[cuts[c] : cuts[c + s]], src, add) for src, dst, c, s, add in rows if dst == work.rank]
            rounds.append((sends, [(part, torch.empty_like(part) if add else part, src) for part, src, add in takes]))

    def once() -> None:
        for sends, takes in rounds:
            arriving = [(dist.irecv(room, src, group=work.group), part, room) for part, room, src in takes]
            leaving = [dist.isend(part, dst, group=work.group) for part, dst in sends]
            for event, part, room in arriving:
                event.wait()
                if room is not part:
                    part.add_(room)
            for event in leaving:
                event.wait()

    def prepare() -> None:
        data.fill_(1.0 if work.rank < made.nranks else 0.0)

    found = work.repeat(once, prepare=prepare)
    if work.rank < made.nranks and not bool((data == float(made.nranks)).all()):
        raise ArithmeticError(f"the sum is wrong at rank {work.rank}")
    return found
