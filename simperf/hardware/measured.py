"""Fitted constants of a frontend, of a GPU and of calls on a CPU: the fields of their parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["call_fields", "collective_fields", "device_fields", "frontend_fields"]

#: constants of a frontend that a profile may hold under models that begin with ``frontend``
_FRONTEND = ("launch", "result", "scripted", "graph_launch", "graph_gap", "capture", "depth", "copy_setup")
#: copies whose fitted rate is a constant of the frontend: measured kind -> its field
_STAGED = {"h2d-pageable": "pageable", "d2h-pageable": "pageable", "fresh": "allocate"}
#: traffic of a node of the measured graphs: 1024 numbers of fp32, read and written [B]
_NODE = 8192.0
#: measured beside copies -> category of a kernel
_BESIDE = {"gemm": "compute", "memory": "memory"}

#: ways in which the calls of one small operation are measured
_CALLED = ("plain", "forward", "backward")

#: layers of the step that ``frontend/mixed`` runs, its loss included, and its parameter tensors
_LAYERS, _TENSORS = 15, 12
#: how many times as long an update takes in a step as alone, at most; draws of its constants may be nothing
_LATEST = 10.0
#: calls of that step on the host, by pass and as `FrontendPart.calls` names them
_STEP_CALLS: Mapping[str, Mapping[str, int]] = {
    "forward": {
        **{"conv2d": 2, "add": 1, "batchnorm": 1, "relu": 1, "max_pool2d": 2, "gelu": 1, "linear": 2, "layernorm": 1},
        **{"tanh": 1, "dropout": 1, "sigmoid": 1, "cross_entropy": 1},
    },
    "backward": {
        **{"conv2d": 2, "batchnorm": 1, "relu": 1, "max_pool2d": 2, "gelu": 1, "mm": 4, "sum": 2, "layernorm": 1},
        **{"tanh": 1, "dropout": 1, "sigmoid": 1, "cross_entropy": 1, "nll_loss": 1, "zeros": 1},
    },
}

#: models of collectives: which one, among how many ranks, in how many servers
_COLLECTIVE = re.compile(r"nccl\.([a-z-]+)\.n(\d+)(?:\.s(\d+))?")

#: constants by model, as `simperf.hardware.ProfilePart` has them
Models = Mapping[str, Mapping[str, float]]


def frontend_fields(models: Models) -> dict[str, Any]:
    """Fields of a `FrontendPart` that follow from fitted constants.

    Parameters
    ----------
    models : mapping of str to mapping of str to float
        Constants by model.

    Notes
    -----
    What a synchronisation takes once the device is done is not measured alone: it is the round of one small kernel
    (``wait.round``), less the launch and the kernel. A node of a graph likewise: time a node of a replay, less the
    kernel's when it is launched alone.
    """
    found: dict[str, Any] = {}
    for name, values in models.items():
        if name.partition(".")[0] == "frontend":
            found |= {key: value for key, value in values.items() if key in _FRONTEND}
    if "depth" in found:
        found["depth"] = float(max(1, round(found["depth"])))
    pinned = [name for name in ("copy.h2d-pinned", "copy.d2h-pinned") if name in models]
    if pinned:
        found.setdefault("copy_setup", min(models[name]["setup"] for name in pinned))
    for kind, key in _STAGED.items():
        if f"copy.{kind}" in models:
            rate = models[f"copy.{kind}"]["bandwidth"]
            found[key] = min(rate, found.get(key, rate))
    small = _small_kernel(models, _NODE)
    if "graph.replay-host" in models and "graph.replay" in models:
        host = models["graph.replay-host"]
        found.setdefault("graph_launch", host["alpha"])
        found["graph_node"] = host["beta"]
        if small:
            found.setdefault("graph_gap", models["graph.replay"]["beta"] - small)
    if "launch" in found:
        if "wait.round" in models:
            rest = models["wait.round"]["round"] - found["launch"] - _small_kernel(models, 8.0)
            found["synchronize"] = max(0.0, rest)
        found["calls"] = _calls(models, found["launch"])
        if any(name.startswith("pass:") for name in found["calls"]):
            found["in_step"] = 1.0  # `calls` has what a step adds
    return found


def _small_kernel(models: Models, nbytes: float) -> float:
    """Time of an elementwise kernel on so little data [s]; 0 if none was fitted."""
    for name in ("kernel.elementwise-fp32:mul", "kernel.elementwise-fp32"):
        if "rate" in models.get(name, {}):
            values = models[name]
            return values["overhead"] + nbytes / values.get("cached", values["rate"])
    return 0.0


def _calls(models: Models, launch: float) -> dict[str, float]:
    """Calls of each type, what autograd adds to them, and updates, in shares of a launch."""
    found: dict[str, float] = {}
    for name, values in models.items():
        head, _, rest = name.partition(".")
        kind, _, mode = rest.partition(".")
        if head == "call" and mode == "plain":
            found[kind] = values["plain"] / launch
        elif head == "update":
            found[f"update:{rest}"] = values["alpha"] / launch
            found[f"update:{rest}:tensor"] = values["beta"] / launch
    plain = found.get("relu")
    for passed in ("forward", "backward") if plain is not None else ():
        known = [models[name][passed] for name in (f"call.relu.{passed}", f"call.module.{passed}") if name in models]
        if known and plain is not None:
            found[f"pass:{passed}"] = max(known) / launch - plain
    return found | _late_calls(models, launch, found)


def _late_calls(models: Models, launch: float, hot: Mapping[str, float]) -> dict[str, float]:
    """What passes add to calls, and updates, in a whole step: its code is in no cache when its turn comes."""
    found: dict[str, float] = {}
    for passed, calls in _STEP_CALLS.items():
        measured = models.get(f"call.step.{passed}")
        if measured is not None:
            whole = _LAYERS * measured[passed] / launch
            alone = sum(count * hot.get(kind, 1.0) for kind, count in calls.items())
            found[f"pass:{passed}"] = (whole - alone) / sum(calls.values())
    update, sgd = models.get("call.step.update"), models.get("update.sgd")
    if update is not None and sgd is not None:
        alone = max(sgd["alpha"] + _TENSORS * sgd["beta"], update["update"] / _LATEST)
        longer = max(1.0, update["update"] / alone)
        found |= {name: longer * value for name, value in hot.items() if name.startswith("update:")}
    return found


def device_fields(models: Models) -> dict[str, Any]:
    """Fields of a `GpuPart` that follow from fitted constants."""
    found: dict[str, Any] = {}
    if "kernel_floor" in models.get("gpu", {}):
        found["kernel_floor"] = models["gpu"]["kernel_floor"]
    if "streams" in models:
        found["block_share"] = models["streams"]["held"]
        found["side_by_side"] = models["streams"]["limit"]
    beside: dict[str, float] = {}
    for measured, category in _BESIDE.items():
        for what, value in models.get(f"overlap.{measured}", {}).items():
            beside[f"{what}.{category}"] = max(1.0, value)
    if beside:
        found["beside"] = beside
    return found


def call_fields(models: Models) -> dict[str, Any]:
    """Fields of `simperf.cost.ProcessorCalls` that follow from fitted constants.

    Notes
    -----
    What autograd adds to a call is the difference between the calls of one small operation with and without it; a
    layer is called as a module, which adds more than a function does.
    """
    found: dict[str, Any] = {}
    times = {name: models[f"call.relu.{name}"][name] for name in _CALLED if f"call.relu.{name}" in models}
    if len(times) == len(_CALLED):
        module = models.get("call.module.forward", {}).get("forward", 0.0)
        found["forward"] = max(0.0, max(times["forward"], module) - times["plain"])
        found["backward"] = max(0.0, times["backward"] - times["plain"])
    head = "update."
    updates = {name.removeprefix(head): one for name, one in models.items() if name.startswith(head)}
    if updates:
        found["update"] = {name: (one["alpha"], one["beta"]) for name, one in updates.items()}
    mixed = models.get("call.mixed.update")
    if mixed is not None:
        found |= {key: mixed[key] for key in ("late", "late_at")}
    return found


def collective_fields(name: str, values: Mapping[str, float]) -> dict[str, Any]:
    """Fields of a `simperf.cost.MeasuredCollective` from the constants of the model `name`; empty for other models.

    Examples
    --------
    >>> collective_fields("nccl.all-reduce.n8", {"size_1": 1024.0, "time_1": 2e-5})["sizes"]
    (1024.0,)
    """
    found = _COLLECTIVE.fullmatch(name)
    if found is None:
        return {}
    count = sum(word.startswith("size_") for word in values)
    rows = sorted((values[f"size_{i}"], values[f"time_{i}"]) for i in range(1, count + 1))
    return {
        "collective": found[1],
        "ranks": int(found[2]),
        "servers": int(found[3] or 0),
        "sizes": tuple(size for size, _ in rows),
        "times": tuple(time for _, time in rows),
        "name": name,
        "launches": int(values.get("launches", 0)),
    }
