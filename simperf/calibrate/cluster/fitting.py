"""Constants of a boxed cluster, fitted from sends between two hosts at one rate and from work of one host alone.

Nothing of what is predicted (collectives, more than two hosts, other rates, training with communication) is looked at.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.predict import predict
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.fit import Columns, Constant, Data, Fit, Model, fit
from simperf.calibrate.fit.model import Array
from simperf.errors import InputError, Problem

__all__ = ["FittedBox", "fit_constants", "fitted_points"]

#: messages from which on the burst has passed, and from which on the sender's socket is full [B]
PASSED, LARGE = 128 * 1024.0, 256 * 1024.0
#: messages that are larger than the buckets, and that are over before rare disturbances of milliseconds matter [B]
DRAINED, LONG = 64 * 1024.0, 1024 * 1024.0
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
    constants : Constants
    fits : tuple of Fit
        Of the link's rate and burst, and of the latency, with their intervals.
    """

    constants: Constants
    fits: tuple[Fit, ...]

    def report(self) -> str:
        """All constants, then the fits."""
        one = self.constants
        read = {
            "cpu a byte": f"{one.byte * 1e9:.3g} ns, {one.batched * 1e9:.3g} ns where nothing holds it back",
            "cpu an addition": f"{one.add * 1e9:.3g} ns/B",
            "cpu a call": f"{one.call * 1e6:.3g} us, and {one.around * 1e6:.3g} us an operation",
            "cpu a message": f"{one.traversal * 1e6:.3g} us, three of them a send",
            "after a sleep": f"{one.cold * 1e6:.3g} us more, {one.resume * 1e6:.3g} us until a thread goes on",
            "socket": f"{one.buffer / 1e3:.4g} kB",
            "cores": f"{one.cores:.3g}",
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
    large = [point for point in points if point.series == "send" and point.number("nbytes") >= PASSED]
    small = [point for point in points if point.series != "send-train" and point.number("nbytes") <= TINY]
    if len(large) < 3 or not any(point.series == "send" for point in small):
        raise InputError(Problem("the data set has too few sends between two hosts", key="rate", value=f"{rate:g} B/s"))
    alone = min((point for point in small if point.series == "send"), key=_size).median
    words, call = _words(data, rate), _call(data, rate)
    batched = _slope(data.select("cpu/send-flood", rate=rate))
    cold = _cold(data, rate, 2.0 * call + 3.0 * words, batched)
    link = fit(_link(rate, alone + cold), Data.of(large, ("nbytes",)))
    known = replace(
        Constants(),
        efficiency=link.constants["efficiency"].value,
        burst=link.constants["burst"].value,
        traversal=words,
        call=call,
        around=_around(data, rate, call),
        cold=cold,
        byte=_slope(data.select("cpu/send", rate=rate)),
        batched=batched,
        add=_slope(data.select("add", rate=rate)),
        buffer=_buffer(data, rate, link.constants["efficiency"].value),
        cores=_cores(data),
    )
    waits = fit(_waits(known, small), Data.of(small, (), row=_Rows(small)))
    known = replace(known, **{name: one.value for name, one in waits.constants.items()})
    return FittedBox(replace(known, resume=_resume(data, rate, known)), (link, waits))


def _link(rate: float, alone: float) -> Model:
    """Time of a large send: that of an empty one to a cold thread [s], and what exceeds the burst goes at the rate."""

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        return np.asarray(alone + (columns["nbytes"] / values["efficiency"] - values["burst"]) / rate)

    constants = (
        Constant("efficiency", Constants().efficiency, low=0.5, high=1.0, unit="1"),
        Constant("burst", Constants().burst, high=1e6, unit="B"),
    )
    return Model("boxed.link", "large sends between two hosts", constants, function)


class _Rows:
    """Gives each point its number, so that a model of whole columns can find it."""

    def __init__(self, points: Sequence[Measurement]) -> None:
        self._rows = {point.key: float(row) for row, point in enumerate(points)}

    def __call__(self, point: Measurement) -> float:
        return self._rows[point.key]


class _Simulated:
    """Times of small messages, simulated at the corners of a grid of latency and start, and straight between them.

    The simulation goes in steps: a message comes before or after another thread is done, a bucket has the tokens of a
    packet or has not. So a derivative is noise where it is taken over less than such a step, and a standard error that
    is made of it is too. Over a cell of the grid it is what the readings can tell apart.
    """

    def __init__(self, known: Constants, points: Sequence[Measurement]) -> None:
        self._known, self._points = known, points
        self._corners: dict[tuple[int, int], Array] = {}

    def _corner(self, latency: int, start: int) -> Array:
        if (latency, start) not in self._corners:
            constants = replace(self._known, latency=latency * CELL, start=start * CELL)
            times = [predict(point, constants).value for point in self._points]
            self._corners[latency, start] = np.array(times)
        return self._corners[latency, start]

    def __call__(self, latency: float, start: float) -> Array:
        """All points' times [s]."""
        i, j = int(latency / CELL), int(start / CELL)
        x, y = latency / CELL - i, start / CELL - j
        near = (1.0 - y) * self._corner(i, j) + y * self._corner(i, j + 1)
        far = (1.0 - y) * self._corner(i + 1, j) + y * self._corner(i + 1, j + 1)
        return np.asarray((1.0 - x) * near + x * far)


def _waits(known: Constants, points: Sequence[Measurement]) -> Model:
    simulated = _Simulated(known, points)

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        return np.asarray(simulated(values["latency"], values["start"])[columns["row"].astype(int)])

    constants = (Constant("latency", 60e-6, high=1e-3), Constant("start", 50e-6, high=1e-3))
    return Model("boxed.message", "small sends and round trips, simulated", constants, function, columns=())


def _least(data: Dataset, series: str, **conditions: Value) -> Measurement:
    points = data.select(series, **conditions)
    if not points:
        raise InputError(Problem(f"the data set has no point of series {series!r} {conditions or ''}".rstrip()))
    return points[0]


def _slope(points: Sequence[Measurement]) -> float:
    """Time a byte, by the points of large messages [s/B]: the median slope from the smallest of them."""
    large = sorted((point for point in points if point.number("nbytes") >= 65536), key=_size)
    if len(large) < 2:
        raise InputError(Problem("the data set lacks large messages whose CPU time was read"))
    return statistics.median((one.median - large[0].median) / (_size(one) - _size(large[0])) for one in large[1:])


def _size(point: Measurement) -> float:
    return point.number("nbytes")


def _call(data: Dataset, rate: float) -> float:
    """CPU time of a caller's thread for each send or receive that it asks for [s]."""
    found = _a_message(data, "cpu/call", rate)
    return Constants().call if found is None else found / 2


def _around(data: Dataset, rate: float, call: float) -> float:
    """CPU time of each of the two callers' threads for a train of messages besides its sends and receives [s]."""
    rest = [point.median - 2.0 * call * point.number("messages") for point in data.select("cpu/call", rate=rate)]
    return max(0.0, statistics.median(rest)) / 2 if rest else Constants().around


def _words(data: Dataset, rate: float) -> float:
    """CPU time of the other threads and the kernel for each of the three messages that make a send [s]."""
    every, own = _a_message(data, "cpu/send-train", rate), _a_message(data, "cpu/call", rate)
    return Constants().traversal if every is None or own is None else max(0.0, every - own) / 3


def _cold(data: Dataset, rate: float, train: float, byte: float) -> float:
    """CPU time that a message takes longer between threads that have slept than in a train [s].

    A round trip has one message more than a send, and nobody is at work when it comes; in a train a message takes
    `train`, and a byte of it `byte`.
    """
    once = {_size(point): point.median for point in data.select("cpu/send", rate=rate) if _size(point) <= TINY}
    both = {_size(point): point.median for point in data.select("cpu/round-trip", rate=rate) if _size(point) in once}
    if not both:
        return Constants().cold
    return max(0.0, statistics.median(found - once[size] - byte * size for size, found in both.items()) - train)


def _resume(data: Dataset, rate: float, known: Constants) -> float:
    """CPU time that a thread takes longer to answer a large message than one that has not slept has to begin [s].

    A round trip is a send that another one follows. What it takes longer than a send and its simulation know, the
    median over messages that are larger than the buckets, and small enough for their times to be steady. Threads sleep
    a tenth of `KEEP` in small round trips, so that a tenth of it is in the latency as well.
    """
    found = []
    for both in data.select("round-trip", rate=rate):
        if DRAINED <= _size(both) <= LONG:
            once = _least(data, "send", rate=rate, nbytes=both.at["nbytes"])
            told = predict(both, known).value - predict(once, known).value
            found.append(both.median - once.median - told)
    return max(0.0, statistics.median(found)) if found else Constants().resume


def _a_message(data: Dataset, series: str, rate: float) -> float | None:
    """What one message more in a train costs [s]."""
    found = sorted(data.select(series, rate=rate), key=lambda point: point.number("messages"))
    if len(found) < 2:
        return None
    few, many = found[0], found[-1]
    return (many.median - few.median) / (many.number("messages") - few.number("messages"))


def _buffer(data: Dataset, rate: float, efficiency: float) -> float:
    """What the socket had taken in when the sender went on [B]: the median over large messages."""
    found = []
    for left in data.select("send/left", rate=rate):
        if left.number("nbytes") >= LARGE:
            whole = _least(data, "send", rate=rate, nbytes=left.at["nbytes"])
            found.append((whole.median - left.median) * rate * efficiency)
    return statistics.median(found) if found else 0.0


def _cores(data: Dataset) -> float:
    """Cores' worth of work that two processes get done together."""
    parts = ("forward", "backward")
    rates = []
    for point in data.select("step/forward", ranks=2):
        model = point.at["model"]
        alone = sum(_least(data, f"step/{part}", model=model, ranks=1).median for part in parts)
        both = sum(_least(data, f"step/{part}", model=model, ranks=2).median for part in parts)
        rates.append(2.0 * alone / both)
    return min(2.0, max(rates)) if rates else 2.0
