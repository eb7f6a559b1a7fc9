"""Regime of a run: the activity that is busy for the largest share of the time.

A run is held up by whatever never rests. The shares here are those of being busy, hidden or not, unlike
the breakdown's: a frontend that launches all the time is the limit although a device
works beside it for half of that time.

The regimes are those of H. He, "Making Deep Learning Go Brrrr From First Principles"
(2022), with the movement of data between devices distinguished.

Where ranks are stages of a pipeline, shares of devices are means over all ranks, and a run in which they wait for each
other for the largest share is ``bubble-bound``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simperf.analysis.breakdown import BUBBLE, IDLE, breakdown
from simperf.analysis.timeline import Sweep, sweep
from simperf.engine.recorder import Category
from simperf.results import Result

__all__ = ["REGIMES", "Regime", "busy", "regime"]

#: share of the time for which devices may wait for their input before it is what bounds the run [1]
_STARVED = 0.05
#: span of a host that makes a mini-batch of what was stored
DECODE = "decode"
#: All that `regime` may answer.
REGIMES = (
    "compute-bound",
    "memory-bound",
    "communication-bound",
    "copy-bound",
    "input-bound",
    "overhead-bound",
    "bubble-bound",
    "idle",
)


class Regime(NamedTuple):
    """Regime of a run, and the share of the time [1] for which its activity was busy."""

    name: str
    share: float


def busy(result: Result) -> dict[Category, float]:
    """Share of the time for which each category was active anywhere [1], hidden or not."""
    swept = sweep(result)
    if result.time <= 0:
        return {}
    return {category: swept.time(swept.active[category]) / result.time for category in swept.active}


def regime(result: Result) -> Regime:
    """Name what bounds the run.

    Kernels count together, as ``compute-bound`` or ``memory-bound`` by what most of their
    time goes to. Work of a host that feeds from storage is ``input-bound``, if devices starve: several
    workers that run ahead are always busy too, and nobody waits for them. In a run that
    neither reads storage nor decodes it is the frontend's, ``overhead-bound``. On a tie the device is
    named before what feeds it. ``idle``: for most of the time nothing was active, or
    no timeline was recorded.
    """
    if result.time <= 0 or not result.spans:
        return Regime("idle", 0.0)
    swept = sweep(result)
    reads = "storage" in swept.active or any(span.name == DECODE for span in result.spans)
    groups: dict[str, tuple[Category, ...]] = {
        _kernel_regime(swept): ("compute", "memory"),
        "communication-bound": ("communication",),
        "copy-bound": ("copy",),
        "input-bound": ("storage", "host") if reads else ("storage",),
        "overhead-bound": ("overhead",) if reads else ("overhead", "host"),
    }
    shares = {name: swept.time(swept.any(*members)) / result.time for name, members in groups.items()}
    if not _starved(swept):
        shares["input-bound"] = 0.0
    if result.has_stages:
        return _of_stages(result, shares, groups)
    everything = swept.any(*(category for members in groups.values() for category in members))
    name = max(shares, key=lambda key: round(shares[key], 12))
    idle = swept.time(~everything) / result.time
    return Regime("idle", idle) if idle > shares[name] else Regime(name, shares[name])


def _of_stages(result: Result, shares: dict[str, float], groups: dict[str, tuple[Category, ...]]) -> Regime:
    """The regime of a run whose ranks are stages, from shares of all devices and hosts together."""
    from simperf.analysis.stages import rank_timelines

    parts = breakdown(result)
    of_devices = [name for name in groups if name not in ("input-bound", "overhead-bound")]
    shares |= dict.fromkeys(of_devices, 0.0)
    for one in rank_timelines(result):
        for name in of_devices:
            shares[name] += one.share * one.swept.time(one.swept.any(*groups[name])) / result.time
    shares["overhead-bound"] = parts["overhead"] / result.time  # each host launches for ranks of its own
    shares["bubble-bound"] = parts[BUBBLE] / result.time
    name = max(shares, key=lambda key: round(shares[key], 12))
    idle = parts[IDLE] / result.time
    return Regime("idle", idle) if idle > shares[name] else Regime(name, shares[name])


def _starved(swept: Sweep) -> bool:
    """Whether storage and host leave the devices without work, from the first kernel on, for a while that matters."""
    kernels = swept.any("compute", "memory")
    begun = np.cumsum(kernels) > 0 if kernels.any() else ~kernels
    bare = swept.any("storage", "host") & ~swept.any("compute", "memory", "communication", "copy")
    return swept.time(bare & begun) > _STARVED * swept.time(begun)


def _kernel_regime(swept: Sweep) -> str:
    compute, memory = swept.time(swept.any("compute")), swept.time(swept.any("memory"))
    return "memory-bound" if memory > compute else "compute-bound"
