"""A rank's share of the mini-batch on its way to the device."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simperf.engine.device import Copy, Stream
from simperf.execution import launch
from simperf.execution.session import Session
from simperf.training.replica import Replica

__all__ = ["fetch", "load"]


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
    """Copy the replica's share from pinned host memory, before the kernels that need it.

    The process first waits for its data loader, if it has one. The copy stands in the default stream, so the frontend
    goes on at once: ``x.to(gpu, non_blocking=True)``.
    """
    yield from fetch(replica)  # for x, y in loader:
    nbytes = replica.step.nbytes_input
    if not nbytes or not replica.source:
        return
    gpu, route = replica.device, m.machine.route(replica.source, replica.device.name)
    latency = m.profile.copy_setup + route.latency
    engine, alone = gpu.copy_engine("h2d"), latency + nbytes / route.bandwidth
    yield launch(
        _Joint("batch to device", engine, route.resources, nbytes, latency, float("inf"), alone, beside=replica.beside),
        gpu,
    )
