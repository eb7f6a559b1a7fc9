"""For each fitted model: constants that are true, and the conditions of points that can tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simperf.calibrate.cluster.fitting import TINY, _Rows, _waits, fitted_points
from simperf.calibrate.cluster.sends import _line
from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit import Columns, Data, Model
from simperf.calibrate.fit.constants import constant_model
from simperf.calibrate.fit.device import overlap_model, stream_data, streams_model
from simperf.calibrate.fit.kernels import row_model, stream_model
from simperf.calibrate.fit.messages import alpha_beta, copy_model, piecewise_model, pipelined_model
from simperf.calibrate.fit.products import matrix_model

MIB = float(2**20)


@dataclass(frozen=True)
class Truth:
    model: Model
    values: Mapping[str, float]
    columns: Columns

    def measured(self, rng: np.random.Generator, *, noise: float = 0.03, outliers: float = 0.04) -> Data:
        """Readings with lognormal noise, and some points up to three times too slow."""
        exact = self.model.predict(self.values, self.columns)
        spoiled = np.where(rng.random(len(exact)) < outliers, rng.uniform(1.3, 3.0, len(exact)), 1.0)
        return Data.table(exact * np.exp(noise * rng.standard_normal(len(exact))) * spoiled, **self.columns)


def grid(**axes: np.ndarray) -> dict[str, np.ndarray]:
    found = np.meshgrid(*axes.values(), indexing="ij")
    return {name: values.ravel() for name, values in zip(axes, found, strict=True)}


def products(count: int = 40, least: float = 32.0, short: float = 0.0) -> dict[str, np.ndarray]:
    """Columns of random shapes, without loss by tiles; a third of the sums as `short` as that, if it is given."""
    rng = np.random.default_rng(7)
    m, n, k = np.exp(rng.uniform(np.log(least), np.log(8192), (3, count))).round()
    if short:
        k[::3] = short
    return {
        "flops": 2 * m * n * k,
        "nbytes": 4 * (m * n + n * k + m * k),
        "m": m,
        "n": n,
        "k": k,
        "share": np.ones(count),
    }


def _concurrent() -> dict[str, np.ndarray]:
    """As measured on 80 multiprocessors."""
    rows = [
        Measurement("streams/concurrent", {"side": side, "streams": streams, "kernels": 20}, (1e-6 * side,))
        for side in (64, 128, 256, 512, 768)
        for streams in (1, 2, 4, 8, 16, 32, 64)
    ]
    data = stream_data(rows, 80)
    assert data is not None
    return dict(data.columns)


SIZES = np.geomspace(1e3, 1e9, 25)
_TWO = piecewise_model(
    "regimes",
    "two regimes",
    [64e3],
    Data.table(np.where(SIZES < 64e3, 1e-5 + 1e-9 * SIZES, 5e-5 + 1e-10 * SIZES), nbytes=SIZES),
)

TRUTHS: dict[str, Truth] = {
    "launch": Truth(constant_model("frontend", "launch", "t1"), {"launch": 5.2e-6}, {"one": np.ones(40)}),
    "alpha-beta": Truth(alpha_beta("link", "a link"), {"alpha": 2e-5, "beta": 8e-11}, {"nbytes": SIZES}),
    "copy": Truth(copy_model("copy", "pinned"), {"setup": 7e-6, "bandwidth": 12.4e9}, {"nbytes": SIZES}),
    "messages in a row": Truth(
        pipelined_model("adapter", "an adapter"),
        {"gap": 0.32e-6, "header": 0.25e-6, "bandwidth": 24e9},
        {"nbytes": np.geomspace(512, 8 * MIB, 29)},
    ),
    "regimes": Truth(_TWO, {"alpha_1": 1e-5, "beta_1": 1e-9, "alpha_2": 5e-5, "beta_2": 1e-10}, {"nbytes": SIZES}),
    "stream": Truth(stream_model("k", "add"), {"overhead": 4e-6, "rate": 8e11}, {"nbytes": SIZES, "cold": 0 * SIZES}),
    "stream with a cache": Truth(
        stream_model("k", "add", cache=2.5e8),
        {"overhead": 4e-6, "rate": 8e11, "cached": 3e12, "capacity": 3e7},
        {"nbytes": np.geomspace(1e5, 1e9, 40), "cold": np.zeros(40)},
    ),
    "rows": Truth(
        row_model("k", "softmax"),
        {"rate": 7e11, "kept": 0.4, "loose": 0.5, "overhead": 5e-6},
        grid(
            nbytes=np.geomspace(1e5, 1e9, 6),
            pressure=np.geomspace(0.05, 4.0, 6),
            again=np.array([1.0]),
            tail=np.array([0.0, 1 / 3]),
        ),
    ),
    "product": Truth(
        matrix_model("k", "gemm", faces="mk"),
        {"rate": 1.4e13, "overhead": 1e-5, "half_m": 40.0, "half_k": 90.0},
        products(),
    ),
    "sends": Truth(
        _line(shaped=False),
        {"message": 3e-4, "rate": 24e6},
        {"nbytes": np.geomspace(1024, 16 * MIB, 12)},
    ),
    "streams": Truth(
        streams_model(limited=True),
        {"held": 0.6, "limit": 12.0},
        _concurrent(),
    ),
    "overlap": Truth(
        overlap_model("memory"),
        {"copy": 1.3, "kernel": 1.15},
        grid(part=np.array([0.0, 1.0, 2.0]), copy=np.geomspace(2e-4, 6e-3, 5), compute=np.array([4e-4, 2e-3])),
    ),
}


def boxed_message() -> Truth:
    """The one model that is fitted through the simulator: small sends in a boxed cluster (a second for some fits)."""
    from tests.calibrate.test_cluster_fitting import RATE, TRUTH, synthesise

    points = [
        point
        for point in fitted_points(synthesise(), RATE)
        if point.series != "send-train" and point.number("nbytes") <= TINY
    ]
    rows = _Rows(points)
    known = {key: value for key, value in TRUTH.items() if key != "wake"}
    return Truth(_waits(known, points), {"wake": TRUTH["wake"]}, {"row": np.array([rows(point) for point in points])})
