"""The process of a rank that holds activations of some blocks, or the optimizer's states, in its host's memory.

Copies run on a stream for each way, beside the kernels. Activations of a block go to the host behind its forward pass,
and those of the block two before are gone by then: two are there at a time. Backward, those of a block are asked for
when the block behind it begins (Transformer Engine's `cpu_offload` has two buffers, too). The optimizer works through
its weights piece by piece: gradients go to the host, its cores update, and weights come back (Ren et al., ZeRO-Offload,
2021); or states come to the GPU, which updates, and go back.

Not modelled: the host's memory bandwidth under copies, and pinning of its memory.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import simpy

from simperf.engine.device import Device
from simperf.engine.items import Marker
from simperf.engine.kernel import Kernel
from simperf.execution import copy, launch, record, wait
from simperf.execution.thread import Launch
from simperf.schedules import Pass
from simperf.training.pipelined.stage import StageProcess, Steps
from simperf.training.pipelined.stage_time import HoldUntil
from simperf.training.pipelined.work import StepEnd
from simperf.workload.op import Op
from simperf.workload.precision import SINGLE

__all__ = ["OffloadedStage"]

#: streams of copies to the host and back
OUT, BACK = "to host", "from host"
#: dimension by which the times of these copies are told
HOST = "host"

#: share of a host's memory bandwidth that Adam there reaches: ZeRO-Offload, table 4, with 256 GB/s of a DGX-2 [1]
_REACHED = 0.67

#: chunk, block and micro-batch
_Key = tuple[int, int, int]


class HoldForHost(HoldUntil):
    """A hold of a stream until a copy to or from the host is over."""

    __slots__ = ()

    name = "wait: host"

    def count(self, since: float, now: float) -> None:
        """Count it as exposed."""
        self.spent.exposed[HOST] += now - since


@dataclass(eq=False, slots=True)
class OffloadedStage(StageProcess):
    """A rank of a pipeline that holds a part of its memory in that of its host; takes what its base takes.

    Parameters
    ----------
    host : str
        Node of its CPU.
    cpu : Device
        That CPU, where it updates.
    bandwidth : float
        Of that CPU's memory [B/s].
    """

    host: str = ""
    cpu: Device | None = None
    bandwidth: float = math.inf
    _leaving: list[tuple[_Key, Marker]] = field(default_factory=list, init=False)
    _gone: dict[_Key, Marker] = field(default_factory=dict, init=False)
    _coming: dict[_Key, Marker] = field(default_factory=dict, init=False)
    _written: list[Marker] = field(default_factory=list, init=False)

    # Activations -----------------------------------------------------------------------

    def _before(self, one: Pass, index: int) -> Steps:
        """Have room for what a block keeps, or have it back."""
        yield from StageProcess._before(self, one, index)
        key = one.chunk, index, one.microbatch
        before = one.chunk, index - 1, one.microbatch
        if one.kind == "F":
            while self._leaving and (len(self._leaving) > 1 or self._leaving[0][0] != before):
                yield self._hold_for(self._leaving.pop(0)[1])
            return
        if key in self._gone:
            yield from self._fetch(key)
        if key in self._coming:
            yield self._hold_for(self._coming.pop(key))
        if before in self._gone:
            yield from self._fetch(before)

    def _behind(self, one: Pass, index: int, *, final: bool) -> Steps:
        """Send what a block keeps to the host."""
        yield from StageProcess._behind(self, one, index, final=final)
        layer = self.work.layers(self.stage, one.chunk)[index]
        if one.kind == "F" and index in self.work.offloaded(self.stage, one.chunk):
            key = one.chunk, index, one.microbatch
            made = yield record(self.device, "block is done")
            self._gone[key] = yield from self._move(OUT, layer.activations, made, name="activations to host")
            self._leaving.append((key, self._gone[key]))

    def _fetch(self, key: _Key) -> Steps:
        """Ask for what a block has kept, as soon as the device comes here."""
        chunk, index, _ = key
        nbytes = self.work.layers(self.stage, chunk)[index].activations
        yield wait((yield record(self.device, "block begins")), self.device, stream=BACK)
        self._coming[key] = yield from self._move(BACK, nbytes, self._gone.pop(key), name="activations from host")

    # States ----------------------------------------------------------------------------

    def _update(self) -> Steps:
        """Update the weights by pieces, on the host or by what comes from there."""
        end, where = self.work.ends[self.stage], self.work.offload.states
        if where == "gpu":
            yield from StageProcess._update(self)
            return
        ops = [one for one in end.update if isinstance(one, Op)]
        weights = max((one.elements for one in ops), default=0.0)
        ready = yield record(self.device, "gradients are there")
        pieces = list(_pieces(weights, self.work.offload.piece))
        if where == "host":
            yield from self._on_host(weights, pieces, ready)
            return
        nbytes, before = end.state * weights, self._written[-1:]  # of the step before
        self._written.clear()
        for number, share in enumerate(pieces):
            before = self._written[number - 2 : number - 1] if number > 1 else before if not number else []
            for written in (ready, *before):
                yield wait(written, self.device, stream=BACK)
            there = yield from self._move(BACK, share * nbytes, None, name="states from host")
            yield self._hold_for(there)
            for op in ops:
                yield from self._items((_part(op, share),), "update")
            done = yield record(self.device, "piece is updated")
            self._written.append((yield from self._move(OUT, share * nbytes, done, name="states to host")))

    def _on_host(self, weights: float, pieces: list[float], ready: Marker) -> Steps:
        """Gradients to the host, its update, and weights back."""
        assert self.cpu is not None
        end, stream = self.work.ends[self.stage], f"update of {self.device.name}"
        there: Marker | None = None
        for share in pieces:
            sent = yield from self._move(OUT, share * weights * end.gradient, ready, name="gradients to host")
            yield wait(sent, self.cpu, stream=stream)
            yield launch(_adam_on_host(share * weights, end, self.bandwidth), self.cpu, stream=stream)
            updated = yield record(self.cpu, "piece is updated", stream=stream)
            there = yield from self._move(BACK, share * weights * end.weight, updated, name="weights from host")
        if there is not None:
            yield self._hold_for(there)

    # Copies ----------------------------------------------------------------------------

    def _move(self, way: str, nbytes: float, after: Marker | None, *, name: str) -> Generator[Any, Any, Marker]:
        """A copy behind a marker; the marker of its end."""
        if after is not None:
            yield wait(after, self.device, stream=way)
        began: Marker = yield record(self.device, name, stream=way)
        ends = (self.device, self.host) if way == OUT else (self.host, self.device)
        yield copy(*ends, nbytes=nbytes, stream=way, name=name)
        ended: Marker = yield record(self.device, name, stream=way)
        assert ended.done.callbacks is not None

        def count(event: simpy.Event) -> None:
            self.spent.moving[HOST] += float(ended.done.value or 0.0) - float(began.done.value or 0.0)

        ended.done.callbacks.append(count)
        return ended

    def _hold_for(self, marker: Marker) -> Launch:
        return launch(HoldForHost(marker, self.spent), self.device)


def _pieces(weights: float, size: int) -> Iterator[float]:
    """Shares of equal pieces of so many weights, each of `size` at most [1]."""
    count = math.ceil(weights / size)
    yield from (1.0 / count for _ in range(count))


def _part(op: Op, share: float) -> Op:
    """The operation on a part of its elements."""
    sizes = ("flops", "nbytes_read", "nbytes_written", "elements")
    return replace(op, **{name: share * getattr(op, name) for name in sizes})


def _adam_on_host(weights: float, end: StepEnd, bandwidth: float) -> Kernel:
    """Adam on a host, bound by its memory: of 10 billion weights 2.57 s on a DGX-2 (ZeRO-Offload, table 4).

    Each weight moves what it reads, and what it writes twice, as caches read a line before it is written.

    Parameters
    ----------
    weights : float
    end : StepEnd
    bandwidth : float
        Of the host's memory [B/s].

    Examples
    --------
    >>> dgx2 = 2 * 6 * 21.33e9
    >>> round(_adam_on_host(10e9, StepEnd(gradient=4.0, weight=2.0), dgx2).time, 1)
    2.6
    """
    written = 3 * SINGLE + (end.weight if end.weight < SINGLE else 0.0)
    traffic = 3 * SINGLE + end.gradient + 2 * written
    return Kernel("adam on host", weights * traffic / (_REACHED * bandwidth), category="memory")
