"""A host's network stack from a table of sends: sizes and times of any program, such as torch.distributed's.

What such a table tells is the time of an empty message and the rate of a long one. The time becomes the wake-up of a
sleeping core, as far as it exceeds the CPU time that the catalogue's stack takes; the rate becomes what one connection
carries or, where the rate of the links is known, payload bytes a byte on the wire. What the cores pay for a byte no
time of two idle hosts shows: it stays the catalogue's. `simperf calibrate cluster` measures that too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from simperf.calibrate.cluster.scenarios import STACK, predict
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.fit import Columns, Data, Fit, FitConstant, Model, fit
from simperf.calibrate.fit.model import Array
from simperf.calibrate.importers.imported import refuse_lines
from simperf.csv_file import parse_csv
from simperf.errors import InputError, Problem
from simperf.file_bytes import read_text
from simperf.hardware import Catalog
from simperf.hardware.netstack import NetworkStackPart
from simperf.hardware.profile import NETWORK_STACK, FittedConstant, FittedModel

__all__ = ["read_sends", "sends_model"]

#: size of a table [B]
_MOST_BYTES = 16 * 1024 * 1024
#: largest number of a column: bytes, seconds, bytes a second
_MOST = {"nbytes": 1e15, "seconds": 1e6, "rate": 1e15}
#: columns of a table, and what stands under them
COLUMNS = "nbytes [B], seconds [s], and if known hosts and rate [B/s]"
#: idle links of a machine on which an empty send is simulated: nothing is shaped there
_FREE: Mapping[str, Value] = {"rate": 1e12, "burst": 1.0, "queue": 1.0, "nbytes": 0.0}


def read_sends(path: str | os.PathLike[str]) -> Dataset:
    """Read a table of sends: a line each, under a header with ``nbytes`` and ``seconds``.

    Parameters
    ----------
    path : path
        A file separated by commas. ``rate``, if there is one, is the rate of the links [B/s]; ``hosts`` says how many
        took part, which must be two.

    Raises
    ------
    InputError
        All that is wrong with it, with lines.
    """
    name = os.fspath(path)
    text = read_text(path, most=_MOST_BYTES, expected=COLUMNS)
    refuse_lines(text, name, COLUMNS)
    table = parse_csv(text, name, expected=COLUMNS)
    names = table.names
    problems = [
        Problem("an unknown column", file=name, line=1, value=one, expected=COLUMNS)
        for one in names
        if one not in ("nbytes", "seconds", "hosts", "rate")
    ]
    problems += [
        Problem(f"the column {one} is missing", file=name, line=1, value=", ".join(names), expected=COLUMNS)
        for one in ("nbytes", "seconds")
        if one not in names
    ]
    if problems:
        raise InputError(problems)
    found: dict[tuple[float, ...], list[float]] = {}
    for line, row in table.records():
        values = [_number(row, one, name, line, problems) for one in ("nbytes", "seconds", "rate", "hosts")]
        nbytes, seconds, rate, hosts = values
        if hosts not in (0.0, 2.0):
            told = Problem("a send has two hosts", file=name, line=line, key="hosts", value=f"{hosts:g}", expected="2")
            problems.append(told)
        if nbytes < 0 or seconds <= 0:
            problems.append(Problem("a size is 0 or more, and a time above 0", file=name, line=line))
        found.setdefault((nbytes, rate), []).append(seconds)
    sizes = {nbytes for nbytes, _ in found}
    if not problems and (len(sizes) < 3 or max(sizes) < 16 * max(1.0, min(sizes))):
        message = "the sizes do not tell the time of a message from its rate"
        problems.append(Problem(message, file=name, value=f"{len(sizes)} sizes", expected="three or more, far apart"))
    if not problems and len({bool(rate) for _, rate in found}) > 1:
        problems.append(
            Problem(
                "the rate stands in some lines only", file=name, key="rate", expected="a rate in every line, or in none"
            )
        )
    if problems:
        raise InputError(problems)
    points = [
        Measurement("send", {"nbytes": nbytes, **({"rate": rate} if rate else {})}, tuple(times))
        for (nbytes, rate), times in found.items()
    ]
    return Dataset(f"sends of {Path(path).name}", measurements=tuple(points))


def _number(row: Mapping[str, str], key: str, name: str, line: int, problems: list[Problem]) -> float:
    """A cell; 0 where there is no such column."""
    text = row.get(key)
    if text is None:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    most = _MOST.get(key, math.inf)
    if not math.isfinite(value) or (key == "rate" and value <= 0) or abs(value) > most:
        problems.append(Problem("a number is expected", file=name, line=line, key=key, value=text, expected=COLUMNS))
        return 0.0
    return value


def sends_model(data: Dataset) -> dict[str, FittedModel]:
    """Fit a network stack to sends.

    Parameters
    ----------
    data : Dataset
        Of `read_sends`.

    Returns
    -------
    dict of str to FittedModel
        The model of a profile, which `simperf.run` applies to machines with a network stack.
        CPU times are those of `STACK`.
    """
    points = data.select("send")
    shaped = all("rate" in point.at for point in points)
    found = fit(_line(shaped), Data.of(points, ("nbytes", "rate") if shaped else ("nbytes",)))
    part = Catalog.load().part("network-stack", STACK)
    assert isinstance(part, NetworkStackPart)
    empty = found.constants["message"]
    base = predict(Measurement("send", _FREE, (1.0,)), {"wake": 0.0, "efficiency": 1.0}).value
    constants: dict[str, FittedConstant] = {}
    if empty.value >= base:
        low, high = (max(0.0, (end - base) / 2) for end in (empty.low, empty.high))
        constants["wake"] = _told((empty.value - base) / 2, low, high, empty.stderr / 2, "s")
    else:  # faster than the catalogue's CPU times allow: these are less, by one factor
        less = empty.value / base
        spread = empty.stderr / base
        constants["wake"] = _told(0.0, 0.0, 0.0, 0.0, "s")
        for key in ("message", "call", "cold"):
            value = getattr(part, key)
            ends = (value * empty.low / base, value * empty.high / base)
            constants[key] = _told(value * less, *ends, value * spread, "s")
    key = "efficiency" if shaped else "rate"
    one = found.constants[key]
    constants[key] = _told(one.value, one.low, one.high, one.stderr, "1" if shaped else "B/s")
    logs = _residuals(found, points, shaped)
    model = FittedModel(
        title="sends between two hosts",
        series="send",
        points=len(points),
        error=float(np.mean(np.abs(np.expm1(logs)))),
        scatter=1.4826 * float(np.median(np.abs(logs - np.median(logs)))),
        constant=constants,
    )
    return {NETWORK_STACK: model}


def _told(value: float, low: float, high: float, stderr: float, unit: str) -> FittedConstant:
    return FittedConstant(value=value, low=min(low, value), high=max(high, value), stderr=stderr, unit=unit)


def _line(shaped: bool) -> Model:
    """The time of an empty message, and bytes over a rate."""

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        rate = values["efficiency"] * columns["rate"] if shaped else values["rate"]
        return np.asarray(values["message"] + columns["nbytes"] / rate)

    last = (
        FitConstant("efficiency", 0.95, low=0.01, high=1.0, unit="1")
        if shaped
        else FitConstant("rate", 1e8, low=1.0, high=1e15, unit="B/s")
    )
    return Model("network-stack", "sends between two hosts", (FitConstant("message", 1e-4, high=10.0), last), function)


def _residuals(found: Fit, points: Sequence[Measurement], shaped: bool) -> Array:
    """Logarithms of predicted over measured."""
    values = {key: one.value for key, one in found.constants.items()}
    columns = {"nbytes": np.array([point.number("nbytes") for point in points])}
    if shaped:
        columns["rate"] = np.array([point.number("rate") for point in points])
    predicted = _line(shaped).function(values, columns)
    return np.asarray(np.log(predicted / np.array([point.median for point in points])))
