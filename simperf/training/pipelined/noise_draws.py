"""Draws of noise: of one rank, kernel by kernel, or of many ranks and steps at once.

Both follow one distribution. A kernel takes its time, times the factor of its device, times that of the step, times
one plus a normal deviate; a device is interrupted after exponential times of work. The time of kernels that follow each
other is a sum of normal deviates, and is drawn as one: its variance is the sum of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simperf.engine.kernel import Kernel
from simperf.training.jitter import Distribution, stream
from simperf.training.job import Disturbances
from simperf.training.noise import Noise

__all__ = ["ArrayNoise", "Floats", "RankNoise", "fleet"]

Floats: TypeAlias = npt.NDArray[np.float64]
#: gives the random stream of a name
Random: TypeAlias = Callable[[str], np.random.Generator]

#: least factor of a device's time; assumed, far below what `variation` draws [1]
LEAST = 0.1


def fleet(disturbances: Disturbances, ranks: int, random: Random) -> Floats:
    """Times that each rank's device takes for the same work, over their mean [1]; the same for the whole job.

    Parameters
    ----------
    disturbances : Disturbances
    ranks : int
    random : callable
        Random stream by name, as `Simulation.random`.
    """
    if not disturbances.variation:
        return np.ones(ranks)
    drawn = 1.0 + disturbances.variation * random("speeds of devices").standard_normal(ranks)
    return np.maximum(LEAST, drawn)


class RankNoise:
    """Noise of one rank, kernel by kernel.

    Parameters
    ----------
    noise : Noise
    factor : float
        Of its device's times [1].
    paces : Distribution
        Of the factor of each step.
    launch : float
        Time of the host to issue a kernel, where it has none of its own [s].
    rng : numpy.random.Generator
    """

    def __init__(
        self, noise: Noise, factor: float, paces: Distribution, launch: float, rng: np.random.Generator
    ) -> None:
        self.noise, self._rng, self._device, self._launch = noise, rng, factor, launch
        self._paces: Iterator[float] = stream(paces, rng)
        self._left = float(rng.exponential(noise.every)) if noise.every else math.inf
        self._factor = factor

    def steps(self, count: int) -> Iterator[int]:
        """Numbers of steps; the factor of each is drawn when it begins."""
        for number in range(count):
            self._factor = self._device * next(self._paces)
            yield number

    def kernel(self, one: Kernel) -> Kernel:
        """A kernel as it goes this time."""
        noise, time = self.noise, one.time * self._factor
        launch = self._launch if one.launch is None else one.launch
        if noise.kernels:
            time *= max(0.0, 1.0 + noise.kernels * self._rng.standard_normal())
        if noise.launches:
            launch *= max(0.0, 1.0 + noise.launches * self._rng.standard_normal())
        busy, left = time, self._left
        while busy > left:
            busy, time = busy - left, time + self._rng.exponential(noise.pause)
            left = self._rng.exponential(noise.every)
        self._left = left - busy
        return replace(one, time=time, launch=launch)


@dataclass(frozen=True, slots=True)
class Rows:
    """Size of arrays: steps that are drawn, behind one without noise, and ranks."""

    draws: int
    ranks: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an array of times: steps and ranks."""
        return self.draws + 1, self.ranks


class ArrayNoise:
    """Noise of ranks in steps that are drawn together; the first row has none.

    Parameters
    ----------
    disturbances : Disturbances
    factors : sequence of float
        Of the ranks' devices [1].
    draws : int
    rng : numpy.random.Generator
    """

    def __init__(
        self, disturbances: Disturbances, factors: Sequence[float] | Floats, draws: int, rng: np.random.Generator
    ) -> None:
        self.noise, self._rng = disturbances.noise, rng
        self._rows = Rows(draws, len(factors))
        self._paces = None if disturbances.steady else disturbances.paces
        self._devices = np.ones(self._rows.shape)
        self._devices[1:] = factors
        self._factor = self._devices
        self._left: Floats | None = None
        if self.noise.every:
            self._left = rng.exponential(self.noise.every, self._rows.shape)
            self._left[0] = np.inf
        self.next_step()

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an array of times: steps and ranks."""
        return self._rows.shape

    def next_step(self) -> None:
        """Draw the factors of another step."""
        if self._paces is not None:
            drawn = self._paces.draw(self._rng, self._rows.draws * self._rows.ranks)
            self._factor = self._devices.copy()
            self._factor[1:] *= drawn.reshape(self._rows.draws, -1)

    def kernels(self, time: float, square: float) -> Floats:
        """Times of kernels that follow each other, from the sum of their times [s] and of the squares [s2]."""
        noise = self.noise
        if noise.kernels:
            found = self._normal(time, noise.kernels * math.sqrt(square))
            found *= self._factor
        else:
            found = time * self._factor
        if self._left is not None:
            self._interrupt(found, self._left)
        return found

    def launches(self, time: float, square: float) -> Any:
        """Times of launches that follow each other; a number where they do not vary."""
        if not self.noise.launches:
            return time
        return self._normal(time, self.noise.launches * math.sqrt(square))

    def _normal(self, mean: float, deviation: float) -> Floats:
        drawn = self._rng.standard_normal(self._rows.shape, dtype=np.float32)
        drawn[0] = 0.0
        found = drawn.astype(np.float64)
        found *= deviation
        found += mean
        np.maximum(found, 0.0, out=found)
        return found

    def _interrupt(self, times: Floats, left: Floats) -> None:
        """Lengthen times by the interruptions that fall into them."""
        left -= times
        while len(hit := np.flatnonzero(left.ravel() < 0.0)):
            times.ravel()[hit] += self._rng.exponential(self.noise.pause, len(hit))
            left.ravel()[hit] += self._rng.exponential(self.noise.every, len(hit))
