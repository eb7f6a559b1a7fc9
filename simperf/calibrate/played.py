"""A session of the simulator on the machine that a profile was measured on: one host, one GPU, the copies between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from simperf.cost import Device
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import Catalog, FrontendPart, ProfilePart

__all__ = ["MeasuredDevice", "MeasuredMachine", "measured_session"]


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """A device that is in no catalogue, from what was fitted: the best rates reached stand for its peaks."""

    name: str = "measured"
    peak: Mapping[str, float] = field(default_factory=dict)
    memory_bandwidth: float = 1e10
    sms: int = 1
    kernel_floor: float = 0.0
    efficiency: Mapping[str, float] = field(default_factory=dict)
    memory_capacity: float = math.inf
    block_share: float | None = None
    side_by_side: float = math.inf
    beside: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, profile: ProfilePart) -> MeasuredDevice:
        """The device of a profile."""
        peak: dict[str, float] = {}
        bandwidth = 1e9
        floors = []
        for name, constants in profile.kernels().items():
            family, _, dtype = name.partition(":")[0].partition("-")
            if "half_k" in constants or family in ("gemm", "conv", "attention"):
                peak[dtype] = max(peak.get(dtype, 0.0), constants["rate"])
            else:
                bandwidth = max(bandwidth, constants.get("rate", constants.get("memory", 0.0)))
            floors.append(constants.get("overhead", 0.0))
        fastest = max(peak.values(), default=1e12)
        every = dict.fromkeys(("fp32", "fp16", "bf16", "fp64"), fastest) | peak
        floor = float(np.median(floors)) if floors else 0.0
        sms = int(profile.machine.get("sms", 1))
        return cls(peak=every, memory_bandwidth=bandwidth, kernel_floor=floor, sms=sms)


@dataclass(frozen=True, slots=True)
class _Node:
    kind: str
    part: Any = None


@dataclass(frozen=True, slots=True)
class _Way:
    """A route of `simperf.engine.simulation.Path`."""

    resources: tuple[str, ...]
    latency: float
    bandwidth: float


class MeasuredMachine:
    """One host and one GPU, with a way for the copies of each direction, as they were measured.

    Parameters
    ----------
    part : Device
        The GPU.
    ways : mapping of str to (float, float)
        ``"h2d"`` and ``"d2h"``: latency beyond the frontend's set-up of a copy [s], and bandwidth [B/s].
    cores : float
        Of the host.
    """

    def __init__(self, part: Device, ways: Mapping[str, tuple[float, float]], *, cores: float = 1.0) -> None:
        self.nodes: dict[str, _Node] = {"gpu0": _Node("gpu", part), "cpu0": _Node("cpu")}
        self.gpus, self.hosts = ("gpu0",), ("cpu0",)
        self.resources = {name: bandwidth for name, (_, bandwidth) in ways.items()}
        self._ways, self._cores = ways, cores

    def host_of(self, node: str) -> str:
        """The CPU node."""
        return "cpu0"

    def cores(self, host: str) -> float:
        """Of the host."""
        return self._cores

    def route(self, src: str, dst: str) -> _Way:
        """The way of a copy between host and GPU; without a limit if it was not measured."""
        name = "h2d" if dst == "gpu0" else "d2h"
        if name not in self._ways:
            return _Way((), 0.0, math.inf)
        latency, bandwidth = self._ways[name]
        return _Way((name,), latency, bandwidth)


def measured_session(profile: ProfilePart, *, part: Device | None = None, draw: int = 0) -> Session:
    """A session on the machine of a profile, with the constants of a joint draw.

    Parameters
    ----------
    profile : ProfilePart
    part : Device, optional
        The GPU of the catalogue; without it `MeasuredDevice`.
    draw : int
        From 1; 0 takes the best values.

    Notes
    -----
    What was not measured, such as the rate of pinning, is that of the catalogue's PyTorch.
    """
    device: Any = MeasuredDevice.of(profile) if part is None else part
    known = {one.name for one in fields(device)}
    device = replace(device, **{key: value for key, value in profile.device(draw).items() if key in known})
    frontend = profile.adjusted(Catalog.load().frontend("pytorch"), draw)
    assert isinstance(frontend, FrontendPart)
    ways = {}
    for direction in ("h2d", "d2h"):
        model = profile.model.get(f"copy.{direction}-pinned")
        if model is not None:
            found = model.at(draw)
            ways[direction] = (max(0.0, found["setup"] - frontend.copy_setup), found["bandwidth"])
    machine = MeasuredMachine(device, ways, cores=float(profile.machine.get("cores", 1)))
    simulation = Simulation(machine, depth=frontend.depth)
    return Session(simulation, profile=frontend, kernels=profile.kernels(draw))
