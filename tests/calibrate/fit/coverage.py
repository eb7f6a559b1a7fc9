"""Coverage of the intervals, counted: ``python -m tests.calibrate.fit.coverage --repetitions 500 [MODEL ...]``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from simperf.calibrate.fit import fit
from tests.calibrate.fit.devices import DEVICES
from tests.calibrate.fit.truths import TRUTHS, Truth, boxed_message

__all__ = ["coverage"]


def coverage(
    truth: Truth, repetitions: int, *, width: float = 1.0, seed: int = 3
) -> dict[str, tuple[float, float, float]]:
    """Of each constant: share of intervals that hold it, that lie above it, and median relative error of its value.

    Intervals of another `width` say whether the count would notice that they are wrong.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, list[tuple[bool, bool, float]]] = {key: [] for key in truth.values}
    for repetition in range(repetitions):
        constants = fit(truth.model, truth.measured(rng), seed=repetition).constants
        for key, value in truth.values.items():
            one = constants[key]
            low, high = one.value - width * (one.value - one.low), one.value + width * (one.high - one.value)
            found[key].append((low <= value <= high, low > value, one.value / value - 1.0))
    shares = {}
    for key, rows in found.items():
        held, above, errors = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        shares[key] = (float(held.mean()), float(above.mean()), float(np.median(errors)))
    return shares


def lines(names: list[str], repetitions: int) -> Iterator[str]:
    """A table in Markdown, and what stands out."""
    yield f"Share of {repetitions} repetitions in which the interval holds the constant (in brackets: lies above it)."
    yield ""
    yield "| model | constants |"
    yield "|---|---|"
    every = []
    truths = {**TRUTHS, **DEVICES, "boxed message": boxed_message()}
    for name in names or list(truths):
        shares = coverage(truths[name], repetitions)
        every += [held for held, _, _ in shares.values()]
        cells = (f"{key} {held:.1%} ({above:.1%})" for key, (held, above, _) in shares.items())
        yield f"| {name} | {', '.join(cells)} |"
    yield ""
    inside = sum(0.85 <= share <= 0.95 for share in every)
    yield f"{inside} of {len(every)} constants within 85 to 95 %; least {min(every):.1%}, most {max(every):.1%}."


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    for line in lines(given.names, given.repetitions):
        print(line, flush=True)
