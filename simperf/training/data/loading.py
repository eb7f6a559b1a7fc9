"""A rank's share of the mini-batch on its way to the device."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from simperf.engine.device import Copy, Stream
from simperf.errors import InputError, Problem
from simperf.execution import launch, record, wait
from simperf.execution.session import Session
from simperf.training.replica import Replica
from simperf.training.step import ReplicaStep

__all__ = ["AHEAD", "fetch", "load", "placed_batches"]

#: stream on which mini-batches are copied ahead
AHEAD = "input"


@dataclass(frozen=True, slots=True)
class _Joint(Copy):
    """A copy beside those of other ranks, which are not simulated, to their devices."""

    beside: tuple[tuple[str, ...], ...] = ()

    def start(self, stream: Stream) -> None:
        """Queue at the copy engine; the others set out as well."""
        for links in self.beside:
            stream.device.network.transfer(links, self.nbytes, latency=self.latency, cap=self.cap, name=self.name)
        Copy.start(self, stream)


def fetch(replica: Replica) -> Generator[Any, Any, None]:
    """Wait for the next mini-batch of the process's data loader, if it has one."""
    replica.begin()
    if replica.feed is not None:
        yield from replica.feed.fetch(replica.device)


def load(m: Session, replica: Replica) -> Generator[Any, Any, None]:
    """Copy the replica's share from pinned host memory, before the kernels that need it, or the next one beside them.

    The process first waits for its data loader, if it has one. The copy stands in the default stream, so the frontend
    continues at once: ``x.to(gpu, non_blocking=True)``. Copies ahead have a stream of their own, which the default one
    waits for.
    """
    yield from fetch(replica)  # for x, y in loader:
    if not replica.step.nbytes_input or not replica.source:
        return
    if replica.ahead is None:
        yield launch(_batch(m, replica), replica.device)
        return
    side = replica.device.stream(AHEAD)
    if replica.ahead.copied is None:
        yield launch(_batch(m, replica), side)
        replica.ahead.copied = yield record(side, "batch copied")
    yield wait(replica.ahead.copied, replica.device)
    yield launch(_batch(m, replica), side)
    replica.ahead.copied = yield record(side, "batch copied")


def _batch(m: Session, replica: Replica) -> _Joint:
    """The copy of a mini-batch to the replica's device."""
    gpu, route, nbytes = replica.device, m.machine.route(replica.source, replica.device.name), replica.step.nbytes_input
    latency = m.profile.copy_setup + route.latency
    engine, alone = gpu.copy_engine("h2d"), latency + nbytes / route.bandwidth
    links = replica.beside
    return _Joint("batch to device", engine, route.resources, nbytes, latency, float("inf"), alone, beside=links)


def placed_batches(step: ReplicaStep, batches: str) -> ReplicaStep:
    """A step with its mini-batches where they lie, as `simperf.training.job.Input` names it.

    Raises
    ------
    InputError
        The step has none that could be copied ahead, or lie on the device.
    """
    if batches == "host":
        return step
    if not step.nbytes_input:
        message = "the model has no mini-batches that are copied"
        raise InputError(Problem(message, key="batches", value=batches, expected='sample = bytes of one, or "host"'))
    return replace(step, nbytes_input=0.0) if batches == "device" else step
