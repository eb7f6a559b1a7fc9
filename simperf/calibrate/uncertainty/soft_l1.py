"""The soft L1 loss of residuals: a square for small ones, and in proportion to large ones."""

from __future__ import annotations

import numpy as np

from simperf.calibrate.fit.model import Array

__all__ = ["loss", "psi", "slope", "weights"]


def _root(residual: Array, scale: float) -> Array:
    return np.asarray(np.sqrt(1.0 + (residual / scale) ** 2))


def loss(residual: Array, scale: float) -> float:
    """Half of the loss, added up over all residuals."""
    return float(np.sum(residual**2 / (_root(residual, scale) + 1.0)))


def psi(residual: Array, scale: float) -> Array:
    """Derivative of the loss: linear for small residuals, at most `scale` for large ones."""
    return np.asarray(residual / _root(residual, scale))


def slope(residual: Array, scale: float) -> Array:
    """Derivative of `psi`."""
    return np.asarray((1.0 + (residual / scale) ** 2) ** -1.5)


def weights(residual: Array, scale: float) -> Array:
    """Weights with which least squares have the same derivative: `psi` over the residual."""
    return np.asarray(1.0 / _root(residual, scale))
