"""Constants that are true of models of whole devices: CPUs, boards of too little power, several GPUs at once."""

from __future__ import annotations

import numpy as np

from simperf.accuracy.fits.datasheet import efficiency_models, energy_scale
from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.kernels import pooled_row_model
from simperf.calibrate.fit.processor import late_model, processor_models
from simperf.calibrate.fit.products import limited_model, matrix_model
from simperf.calibrate.measure.conditions import amounts
from simperf.hardware import Catalog
from simperf.workload.kinds import matmul, unary
from tests.calibrate.fit.truths import Truth, grid, products

__all__ = ["DEVICES"]


def _late() -> Truth:
    model, _ = late_model("frontend.late", [Measurement("frontend/mixed", {"touched": 1e6}, (1e-5,))])
    return Truth(model, {"hot": 1.2e-5, "late": 4e-5, "late_at": 3e7}, {"touched": np.geomspace(1e4, 1e9, 36)})


def _elements() -> Truth:
    point = Measurement("op/elementwise", amounts(unary("relu", 1000)), (1e-5,))
    models, _ = processor_models("elementwise-fp32:relu", [point])
    nbytes = np.geomspace(1e3, 2e9, 80)
    values = {"overhead": 4e-6, "fork": 6e-6, "capacity": 3e7, "serial": 1.2e10, "cached": 6e10, "memory": 2e10}
    return Truth(models[0], values, {"nbytes": nbytes, "amount": nbytes / 8, "rows": 0 * nbytes, "cold": 0 * nbytes})


def _cores() -> Truth:
    point = Measurement("op/gemm", amounts(matmul(64, 64, k=64)), (1e-5,))
    models, _ = processor_models("gemm-fp32", [point])
    columns = products(60)
    m, n, k = (columns[key] for key in "mnk")
    more = {"read": 4 * (m * k + n * k), "written": 4 * m * n, "cold": 0 * m}
    values = {"rate": 1.5e11, "overhead": 6e-6, "half_m": 12.0, "half_n": 20.0, "half_k": 30.0}
    return Truth(models[1], values, columns | more)


def _limited() -> Truth:
    model = limited_model("k", "gemm", Catalog.load().gpu("t4"))
    values = {"flop_energy": 1.6e-11, "byte_energy": 1.6e-10, "stored": 0.02, "overhead": 8e-6}
    small, large = products(40), products(80, least=1024.0, short=32.0)
    return Truth(model, values, {key: np.concatenate([small[key], large[key]]) for key in small})


def _long() -> Truth:
    columns = products(60)
    columns["k"] = np.geomspace(64, 65536, 60)
    columns["flops"] = 2 * columns["m"] * columns["n"] * columns["k"]
    values = {"rate": 8e12, "overhead": 1e-5, "deep": 0.6}
    return Truth(matrix_model("k", "linear", faces="", deep=True), values, columns)


def _several() -> Truth:
    columns = grid(
        nbytes=np.geomspace(1e5, 1e9, 6),
        pressure=np.geomspace(0.05, 4.0, 6),
        again=np.array([1.0]),
        tail=np.array([0.0, 1 / 3]),
        gpu=np.array([0.0, 1.0]),
        fixed=np.array([6e-6]),
    )
    values = {"kept": 0.4, "loose": 0.5, "rate_0": 7e11, "rate_1": 1.6e12}
    return Truth(pooled_row_model("k", "softmax", gpus=2, late=False), values, columns)


def _data_sheet() -> Truth:
    """Three boards of which one cannot keep its clock; the form that knows the energy, and tiles."""
    parts = [Catalog.load().gpu(name) for name in ("t4", "a100-sxm4-80gb", "p100-pcie-16gb")]
    one = products(120, least=512.0, short=8.0)
    which = np.arange(120) // 3 % len(parts)
    peak, bandwidth, power, scale = (
        np.array([number(part) for part in parts])[which]
        for number in (
            lambda part: part.peak["fp32"],
            lambda part: part.memory_bandwidth,
            lambda part: part.power,
            energy_scale,
        )
    )
    columns = one | {"flops": one["flops"] / peak, "nbytes": one["nbytes"] / bandwidth, "known": one["share"]}
    columns |= {"peak": peak, "bandwidth": bandwidth, "power": power, "scale": scale}
    columns |= {"late": np.zeros(120), "rested": np.ones(120)}
    forms = efficiency_models("k", "linear", one=1.0)
    model = next(form for form in forms if any(each.name == "energy" for each in form.constants))
    return Truth(model, {"rate": 0.85, "memory": 0.9, "energy": 1.5e-11, "lag": 3e-3}, columns)


DEVICES: dict[str, Truth] = {
    "late calls": _late(),
    "elements on a CPU": _elements(),
    "products on a CPU": _cores(),
    "products at limited power": _limited(),
    "long sums": _long(),
    "rows of several GPUs": _several(),
    "products by data sheet": _data_sheet(),
}
