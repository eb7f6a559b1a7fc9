"""Time of a message by size: alpha-beta, several by regime with the breakpoints found, copies, messages in a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model

__all__ = ["alpha_beta", "copy_model", "piecewise", "piecewise_model", "pipelined_model"]

#: points that a regime needs: two constants and one to hold them against
_LEAST = 3
#: sizes between which breakpoints are searched
_CANDIDATES = 24


def _line(values: Mapping[str, float], columns: Columns) -> Array:
    return np.asarray(values["alpha"] + values["beta"] * columns["nbytes"])


def alpha_beta(name: str, title: str, *, each: str = "s/B") -> Model:
    """Hockney's two constants: alpha [s], and beta for each unit of size, such as a byte [s/B]."""
    constants = (FitConstant("alpha", 1e-5, high=10.0), FitConstant("beta", 1e-10, high=1.0, unit=each))

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        alpha, beta, _ = _segment(data.columns["nbytes"], data.measured)
        return [{"alpha": alpha, "beta": beta}]

    return Model(name, title, constants, _line, starts=starts)


def copy_model(name: str, title: str) -> Model:
    """A copy: `setup` [s] and `bandwidth` [B/s], as `simperf.engine` simulates it."""

    def copy(values: Mapping[str, float], columns: Columns) -> Array:
        return np.asarray(values["setup"] + columns["nbytes"] / values["bandwidth"])

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        alpha, beta, _ = _segment(data.columns["nbytes"], data.measured)
        return [{"setup": alpha, "bandwidth": 1.0 / max(beta, 1e-15)}]

    constants = (FitConstant("setup", 5e-6, high=10.0), FitConstant("bandwidth", 1e10, low=1.0, high=1e15, unit="B/s"))
    return Model(name, title, constants, copy, starts=starts)


def pipelined_model(name: str, title: str) -> Model:
    """Messages that follow one another: ``max(gap, header + n / bandwidth)``.

    `gap` is the least time between two messages (LogP: D. Culler et al., PPoPP 1993), `header` what each has on the
    wire besides its bytes.
    """

    def pipelined(values: Mapping[str, float], columns: Columns) -> Array:
        wire = values["header"] + columns["nbytes"] / values["bandwidth"]
        return np.asarray(np.maximum(values["gap"], wire))

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        size, time = data.columns["nbytes"], data.measured
        rate, least = float((size / time).max()), float(time.min())
        return [{"gap": least, "header": share * least, "bandwidth": rate} for share in (0.1, 0.5)]

    constants = (
        FitConstant("gap", 1e-6, low=1e-12, high=10.0),
        FitConstant("header", 1e-7, high=10.0),
        FitConstant("bandwidth", 1e10, low=1.0, high=1e15, unit="B/s"),
    )
    return Model(name, title, constants, pipelined, starts=starts)


def _segment(size: Array, time: Array) -> tuple[float, float, float]:
    """Alpha and beta, neither negative, by least squares of relative errors that count outliers less; and the cost.

    The cost is the sum of squared log residuals, each at most 1.
    """
    weight = np.ones_like(time)
    best = (0.0, 0.0, np.inf)
    for _ in range(4):
        a, b = weight / time, weight * size / time
        matrix = np.array([[a @ a, a @ b], [a @ b, b @ b]])
        right = np.array([a @ weight, b @ weight])
        alpha, beta = np.linalg.lstsq(matrix, right, rcond=None)[0]
        if alpha < 0:
            alpha, beta = 0.0, right[1] / matrix[1, 1]
        elif beta < 0:
            alpha, beta = right[0] / matrix[0, 0], 0.0
        off = np.abs(np.log(np.maximum(alpha + beta * size, 1e-300) / time))
        cost = float(np.minimum(off, 1.0) @ np.minimum(off, 1.0))
        if cost < best[2]:
            best = (float(alpha), float(beta), cost)
        residual = (alpha + beta * size) / time - 1.0
        spread = max(float(np.quantile(np.abs(residual), 0.75)) / 1.1503, 5e-3)
        weight = (1.0 + (residual / (1.345 * spread)) ** 2) ** -0.25
    return best


def piecewise(data: Data, *, most: int = 4) -> tuple[float, ...]:
    """Sizes at which the constants change, found in the data [B].

    Every choice of up to `most` regimes over candidate sizes is weighed by Schwarz's criterion (BIC: two constants a
    regime and two for a breakpoint that is searched, against the residuals); a breakpoint lies in the geometric middle
    of two sizes.
    """
    order = np.argsort(data.columns["nbytes"], kind="stable")
    size, time = data.columns["nbytes"][order], data.measured[order]
    cuts = [i for i in range(_LEAST, len(size) - _LEAST + 1) if size[i] > size[i - 1]]
    if len(cuts) > _CANDIDATES:
        cuts = [cuts[round(i)] for i in np.linspace(0, len(cuts) - 1, _CANDIDATES)]
    cost: dict[tuple[int, int], float] = {}

    def weigh(low: int, high: int) -> float:
        if (low, high) not in cost:
            cost[low, high] = _segment(size[low:high], time[low:high])[2]
        return cost[low, high]

    best = np.inf
    found: tuple[int, ...] = ()
    for count in range(min(most, len(size) // _LEAST)):
        for chosen in combinations(cuts, count):
            ends = (0, *chosen, len(size))
            if any(b - a < _LEAST for a, b in pairwise(ends)):
                continue
            left = sum(weigh(a, b) for a, b in pairwise(ends))
            criterion = len(size) * np.log(left / len(size) + 1e-8) + (4 * count + 2) * np.log(len(size))
            if criterion < best - 1e-9:
                best, found = criterion, chosen
    return tuple(float(np.sqrt(size[i - 1] * size[i])) for i in found)


def piecewise_model(name: str, title: str, limits: Sequence[float], data: Data) -> Model:
    """Alpha and beta for each regime between `limits` [B]; starting values from `data`.

    Constants are called ``alpha_1``, ``beta_1`` and so on; ``limit_1`` and so on are fixed.
    """
    edges = np.array(limits)
    place = np.searchsorted(edges, data.columns["nbytes"])
    constants = []
    for i in range(len(edges) + 1):
        alpha, beta, _ = _segment(data.columns["nbytes"][place == i], data.measured[place == i])
        alpha = max(alpha, 0.02 * float(data.measured[place == i].min()))  # a search from zero would stay there
        constants.append(FitConstant(f"alpha_{i + 1}", alpha, high=max(10.0, 10 * alpha)))
        constants.append(FitConstant(f"beta_{i + 1}", beta, high=1.0, unit="s/B"))

    fixed = {f"limit_{i + 1}": float(limit) for i, limit in enumerate(edges)}
    return Model(name, title, tuple(constants), _regimes, fixed=fixed)


def _regimes(values: Mapping[str, float], columns: Columns) -> Array:
    count = sum(key.startswith("alpha_") for key in values)
    edges = [values[f"limit_{i}"] for i in range(1, count)]
    which = np.searchsorted(edges, columns["nbytes"])
    alpha = np.array([values[f"alpha_{i}"] for i in range(1, count + 1)])
    beta = np.array([values[f"beta_{i}"] for i in range(1, count + 1)])
    return np.asarray(alpha[which] + beta[which] * columns["nbytes"])
