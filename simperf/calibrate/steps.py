"""Whole training steps from a profile: what no constant was fitted to, so that it tells how right they are together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Measurement
from simperf.calibrate.played import MeasuredDevice
from simperf.calibrate.steps_gpu import player
from simperf.cost import Device, FittedRoofline
from simperf.cost.processor import LATE, late_time, step_as_run
from simperf.errors import SimperfError
from simperf.hardware import ProfilePart
from simperf.workload.op import Op

__all__ = ["MeasuredDevice", "step_predictor"]


def step_predictor(
    profile: ProfilePart, *, part: Device | None = None
) -> Callable[[Measurement], tuple[float, float, float] | None]:
    """A function that predicts points of ``step/MODEL`` and ``program/NAME``: best, low and high [s].

    On a CPU a call returns when its work is done, so that a step is the sum of its operations, as each was
    measured with its call, and of what autograd adds to a call. On a GPU steps and programs are played by the
    simulator (`simperf.calibrate.steps_gpu`).
    """
    device: Device = MeasuredDevice.of(profile) if part is None else part
    draws = min(profile.draws, 32)
    models = [FittedRoofline(device, profile.kernels(draw)) for draw in range(draws + 1)]
    extra = _autograd(profile)
    shared, between = (_middle(profile, key) for key in ("scatter", "between"))
    cache = float(profile.machine.get("l3", np.inf))
    known: dict[tuple[str, int, str, str], Mapping[str, Sequence[Op]]] = {}
    on_gpu = player(profile, part=part, scatter=shared, between=between)

    def predict(point: Measurement) -> tuple[float, float, float] | None:
        if point.at.get("device", "cpu") != "cpu":
            return on_gpu(point)
        if "batch" not in point.at:
            return None
        part_name = str(point.at.get("part", "step"))
        key = (str(point.at.get("model", "")), int(point.number("batch")), *_words(point))
        try:
            if key not in known:
                known[key] = _operations(*key, cache=cache)
        except SimperfError:
            return None
        parts = ("forward", "backward", "update") if part_name == "step" else (part_name,)
        touched = sum(op.nbytes for each in known[key].values() for op in each)
        host = _update(profile, key, touched) if "update" in parts else 0.0
        times = [
            host
            + sum(
                model.cost(op if each != "update" else replace(op, since=0.0)).time + extra.get(each, 0.0)
                for each in parts
                for op in known[key][each]
            )
            for model in models
        ]
        spread = np.log(np.array(times[1:])).std() if draws > 1 else between
        width = NORMAL * float(np.hypot(spread, shared))
        return times[0], times[0] * float(np.exp(-width)), times[0] * float(np.exp(width))

    return predict


def _words(point: Measurement) -> tuple[str, str]:
    return str(point.at.get("precision", "fp32")), str(point.at.get("optimizer", ""))


def _operations(name: str, batch: int, precision: str, optimizer: str, *, cache: float) -> Mapping[str, Sequence[Op]]:
    from simperf.workload.zoo import load

    step = load(name).at(batch, precision, optimizer=optimizer)
    return step_as_run(step, cache=cache)


def _middle(profile: ProfilePart, key: str) -> float:
    """Median over the models of operations.

    A step repeats few shapes, so that what a model misses at one of them does not average out; and a session is quiet
    or disturbed for all of them.
    """
    found = [getattr(model, key) for name, model in profile.model.items() if name.startswith("kernel.")]
    return float(np.median(found)) if found else 0.0


def _autograd(profile: ProfilePart) -> dict[str, float]:
    """What recording and replaying adds to a call of the forward and of the backward pass [s]."""
    models = {name: profile.model.get(f"call.relu.{name}") for name in ("plain", "forward", "backward")}
    times = {name: model.at()[name] for name, model in models.items() if model is not None}
    if len(times) < len(models):
        return {}
    module = profile.model.get("call.module.forward")  # a layer is called as a module
    if module is not None:
        times["forward"] = max(times["forward"], module.at()["forward"])
    return {name: max(0.0, times[name] - times["plain"]) for name in ("forward", "backward")}


def _update(profile: ProfilePart, key: tuple[str, int, str, str], touched: float) -> float:
    """What the optimizer's Python takes for a step of the model, whatever the sizes of its parameters [s].

    Its code was last used a step ago, and `touched` went through the caches since [B].
    """
    from simperf.workload.zoo import load

    name, _, _, optimizer = key
    model = load(name)
    line = profile.model.get(f"update.{optimizer or model.optimizer.name}")
    if line is None:
        return 0.0
    found = line.at()
    mixed = profile.model.get("call.mixed.update")
    known = {name: mixed.at()[name] for name in LATE} if mixed is not None else {}
    return found["alpha"] + found["beta"] * len(model.gradients) + float(late_time(touched, **known))
