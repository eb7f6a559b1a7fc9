"""Work of boxed hosts: sends, all-reduces, additions and training, each with a common start and repeats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from simperf.calibrate.cluster.priority import COMPUTING, SENDING, give_way, promptly

__all__ = [
    "HostOrder",
    "add",
    "all_reduce",
    "asynchronous",
    "ddp",
    "plan",
    "round_trip",
    "send",
    "step",
    "train",
]

#: what every repeat waits for before it starts, besides what refills the token buckets [s]
SETTLE = 3e-3


class HostOrder:
    """One host's part in an order.

    Parameters
    ----------
    rank : int
    group : object
        Process group of those who take part.
    order : mapping
        ``ranks`` who take part, ``repeats``, ``gap`` between them [s], and what the kind of work reads.
    """

    def __init__(self, rank: int, group: Any, order: Mapping[str, Any]) -> None:
        self.rank, self.group, self.order = rank, group, order
        self.size = int(order["ranks"])

    def together(self) -> float:
        """Agree on an instant with all others and wait for it; returns it on the common clock [s]."""
        import torch
        import torch.distributed as dist

        ready = torch.tensor([time.monotonic()], dtype=torch.float64)
        dist.all_reduce(ready, op=dist.ReduceOp.MAX, group=self.group)
        start = float(ready) + SETTLE + float(self.order.get("gap", 0.0))
        while (left := start - time.monotonic()) > 0:
            time.sleep(left)
        return start

    def repeat(self, once: Callable[[], None], *, prepare: Callable[[], None] | None = None) -> list[list[float]]:
        """Do it as often as ordered, after one time for warming up.

        Returns of each repeat begin, end, CPU time of all threads, and of this one [s].
        """
        found = []
        for turn in range(int(self.order["repeats"]) + 1):
            if prepare is not None:
                prepare()
            self.together()
            used, own, begin = time.process_time(), time.thread_time(), time.monotonic()
            once()
            end = time.monotonic()
            if turn:
                found.append([begin, end, time.process_time() - used, time.thread_time() - own])
        return found


def _network(order: Mapping[str, Any]) -> Any:
    """The network that an order names: ``layers`` equal linear layers of ``width``, without biases."""
    import torch

    torch.manual_seed(0)
    width, layers = int(order["width"]), int(order["layers"])
    parts: list[Any] = []
    for _ in range(layers):
        parts += [torch.nn.Linear(width, width, bias=False), torch.nn.ReLU()]
    model = torch.nn.Sequential(*parts[:-1])
    give_way(model)
    return model


def _data(order: Mapping[str, Any]) -> tuple[Any, Any]:
    """Random inputs of a network, and what it should make of them."""
    import torch

    shape = int(order["batch"]), int(order["width"])
    return torch.randn(shape), torch.randn(shape)


def _trainer(order: Mapping[str, Any], model: Any) -> Callable[[], None]:
    """One training step of a model on random data."""
    import torch

    x, y = _data(order)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def once() -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

    return once


def step(work: HostOrder) -> list[list[float]]:
    """Training steps with no communication; forward pass, backward pass and update are read off one by one."""
    import torch

    promptly(COMPUTING)
    order = work.order
    model = _network(order)
    x, y = _data(order)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    found = []
    for turn in range(int(order["repeats"]) + 2):
        times = [time.monotonic()]
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        times.append(time.monotonic())
        loss.backward()
        times.append(time.monotonic())
        optimizer.step()
        times.append(time.monotonic())
        if turn >= 2:
            found.append(times)
    return found


def ddp(work: HostOrder) -> list[list[float]]:
    """Steps of DistributedDataParallel, one after the other; begin and end of each [s]."""
    from torch.nn.parallel import DistributedDataParallel

    promptly(COMPUTING)
    order = work.order
    cap = float(order["bucket"]) / 2**20
    model = DistributedDataParallel(
        _network(order), bucket_cap_mb=cap, process_group=work.group, gradient_as_bucket_view=True
    )
    once = _trainer(order, model)
    for _ in range(2):  # the first step is the one after which buckets are laid out anew
        once()
    work.together()
    times = [time.monotonic()]
    for _ in range(int(order["repeats"])):
        once()
        times.append(time.monotonic())
    return [[a, b] for a, b in pairwise(times)]


def asynchronous(work: HostOrder) -> list[list[float]]:
    """The last rank serves: takes each worker's gradient as it comes, applies it, and sends the weights back.

    With ``synchronous`` it waits for all gradients of a step. A thread a worker, as servers have; one update at a time.
    Each repeat is so many ``steps`` of all workers, from a common start; its begin and end are reported.
    """
    import torch

    order, workers = work.order, work.size - 1
    model = _network(order)
    weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    if work.rank == workers:
        return work.repeat(lambda: _serve(work, weights, workers))
    flat = torch.empty_like(weights)
    x, y = _data(order)
    return work.repeat(lambda: _work(work, model, flat, x, y))


def _work(work: HostOrder, model: Any, flat: Any, x: Any, y: Any) -> None:
    import torch
    import torch.distributed as dist

    server = work.size - 1
    for _ in range(int(work.order["steps"])):
        promptly(COMPUTING)
        for parameter in model.parameters():
            parameter.grad = None
        torch.nn.functional.mse_loss(model(x), y).backward()
        torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()], out=flat)
        promptly(SENDING)
        dist.send(flat, server, group=work.group)
        dist.recv(flat, server, group=work.group)
        promptly(COMPUTING)
        with torch.no_grad():
            done = 0
            for parameter in model.parameters():
                parameter.copy_(flat[done : done + parameter.numel()].view_as(parameter))
                done += parameter.numel()
    promptly(SENDING)


def _serve(work: HostOrder, weights: Any, workers: int) -> None:
    import torch
    import torch.distributed as dist

    lock = threading.Lock()
    barrier = threading.Barrier(workers) if work.order.get("synchronous") else None

    def one(worker: int) -> None:
        room = torch.empty_like(weights)
        for _ in range(int(work.order["steps"])):
            dist.recv(room, worker, group=work.group)
            with lock:
                weights.add_(room, alpha=-1e-3)
            if barrier is not None:
                barrier.wait()
            dist.send(weights, worker, group=work.group)

    threads = [threading.Thread(target=one, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


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
