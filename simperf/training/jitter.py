"""Times that are never twice the same: distributions, drawn from seeded streams.

A distribution is a small frozen value with a mean and a way to draw. With a mean of 1 it
is a factor by which a strategy scales its kernels or steps; with a mean in seconds it is a
time between failures or a time of repair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.training.step import ReplicaStep

__all__ = [
    "FAMILIES",
    "Constant",
    "Distribution",
    "Empirical",
    "Exponential",
    "Family",
    "Gamma",
    "Lognormal",
    "TruncatedNormal",
    "Weibull",
    "distribution",
    "jittered",
    "scaled",
    "stream",
]

Floats = npt.NDArray[np.float64]
Family = Literal["constant", "lognormal", "normal", "gamma", "exponential", "weibull"]

#: numbers drawn at a time: the calls of a generator cost more than the numbers
_BLOCK = 256
#: a gamma distribution narrower than this is a number, as far as floats can tell
_NARROW = 1e-9


class Distribution(Protocol):
    """Distribution as a strategy reads it."""

    @property
    def mean(self) -> float:
        """Mean of what is drawn."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` independent values of 0 or more."""


#: largest standard deviation over the mean
_WIDEST = 10.0


def _check(**conditions: tuple[float, bool, str]) -> None:
    """Raise all of `conditions` (value, whether it is right, what is right) that do not hold, together."""
    problems = [
        Problem(f"{words} is expected", key=name, value=f"{value:g}")
        for name, (value, right, words) in conditions.items()
        if not right
    ]
    if problems:
        raise InputError(problems)


def _positive(value: float) -> tuple[float, bool, str]:
    return value, 0.0 < value < math.inf, "a finite number above 0"


def _nonnegative(value: float) -> tuple[float, bool, str]:
    return value, 0.0 <= value < math.inf, "a finite number of 0 or more"


def _spread(value: float) -> tuple[float, bool, str]:
    """Beyond that nearly all draws are tiny, and the mean is that of a few that are never drawn."""
    return value, 0.0 <= value <= _WIDEST, f"a number from 0 to {_WIDEST:g}"


@dataclass(frozen=True, slots=True)
class Constant:
    """Always `mean`."""

    mean: float = 1.0

    def __post_init__(self) -> None:
        _check(mean=_nonnegative(self.mean))

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` times the mean; draws nothing from `rng`."""
        return np.full(n, self.mean)


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Right-skewed, as times of kernels and hosts are: the logarithm is normal.

    Parameters
    ----------
    mean : float
        In the unit of what is drawn, [s] of times.
    cv : float
        Coefficient of variation: standard deviation over mean.
    """

    mean: float = 1.0
    cv: float = 0.1

    def __post_init__(self) -> None:
        _check(mean=_positive(self.mean), cv=_spread(self.cv))

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` values whose mean is `mean` exactly, not the mean of the logarithms."""
        variance = math.log1p(self.cv**2)
        return rng.lognormal(math.log(self.mean) - variance / 2, math.sqrt(variance), n)


@dataclass(frozen=True, slots=True)
class TruncatedNormal:
    """A normal distribution of which only the part above `low` is kept.

    Parameters
    ----------
    centre : float
        Mean before truncation, in the unit of what is drawn.
    cv : float
        Standard deviation before truncation, over `centre`; at most 2.
    low : float
        Nothing below it is drawn, in that unit; at most the centre, so that half of all draws are kept.
    """

    centre: float = 1.0
    cv: float = 0.1
    low: float = 0.0

    def __post_init__(self) -> None:
        right = 0.0 <= self.low <= self.centre
        _check(
            centre=_positive(self.centre),
            cv=(self.cv, 0.0 <= self.cv <= 2.0, "a number from 0 to 2"),
            low=(self.low, right, "a number from 0 to the centre"),
        )

    @property
    def mean(self) -> float:
        """Mean of what is left: the centre and what cutting the lower tail adds."""
        deviation = self.cv * self.centre
        if deviation == 0.0:
            return self.centre
        edge = (self.low - self.centre) / deviation
        density = math.exp(-edge * edge / 2) / math.sqrt(2 * math.pi)
        return self.centre + deviation * density / (0.5 * math.erfc(edge / math.sqrt(2)))

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` values; what falls below `low` is drawn again."""
        values = rng.normal(self.centre, self.cv * self.centre, n)
        while (below := values < self.low).any():
            values[below] = rng.normal(self.centre, self.cv * self.centre, int(below.sum()))
        return values


@dataclass(frozen=True, slots=True)
class Gamma:
    """Right-skewed with a lighter tail than the lognormal; `cv` of 1 is the exponential distribution."""

    mean: float = 1.0
    cv: float = 0.1

    def __post_init__(self) -> None:
        _check(mean=_positive(self.mean), cv=_spread(self.cv))

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` values."""
        if self.cv < _NARROW:
            return np.full(n, self.mean)
        return rng.gamma(self.cv**-2, self.mean * self.cv**2, n)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Times between events that do not remember: the usual law of failures."""

    mean: float = 1.0

    def __post_init__(self) -> None:
        _check(mean=_positive(self.mean))

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` values."""
        return rng.exponential(self.mean, n)


@dataclass(frozen=True, slots=True)
class Weibull:
    """Times between failures that come in bunches (shape below 1) or with age (above 1).

    A shape of about 0.7 to 0.8 was found for the machines of a large laboratory (Schroeder and Gibson, "A large-scale
    study of failures in high-performance computing systems", DSN 2006).
    """

    mean: float = 1.0
    shape: float = 0.7

    def __post_init__(self) -> None:
        _check(mean=_positive(self.mean), shape=_positive(self.shape))

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` values."""
        return rng.weibull(self.shape, n) * (self.mean / math.gamma(1 + 1 / self.shape))


@dataclass(frozen=True, slots=True)
class Empirical:
    """Measured values, each as likely as it was seen."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or not all(0.0 <= value < math.inf for value in self.values):
            raise InputError(
                Problem(
                    "one measured value or more, finite and not negative", key="values", expected="such as (0.01, 0.02)"
                )
            )

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return math.fsum(self.values) / len(self.values)

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` of the values, with replacement."""
        return np.asarray(self.values, dtype=np.float64)[rng.integers(0, len(self.values), n)]


#: Names that a scenario may use, with what `cv` and `shape` they take.
FAMILIES: Mapping[str, str] = {
    "constant": "",
    "lognormal": "cv",
    "normal": "cv",
    "gamma": "cv",
    "exponential": "",
    "weibull": "shape",
}


def distribution(
    family: str, *, mean: float = 1.0, cv: float = 0.1, shape: float = 0.7, values: Sequence[float] = ()
) -> Distribution:
    """The distribution that a scenario names; `values` make it empirical, scaled by `mean` over their mean.

    Raises
    ------
    InputError
        No such family, or a parameter outside its range.

    Examples
    --------
    >>> distribution("lognormal", cv=0.2)
    Lognormal(mean=1.0, cv=0.2)
    """
    if values:
        raw = Empirical(tuple(values))
        if raw.mean == 0.0:
            raise InputError(Problem("not all values may be 0", key="values", expected="one value or more above 0"))
        return Empirical(tuple(value * mean / raw.mean for value in values))
    match family:
        case "constant":
            return Constant(mean)
        case "lognormal":
            return Lognormal(mean, cv)
        case "normal":
            return TruncatedNormal(mean, cv)
        case "gamma":
            return Gamma(mean, cv)
        case "exponential":
            return Exponential(mean)
        case "weibull":
            return Weibull(mean, shape)
    raise InputError(Problem("no such distribution", key="family", value=family, expected=", ".join(FAMILIES)))


def stream(source: Distribution, rng: np.random.Generator) -> Iterator[float]:
    """Endless independent values of `source`, drawn from `rng` in blocks of a fixed size."""
    while True:
        yield from source.draw(rng, _BLOCK).tolist()


def scaled(kernel: Kernel, factor: float) -> Kernel:
    """`kernel` with its time multiplied by `factor`."""
    return replace(kernel, time=kernel.time * factor)


def jittered(step: ReplicaStep, factors: Iterator[float], *, per_kernel: bool = False) -> ReplicaStep:
    """One step's kernels slowed by the next of `factors`: one for the whole step, or one for each kernel.

    Jitter that is independent from kernel to kernel averages out over a step; what a whole
    device suffers (clocks, a neighbour on its host) does not.
    """
    common = 1.0 if per_kernel else next(factors)

    def each(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
        return tuple(scaled(kernel, next(factors) if per_kernel else common) for kernel in kernels)

    return replace(step, forward=each(step.forward), backward=each(step.backward), update=each(step.update))
