"""The data of a job: where mini-batches are when their step begins, and what it takes to have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from simperf.errors import Problem
from simperf.training.data_loaders import Feeding
from simperf.training.jitter import Family, distribution
from simperf.units import Bytes, Ratio, Seconds

__all__ = ["Input"]


@dataclass(frozen=True, slots=True)
class Input:
    """The data of a job, and how its processes come by their mini-batches.

    Parameters
    ----------
    loop : float
        work of each process for a batch beside launching: the Python of the loop, a data loader without workers [s]
    decode : float
        time of a core to decode one sample, by the data loader of each process [s]
    workers : int
        processes of each data loader that decode ahead; 0: the process that trains decodes by itself
    prefetch : int
        mini-batches that each of them may have ready
    jitter : str
        how the time to decode a mini-batch varies, each loader's by itself
    cv : float
        standard deviation of that time over its mean [1]
    disk : str
        storage node of each server that the loaders read; without one, samples lie in memory
    stored : float
        bytes of a sample on that disk [B]
    counted : float
        what is counted of a sample, such as the tokens of a sentence: samples a second are in that, alone too
    dataset : int
        samples of an epoch, whose time is reported then
    batches : str
        where mini-batches are when their step begins: in pinned memory of the host, copied ahead on a stream of its own
        beside the step before (DALI, a prefetcher, a staging area), or on the device for good (synthetic data)
    """

    loop: Seconds = 0.0
    decode: Seconds = 0.0
    workers: int = 0
    prefetch: int = 2
    jitter: Family = "constant"
    cv: Ratio = 0.1
    disk: str = ""
    stored: Bytes = 0.0
    counted: float = 1.0
    dataset: int = 0
    batches: Literal["host", "ahead", "device"] = "host"

    def feeding(self) -> Feeding:
        """Data loading by these options, checked."""
        return Feeding(
            self.decode, self.workers, self.prefetch, distribution(self.jitter, cv=self.cv), self.disk, self.stored
        )

    def problems(self, *, scatters: bool) -> Iterator[Problem]:
        """Mini-batches that cannot be copied ahead, or never: what is decoded, and what one process scatters."""
        told = list[tuple[str, str]]()
        if self.batches == "host":
            return
        if scatters:
            told.append(("one process scatters each mini-batch", "strategy ddp"))
        if not self.feeding().idle:
            told.append(("mini-batches that are decoded or read come from the host", "no decode and no disk"))
        for why, other in told:
            yield Problem(why, key="batches", value=self.batches, expected=f'{other}, or "host"')
