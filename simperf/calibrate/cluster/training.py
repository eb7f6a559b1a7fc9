"""Training on boxed hosts: DistributedDataParallel, and a parameter server that workers push to and pull from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from simperf.calibrate.cluster.order import HostOrder
from simperf.calibrate.cluster.priority import COMPUTING, SENDING, give_way, promptly

__all__ = ["asynchronous", "ddp", "network", "step"]


def network(order: Mapping[str, Any]) -> Any:
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


def _trainer(order: Mapping[str, Any], model: Any) -> Callable[[], None]:
    """One training step of a model on random data."""
    import torch

    width, batch = int(order["width"]), int(order["batch"])
    x, y = torch.randn(batch, width), torch.randn(batch, width)
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
    model = network(order)
    width, batch = int(order["width"]), int(order["batch"])
    x, y = torch.randn(batch, width), torch.randn(batch, width)
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
        network(order), bucket_cap_mb=cap, process_group=work.group, gradient_as_bucket_view=True
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
    model = network(order)
    weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    if work.rank == workers:
        return work.repeat(lambda: _serve(work, weights, workers))
    flat = torch.empty_like(weights)
    width, batch = int(order["width"]), int(order["batch"])
    x, y = torch.randn(batch, width), torch.randn(batch, width)
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
