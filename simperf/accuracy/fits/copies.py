"""Fits to published curves of copies over PCIe and of an adapter's loop-back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simperf.accuracy.fits.rows import FitRow, best_fit, row_of, two_constants
from simperf.calibrate.fit import Data
from simperf.calibrate.fit.messages import piecewise, piecewise_model, pipelined_model
from simperf.calibrate.uncertainty.variance import with_pooled_scatter

__all__ = ["copy_rows"]

_SECTION = "Copies over sizes, half of the sizes predicted"
#: column of a rate -> its factor to bytes a second
_RATES = {"GBps": 1e9, "MBps": 1e6}
_GOAL = 0.05


def copy_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Every case of copies: fitted on every second size, predicted on the others.

    A copy is described by regimes of its size, or, where copies are posted in a row, by the rate of messages and the
    wire; Schwarz's criterion on the fitted sizes says which.
    """
    for case in cases:
        if not str(case["id"]).startswith("xfer"):
            continue
        measured = case["measured"]
        columns = list(measured.get("columns") or ())
        if len(columns) < 2 or columns[1] not in _RATES:
            none = float("nan")
            reason = "it gives a rate for one size, no curve: nothing is left to predict"
            yield FitRow(_SECTION, str(case["id"]), "not fitted", 0, 0, none, none, none, none, note=reason)
            continue
        size, rate = np.array(measured["table"], dtype=float).T
        every = Data.table(size / (rate * _RATES[columns[1]]), nbytes=size)
        known, away = every.take(np.arange(len(size)) % 2 == 0), every.take(np.arange(len(size)) % 2 == 1)
        limits = piecewise(known)
        models = [piecewise_model("copy", "copy by regime", limits, known)]
        models.append(pipelined_model("messages", "messages in a row"))
        (found,) = with_pooled_scatter([best_fit(models, known)])
        note = f"{len(limits) + 1} regime{'s' if limits else ''}"
        if found.model.name == "messages":
            gap, rate = found.values["gap"], found.values["bandwidth"]
            note = f"a message every {gap * 1e6:.2f} us, or {rate / 1e9:.1f} GB/s on the wire"
        yield row_of(
            _SECTION,
            str(case["id"]),
            "every second size",
            [(found, away)],
            plain=float(np.abs(two_constants(known, away)).mean()),
            goal=_GOAL,
            note=note,
            source=str(case.get("source", {}).get("repo", "")),
        )
