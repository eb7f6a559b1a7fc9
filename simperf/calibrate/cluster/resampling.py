"""How sure the constants of a boxed cluster are: all of them fitted again, to readings that are drawn anew.

The bootstrap of B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979, over
the readings of each point. One draw holds all constants and the times of training steps that one set of readings
gives, so that what they owe to each other is kept. It knows how readings scatter, not what the simulation leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.cluster.fitting import fit_constants
from simperf.calibrate.cluster.scenarios import Compute, compute_of
from simperf.calibrate.dataset import Dataset, Measurement

__all__ = ["Draw", "draws", "resampled"]


@dataclass(frozen=True)
class Draw:
    """What one set of readings says of a boxed cluster.

    Parameters
    ----------
    stack : mapping of str to float
        Constants of the network stack.
    compute : mapping of str to Compute
        Training steps of one process alone.
    """

    stack: Mapping[str, float]
    compute: Mapping[str, Compute]


def resampled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """The data set with as many readings of each point, drawn from those that it has."""

    def anew(point: Measurement) -> Measurement:
        chosen = rng.integers(len(point.samples), size=len(point.samples))
        return replace(point, samples=tuple(point.samples[index] for index in chosen))

    return replace(data, measurements=tuple(anew(point) for point in data))


def draws(data: Dataset, samples: int, *, rate: float | None = None, seed: int = 0) -> tuple[Draw, ...]:
    """Fit so many times.

    Parameters
    ----------
    data : Dataset
    samples : int
    rate : float, optional
        As of `fit_constants` [B/s].
    seed : int
        The same gives the same draws.
    """
    found = []
    for child in np.random.SeedSequence(seed).spawn(samples):
        anew = resampled(data, np.random.default_rng(child))
        found.append(Draw(fit_constants(anew, rate).stack, compute_of(anew)))
    return tuple(found)
