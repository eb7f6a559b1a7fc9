"""Recorded points as scenarios of the machine that a profile was measured on: one host, one GPU, a link between."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simperf.execution import FREE
from simperf.hardware import Catalog, FrontendPart, GpuPart, ProfilePart, build_machine
from simperf.programs import ProgramSpec
from simperf.scenario import Scenario
from simperf.scenario.calibration import adjusted, cost_settings
from simperf.scenario.schema import CostTable

__all__ = ["measured_part", "measured_scenario"]

#: of a device that is in no catalogue
_NAME = "measured"


def measured_part(profile: ProfilePart) -> GpuPart:
    """A device that is in no catalogue, from what was fitted: the best rates reached stand for its peaks."""
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
    return GpuPart(
        name=_NAME,
        title="The device that was measured",
        sources={"default": f"profile {profile.name}: the best rates that were reached"},
        architecture="",
        peak=every,
        memory_bandwidth=bandwidth,
        memory_capacity=math.inf,
        l2=math.inf,
        sms=int(profile.machine.get("sms", 1)),
        kernel_floor=float(np.median(floors)) if floors else 0.0,
        copy_engines=2,
        efficiency={},
    )


def measured_scenario(
    profile: ProfilePart,
    program: ProgramSpec,
    parameters: Mapping[str, Any],
    *,
    part: GpuPart | None = None,
    draw: int = 0,
) -> Scenario:
    """A scenario of a program on the machine of a profile, with the constants of a joint draw.

    It is what a file with ``[calibration] use = PROFILE`` makes on a machine of the same kind: a GPU is driven by the
    catalogue's PyTorch, calls on a CPU end with their work.

    Parameters
    ----------
    profile : ProfilePart
    program : ProgramSpec
    parameters : mapping of str to object
        Of the program; the others have their defaults.
    part : GpuPart, optional
        The GPU of the catalogue; without it `measured_part`.
    draw : int
        From 1; 0 takes the best values.
    """
    catalog = Catalog.load()
    device = adjusted(part or measured_part(profile), (profile,), draw)
    rates = [profile.model[name].at(draw)["bandwidth"] for name in _COPIES if name in profile.model]
    host = {"id": "cpu0", "kind": "cpu"}
    link = {"a": "cpu0", "b": "gpu0", "bandwidth": f"{max(rates, default=1e15)!r} B/s", "latency": "0 s"}
    table = {"node": [{"id": "gpu0", "gpu": device.name}, host], "link": [link]}
    front = FREE if profile.calls() else catalog.frontend("pytorch")
    frontend = adjusted(front, (profile,), draw)
    assert isinstance(frontend, FrontendPart)
    return Scenario(
        name=program.name,
        machine=build_machine(table, catalog.with_part(device)),
        frontend=frontend,
        cost=cost_settings(CostTable(), (profile,), draw),
        program=program,
        parameters={name: one.default for name, one in program.parameters.items()} | dict(parameters),
        profiles=(profile,),
    )


_COPIES = ("copy.h2d-pinned", "copy.d2h-pinned")
