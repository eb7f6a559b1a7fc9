"""Profile of the loss: ends of intervals where a model is not linear.

The bootstrap of `simperf.calibrate.uncertainty.bootstrap` moves all constants along straight lines, which is right
only near the optimum: a breakpoint, a half size or a capacity can go much farther to one side than to the other. So the
bootstrap says by how much the loss may rise at an end, and a profile of the loss says where it has risen so much: the
constant is held at a value, all others are fitted again, and the value is moved until the rise is met. Where a model is
linear, this gives back what the bootstrap gave (D. M. Bates and D. G. Watts, *Nonlinear Regression Analysis and Its
Applications*, 1988, section 6.1: the profile t function). A constant at a bound has an end on the other side only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simperf.calibrate.fit.model import Array
from simperf.calibrate.uncertainty import soft_l1

__all__ = ["LossProfile"]

_STEP = 1e-6
#: values at which a constant is held before an end is given up, and how well the rise of the loss must be met
_TRIES, _NEAR = 10, 0.02
#: steps of the search for the other constants
_STEPS = 12
#: farthest that an end may lie from the best value, in lengths of the straight line's
_FARTHEST = 6.0


class LossProfile:
    """The loss around an optimum, with one constant held.

    Parameters
    ----------
    residual : callable
        From constants, as an array in units of `unit`, to the log residuals.
    best, low, high : ndarray
        Constants at the optimum, and their bounds, in units of `unit`.
    scale : float
        Of the soft L1 loss.
    """

    def __init__(
        self, residual: Callable[[Array], Array], best: Array, low: Array, high: Array, *, scale: float
    ) -> None:
        self._residual, self._best, self._low, self._high, self._scale = residual, best, low, high, scale
        self._least = soft_l1.loss(residual(best), self._scale)
        jacobian = self._jacobian(best, residual(best), range(len(best)))
        self._normal = jacobian.T @ (soft_l1.weights(residual(best), self._scale)[:, None] * jacobian)

    def _jacobian(self, at: Array, residual: Array, which: range | list[int]) -> Array:
        columns = np.zeros((len(residual), len(which)))
        for column, i in enumerate(which):
            step = _STEP * max(abs(at[i]), 1e-3)
            step = -step if at[i] + step > self._high[i] else step
            moved = at.copy()
            moved[i] += step
            columns[:, column] = (self._residual(moved) - residual) / step
        return columns

    def slopes(self, i: int) -> Array:
        """By how much the other constants move when constant `i` does; 1 for itself."""
        others = [j for j in range(len(self._best)) if j != i]
        found = np.zeros(len(self._best))
        found[i] = 1.0
        if others:
            inner = self._normal[np.ix_(others, others)]
            found[others] = -np.linalg.pinv(inner) @ self._normal[others, i]
        return found

    def length(self, i: int, rise: float) -> float:
        """Length that constant `i` goes along a straight line until the loss has risen by `rise`."""
        pull = float(self._normal[i] @ self.slopes(i))
        return float(np.sqrt(2.0 * rise / pull)) if pull > 0 else float(self._best[i]) or 1.0

    def _fitted(self, i: int, start: Array) -> tuple[Array, float]:
        """The other constants' best values with constant `i` held at `start[i]`, and the loss there."""
        at = np.clip(start, self._low, self._high)
        residual = self._residual(at)
        loss, damping = soft_l1.loss(residual, self._scale), 1e-3
        others = [j for j in range(len(at)) if j != i]
        for _ in range(_STEPS if others else 0):
            jacobian = self._jacobian(at, residual, others)
            weights = soft_l1.weights(residual, self._scale)
            normal = jacobian.T @ (weights[:, None] * jacobian)
            pull = jacobian.T @ (weights * residual)
            gained = 0.0
            for _ in range(6):
                diagonal = np.diag(np.diag(normal) + 1e-12 * max(float(np.trace(normal)), 1e-300))
                move = np.zeros(len(at))
                move[others] = -np.linalg.lstsq(normal + damping * diagonal, pull, rcond=None)[0]
                there = np.clip(at + move, self._low, self._high)
                left = self._residual(there)
                new = soft_l1.loss(left, self._scale) if np.all(np.isfinite(left)) else np.inf
                if new <= loss:
                    gained, at, residual, loss, damping = loss - new, there, left, new, 0.3 * damping
                    break
                damping *= 10.0
            if gained <= 1e-5 * max(loss - self._least, 1e-12):
                break
        return at, loss

    def end(self, i: int, reach: float, rise: float) -> float:
        """Value of constant `i` at which the loss has risen by `rise`, on the side of `reach`.

        Parameters
        ----------
        i : int
        reach : float
            Where the straight line has its end, from the optimum, in units; its sign is the side.
        rise : float
            Of the loss.
        """
        slopes, at, start = self.slopes(i), reach, self._best
        line = np.clip(self._best + slopes * reach, self._low, self._high)
        if abs(np.sqrt(max(soft_l1.loss(self._residual(line), self._scale) - self._least, 0.0) / rise) - 1.0) < _NEAR:
            return float(line[i])  # the straight line is right
        place = 0.0
        inside, outside = 0.0, np.inf  # the end lies between
        value = self._best[i]
        for _ in range(_TRIES):
            at = float(np.clip(self._best[i] + at, self._low[i], self._high[i])) - self._best[i]
            if abs(at) < 1e-12:
                return float(self._best[i])
            guess = start + slopes * (at - place)
            guess[i] = self._best[i] + at
            fitted, loss = self._fitted(i, guess)
            value = fitted[i]
            share = float(np.sqrt(max(loss - self._least, 0.0) / rise))
            if share < 1.0:
                inside, start, place = abs(at), fitted, at
                if value in (self._low[i], self._high[i]):
                    return float(value)
            else:
                outside = abs(at)
            if abs(share - 1.0) < _NEAR or abs(at) >= _FARTHEST * abs(reach):
                break
            further = abs(at) / max(share, 0.25)
            if not inside < further < outside:
                further = 0.5 * (inside + outside) if np.isfinite(outside) else 2.0 * abs(at)
            at = float(np.copysign(min(further, _FARTHEST * abs(reach)), reach))
        return float(value)
