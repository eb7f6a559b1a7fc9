"""The frontend of a framework as a part: the constants of launching, waiting and copying."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from simperf.hardware.part import Part
from simperf.hardware.quantity import Bandwidth, Fraction, Latency, Measured, Multiple, QueueDepth, Switch

__all__ = ["FrontendPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendPart(Part):
    """Constants of one framework on one kind of host.

    Parameters
    ----------
    launch : float
        Frontend time to issue one operation eagerly [s], the book's t1.
    in_step : float
        How many times `launch` a launch in the forward and backward passes of training takes, which includes modules
        and autograd, and caches that other calls have filled [1]. Training in a layout of model parallelism takes
        `launch`. It multiplies `calls`, too; a profile that has measured passes sets it to 1.
    result : float
        Time from the backend's last operation until the frontend has its answer [s], the book's t3.
    synchronize : float or None
        The same where it only waits and fetches no number [s]; None takes `result`.
    scripted : float
        Share of `launch` that is left when no Python runs per operation.
    layer_call : float
        Frontend time of one call of a layer (``nn.Module.__call__``, ``Block.__call__``) beside its operations, where
        they are launched one by one from Python [s]; steps of training are kernels without layers, and do not have it.
    compiled : float or None
        Frontend time to launch one kernel of a compiled module [s]; None takes `scripted` of `launch`.
    compiled_call : float
        Frontend time of one call of a compiled module beside its launches: guards, unpacking of arguments [s].
    collective : float or None
        Frontend time to issue one collective of a process group, or its messages to other ranks [s]; None takes
        `launch`.
    profiling : float
        What a profiler of the device's activities adds to such a call [s].
    graph_launch : float
        Frontend time to replay a captured graph, or to call a cached operation, whatever its length [s].
    graph_node : float
        Frontend time that each of its nodes adds to that [s].
    graph_gap : float
        Time of the device between two nodes of a replayed graph [s]; where it was measured, what a node takes more (or,
        below zero, less) than the same kernel that is launched alone.
    capture : float
        Frontend time per operation to record a graph, on top of running it [s].
    depth : float
        Launches outstanding per stream before the frontend blocks; infinite never blocks.
    copy_setup : float
        Time to set up one copy between host and device, on the copy engine [s].
    pageable : float
        Rate at which a copy is staged when host memory is not pinned [B/s].
    copies_block : bool
        Whether a pageable copy blocks the frontend: it does where the frontend calls the driver itself, and not where
        a thread of the library's engine does.
    allocate : float
        Rate at which fresh pageable host memory is obtained (page faults) [B/s].
    pin : float
        Rate at which host memory is pinned [B/s].
    calls : mapping of str to float
        What calls of each type take in shares of `launch`, where that was measured; see `simperf.execution.calls` [1].
    """

    KIND: ClassVar[str] = "frontend"

    launch: Latency = 0.0
    in_step: Multiple = 1.0
    result: Latency = 0.0
    synchronize: Latency | None = None
    scripted: Fraction = 1.0
    layer_call: Latency = 0.0
    compiled: Latency | None = None
    compiled_call: Latency = 0.0
    collective: Latency | None = None
    profiling: Latency = 0.0
    graph_launch: Latency = 0.0
    graph_node: Latency = 0.0
    graph_gap: Latency = 0.0
    capture: Latency = 0.0
    depth: QueueDepth = 1024
    copy_setup: Latency = 0.0
    pageable: Bandwidth = math.inf
    copies_block: Switch = True
    allocate: Bandwidth = math.inf
    pin: Bandwidth = math.inf
    calls: Annotated[Mapping[str, float], Measured] = field(default_factory=dict, hash=False)
