"""A data set of a GPU that never was: readings of formulas with known constants."""

from __future__ import annotations

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit import FitSet
from simperf.calibrate.profile import profile_text
from simperf.files import write_text
from simperf.workload.kinds import matmul, unary
from simperf.workload.op import Op

__all__ = ["LAUNCH", "MEMORY", "PINNED", "RATE", "gpu_dataset", "write_profile"]

RATE, MEMORY, PINNED, LAUNCH = 8e12, 6e11, 12e9, 5e-6


def write_profile(path: object, found: FitSet, **how: object) -> None:
    """The profile of some fits in a file; `how` is as of `profile_text`."""
    write_text(str(path), profile_text(found, **how))


def _samples(rng: np.random.Generator, time: float, count: int = 7) -> tuple[float, ...]:
    return tuple(float(value) for value in time * np.exp(0.01 * rng.standard_normal(count)))


def _at(op: Op) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {
        "kind": op.kind,
        "family": op.family,
        "dtype": op.dtype,
        "flops": op.flops,
        "nbytes_read": op.nbytes_read,
        "nbytes_written": op.nbytes_written,
        "elements": op.elements,
        "device": "cuda",
        "cache": "warm",
    }
    if op.gemm is not None:
        found |= {f"gemm_{key}": getattr(op.gemm, key) for key in ("batch", "m", "n", "k")}
    return found


def gpu_dataset(seed: int = 0, *, title: str = "a GPU that never was") -> Dataset:
    rng = np.random.default_rng(seed)
    points = []
    for m in (256, 512, 1024, 2048, 4096):
        for k in (256, 1024, 4096):
            op = matmul(m, 2048, k=k)
            time = 6e-6 + op.flops / RATE * (1 + 60 / k)
            points.append(Measurement("op/gemm", _at(op), _samples(rng, time)))
    for n in np.geomspace(1e4, 1e8, 9):
        op = unary("relu", int(n))
        points.append(Measurement("op/elementwise", _at(op), _samples(rng, 3e-6 + op.nbytes / MEMORY)))
    for n in np.geomspace(1e4, 1e8, 10):
        at = {"nbytes": int(n), "device": "cuda"}
        points.append(Measurement("copy/h2d-pinned", at, _samples(rng, 8e-6 + n / PINNED)))
    points.append(Measurement("queue/depth", {"device": "cuda"}, (1023.0, 1024.0, 1024.0, 1024.0), "launches"))
    points.append(Measurement("queue/launch", {"device": "cuda"}, _samples(rng, LAUNCH, 9)))
    for ranks in (2, 4):
        for n in np.geomspace(1e3, 1e8, 12):
            steps = 2 * (ranks - 1)
            time = 20e-6 + 2e-6 * steps + (steps + 0.4) * n / ranks / 2e11
            at = {"nbytes": int(n), "ranks": ranks}
            points.append(Measurement("all-reduce/nccl", at, _samples(rng, time)))
    points.append(Measurement("step/lenet", {"model": "lenet", "batch": 32, "device": "cuda"}, (0.01,)))
    points.append(Measurement("tea/brewing", {"leaves": 3}, (180.0,)))
    return Dataset(
        title=title,
        machine={"gpu": "NVIDIA Imaginary 9000"},
        versions={"torch": "2.9"},
        made={"command": "by formulas", "date": "2026-01-01"},
        measurements=tuple(points),
    )
