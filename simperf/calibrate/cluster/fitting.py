"""Constants of a host's network stack, fitted from sends between two hosts at one rate and from work of one host alone.

Nothing of what is predicted (collectives, more than two hosts, other rates, training with communication) is looked at.
Times that have to be simulated are those of `simperf.run`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simperf.calibrate.cluster.scenarios import Compute, compute_of, predict
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.fit import Columns, Data, Fit, FitConstant, Model, fit
from simperf.calibrate.fit.model import Array
from simperf.calibrate.uncertainty.bootstrap import resampled
from simperf.errors import InputError, Problem

__all__ = ["Draw", "FittedBox", "draws", "fit_constants", "fitted_points"]

#: messages that no link holds back [B]
TINY = 16 * 1024.0
#: side of the cells between whose corners small sends are interpolated [s]
CELL = 20e-6
_TIMED = ("send", "round-trip", "send-train")


@dataclass(frozen=True)
class FittedBox:
    """Constants and where they come from.

    Parameters
    ----------
    stack : mapping of str to float
        Of the network stack, by the fields of `simperf.hardware.NetworkStackPart`.
    fits : tuple of Fit
        Of what is fitted to times, with its interval.
    """

    stack: Mapping[str, float]
    fits: tuple[Fit, ...]

    def report(self) -> str:
        """All constants, then the fits."""
        one = self.stack
        read = {
            "CPU a byte": f"{1e9 / one['byte_rate']:.3g} ns, {1e9 / one['bulk_rate']:.3g} ns where bytes come at once",
            "CPU an addition": f"{1e9 / one['add_rate']:.3g} ns/B",
            "CPU a call": f"{one['call'] * 1e6:.3g} us, and {one['operation'] * 1e6:.3g} us a collective",
            "CPU a message": f"{one['message'] * 1e6:.3g} us, three of them a send",
            "after a sleep": f"{one['cold'] * 1e6:.3g} us more",
        }
        lines = "\n".join(f"    {name + ':':<17}{value}" for name, value in read.items())
        return "\n\n".join([*(found.report() for found in self.fits), f"[[Read off]]\n{lines}"])


def fitted_points(data: Dataset, rate: float | None = None) -> tuple[Measurement, ...]:
    """The points that times are fitted to: between two hosts, at one rate, nothing else.

    Parameters
    ----------
    data : Dataset
    rate : float, optional
        As of `fit_constants` [B/s]; no point is fitted where it is not known.
    """
    if rate is None and (additions := data.select("add")):
        rate = additions[0].number("rate")
    return tuple(point for name in _TIMED for point in data.select(name, rate=rate)) if rate is not None else ()


def fit_constants(data: Dataset, rate: float | None = None) -> FittedBox:
    """Fit all constants.

    Parameters
    ----------
    data : Dataset
        What `simperf calibrate cluster` measured.
    rate : float, optional
        Whose sends are used [B/s]; that at which additions were measured if left out.

    Raises
    ------
    InputError
        The data set lacks what is needed.
    """
    if rate is None:
        rate = _least(data, "add").number("rate")
    points = fitted_points(data, rate)
    small = [point for point in points if point.series != "send-train" and point.number("nbytes") <= TINY]
    if sum(point.series == "send" for point in small) < 3:
        message, expected = "the data set has too few sends between two hosts", f"sends of 3 sizes up to {TINY:g} B"
        raise InputError(Problem(message, key="rate", value=f"{rate:g} B/s", expected=expected))
    words, call = _words(data, rate), _call(data, rate)
    batched = _slope(data.select("cpu/send-flood", rate=rate))
    known = {
        "message": words,
        "call": call,
        "operation": _around(data, rate, call),
        "cold": _cold(data, rate, 2.0 * call + 3.0 * words, batched),
        "byte_rate": 1.0 / _slope(data.select("cpu/send", rate=rate)),
        "bulk_rate": 1.0 / batched,
        "add_rate": 1.0 / _slope(data.select("add", rate=rate)),
    }
    waits = fit(_waits(known, small), Data.of(small, (), row=_Rows(small)))
    return FittedBox({**known, "wake": waits.constants["wake"].value}, (waits,))


class _Rows:
    """Gives each point its number, so that a model of whole columns can find it."""

    def __init__(self, points: Sequence[Measurement]) -> None:
        self._rows = {point.key: float(row) for row, point in enumerate(points)}

    def __call__(self, point: Measurement) -> float:
        return self._rows[point.key]


class _Simulated:
    """Times of small messages, simulated at steps of the wake-up time, and straight between them.

    The simulation has steps: a message comes before or after another thread is done, a bucket has the tokens of a
    packet or has not. So a derivative is noise where it is taken over less than such a step.
    """

    def __init__(self, known: Mapping[str, float], points: Sequence[Measurement]) -> None:
        self._known, self._points = known, points
        self._corners: dict[int, Array] = {}

    def _corner(self, number: int) -> Array:
        if number not in self._corners:
            stack = {**self._known, "wake": number * CELL}
            self._corners[number] = np.array([predict(point, stack).value for point in self._points])
        return self._corners[number]

    def __call__(self, wake: float) -> Array:
        """All points' times [s]."""
        number = int(wake / CELL)
        part = wake / CELL - number
        return np.asarray((1.0 - part) * self._corner(number) + part * self._corner(number + 1))


def _waits(known: Mapping[str, float], points: Sequence[Measurement]) -> Model:
    simulated = _Simulated(known, points)

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        return np.asarray(simulated(values["wake"])[columns["row"].astype(int)])

    constants = (FitConstant("wake", 60e-6, high=1e-3),)
    return Model("network-stack.wake", "small sends and round trips, simulated", constants, function, columns=())


def _least(data: Dataset, series: str, **conditions: Value) -> Measurement:
    points = data.select(series, **conditions)
    if not points:
        message = f"the data set has no point of series {series!r} {conditions or ''}".rstrip()
        raise InputError(
            Problem(message, expected="a recording of `simperf calibrate cluster`, with all of its points")
        )
    return points[0]


def _slope(points: Sequence[Measurement]) -> float:
    """Time a byte, by the points of large messages [s/B]: the median slope from the smallest of them."""
    large = sorted((point for point in points if point.number("nbytes") >= 65536), key=_size)
    if len(large) < 2:
        message = "the data set lacks large messages whose CPU time was read"
        raise InputError(Problem(message, expected="two sizes of 64 KiB or more, as `simperf calibrate cluster` sends"))
    slope = statistics.median((one.median - large[0].median) / (_size(one) - _size(large[0])) for one in large[1:])
    return max(slope, 1e-15) if math.isfinite(slope) else 1e-15


def _size(point: Measurement) -> float:
    return point.number("nbytes")


def _call(data: Dataset, rate: float) -> float:
    """CPU time of a caller's thread for each send or receive that it asks for [s]."""
    return (_a_message(data, "cpu/call", rate) or 0.0) / 2


def _around(data: Dataset, rate: float, call: float) -> float:
    """CPU time of each of the two callers' threads for a train of messages besides its sends and receives [s]."""
    rest = [point.median - 2.0 * call * point.number("messages") for point in data.select("cpu/call", rate=rate)]
    return max(0.0, statistics.median(rest)) / 2 if rest else 0.0


def _words(data: Dataset, rate: float) -> float:
    """CPU time of the other threads and the kernel for each of the three messages that make a send [s]."""
    every, own = _a_message(data, "cpu/send-train", rate), _a_message(data, "cpu/call", rate)
    return 0.0 if every is None or own is None else max(0.0, every - own) / 3


def _cold(data: Dataset, rate: float, train: float, byte: float) -> float:
    """CPU time that a message takes longer between threads that have slept than in a train [s].

    A round trip has one message more than a send, and nobody is at work when it comes; in a train a message takes
    `train`, and a byte of it `byte`.
    """
    once = {_size(point): point.median for point in data.select("cpu/send", rate=rate) if _size(point) <= TINY}
    both = {_size(point): point.median for point in data.select("cpu/round-trip", rate=rate) if _size(point) in once}
    if not both:
        return 0.0
    return max(0.0, statistics.median(found - once[size] - byte * size for size, found in both.items()) - train)


def _a_message(data: Dataset, series: str, rate: float) -> float | None:
    """What one message more in a train costs [s]."""
    found = sorted(data.select(series, rate=rate), key=lambda point: point.number("messages"))
    if len(found) < 2:
        return None
    few, many = found[0], found[-1]
    return (many.median - few.median) / (many.number("messages") - few.number("messages"))


@dataclass(frozen=True)
class Draw:
    """Constants of a boxed cluster by one bootstrap sample of the readings.

    Parameters
    ----------
    stack : mapping of str to float
        Constants of the network stack.
    compute : mapping of str to Compute
        Training steps of one process alone.
    """

    stack: Mapping[str, float]
    compute: Mapping[str, Compute]


def draws(data: Dataset, samples: int, *, rate: float | None = None, seed: int = 0) -> tuple[Draw, ...]:
    """Constants fitted to so many bootstrap samples of the readings; a draw keeps what they owe to each other.

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
