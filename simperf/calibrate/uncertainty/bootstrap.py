"""Bootstrap of fitted constants: over residuals and raw readings in one step from the optimum, or by full refits.

A full bootstrap fits again for each draw. Here each draw takes the one Gauss-Newton step of the robust loss that
leads from the optimum to the optimum of the resampled data,

    d = (J'J)^-1 J' psi(r*) / mean psi'(r),

with J the Jacobian of the log residuals at the optimum and psi the derivative of the loss: the linear approximation of
an M-estimator (P. J. Huber, *Robust Statistics*, 1981, section 7.6; M. Salibian-Barrera and R. Zamar, Annals of
Statistics 30(2), 2002, on why full refits are not needed). It costs one matrix product for all draws, so that
intervals need no second search; a test holds their coverage against repetitions.

`resampled` draws the readings of a whole data set again, for constants that are fitted one after the other (B. Efron,
"Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit.model import Array, Data
from simperf.calibrate.uncertainty.soft_l1 import psi, slope

__all__ = ["draw_constants", "leverages", "resampled"]


def leverages(jacobian: Array) -> Array:
    """Leverage of each point on its own fit: the diagonal of J (J'J)^-1 J', at most 0.95."""
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    return np.asarray(np.clip(np.einsum("ij,jk,ik->i", jacobian, inverse, jacobian), 0.0, 0.95))


def draw_constants(
    jacobian: Array, residual: Array, data: Data, *, scale: float, draws: int, rng: np.random.Generator
) -> Array:
    """Steps away from the optimum, one row a draw, in the Jacobian's parameters.

    Residuals are resampled among points, freed of the leverage that each point has on its own fit. Where raw readings
    are there, a point's own part of the noise is that of its median, drawn from its readings, and the residuals that
    are shared among points are shrunk so that the variances add up.

    Parameters
    ----------
    jacobian : ndarray
        Of the log residuals, points by parameters.
    residual : ndarray
        Log residuals at the optimum.
    data : Data
        The points, with raw readings or without.
    scale : float
        Of the loss.
    draws : int
    rng : numpy Generator
    """
    from scipy import stats

    points, unknown = jacobian.shape
    if unknown == 0:
        return np.zeros((draws, 0))
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    spread = residual / (1.0 - leverages(jacobian))
    resampled = spread[rng.integers(points, size=(draws, points))]
    own = _medians(data, draws, rng)
    if own is not None:
        shared = 1.0 - min(1.0, float(np.median(own.var(axis=0)) / max(_robust(spread) ** 2, 1e-300)))
        resampled = resampled * np.sqrt(shared) + own
    # few points: the spread of the residuals is itself uncertain (Student's t); freeing them of their leverage has
    # widened them already, by more than the constants that were fitted narrowed them
    freedom = max(1, points - unknown)
    student = float(stats.t.ppf(0.95, freedom) / stats.norm.ppf(0.95))
    widen = max(1.0, student * float(np.sqrt(freedom / points)))
    slopes = slope(spread, scale)
    bent = slopes.mean()
    widen *= 1.0 + unknown / points * slopes.var() / bent**2  # Huber's correction for few points (his section 7.6)
    pulls = psi(resampled, scale)
    steps = (pulls - pulls.mean(axis=0)) @ jacobian @ inverse / bent
    return np.asarray(-steps * widen)


def _robust(values: Array) -> float:
    """Standard deviation by the median size; about zero, as two of three points can lie close together by chance."""
    return float(1.4826 * np.median(np.abs(values)))


def _medians(data: Data, draws: int, rng: np.random.Generator) -> Array | None:
    """Log deviations of the medians of resampled readings: draws by points; None without repeated readings."""
    if not data.samples or max(map(len, data.samples)) < 3:
        return None
    found = np.zeros((draws, len(data)))
    for i, sample in enumerate(data.samples):
        kept = sample[sample > 0]
        if len(kept) >= 3:
            if len(kept) > 64:  # the median of many readings is sharp anyhow
                kept = np.quantile(kept, (np.arange(64) + 0.5) / 64)
            picked = kept[rng.integers(len(kept), size=(draws, len(kept)))]
            found[:, i] = np.log(np.median(picked, axis=1) / np.median(kept))
    return found


def resampled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """The data set with as many readings of each point, drawn from those that it has."""

    def anew(point: Measurement) -> Measurement:
        chosen = rng.integers(len(point.samples), size=len(point.samples))
        return replace(point, samples=tuple(point.samples[index] for index in chosen))

    return replace(data, measurements=tuple(anew(point) for point in data))
