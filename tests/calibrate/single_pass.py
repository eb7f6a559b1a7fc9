"""Accuracy of a boxed cluster's constants if its small sends are measured in one pass instead of twelve.

``python -m tests.calibrate.single_pass FILE`` fits the constants of a recording to each pass of its small sends alone,
and to all of them together, and prints the mean errors of the groups that small messages matter to.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import Pool

from simperf.calibrate.cluster.accuracy import hold_against, summaries
from simperf.calibrate.cluster.experiments import GOES, points
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset, Measurement

__all__ = ["GOES", "one_pass"]

#: groups that are printed
GROUPS = ("gloo, cores saturated", "ring, cores saturated", "sharded, cores saturated")
GROUPS += ("ring, below 256 KiB", "central, below 256 KiB", "ddp", "server/asynchronous")


def one_pass(data: Dataset, number: int) -> Dataset:
    """The recording with the readings of one of the `GOES` passes in which its small sends were measured."""
    shape = Shape(data.select("add")[0].number("rate"))
    often = {
        (point.series, point.at.get("nbytes"), point.at.get("messages")): point.repeats
        for point in points(2, shape, only=("send",))
        if point.goes == GOES
    }

    def alone(point: Measurement) -> Measurement:
        series = {"cpu/call": "send-train", "send/left": "send"}.get(point.series, point.series.removeprefix("cpu/"))
        count = often.get((series, point.at.get("nbytes"), point.at.get("messages")), 0)
        if not count or point.at["rate"] != shape.rate or len(point.samples) < (number + 1) * count:
            return point
        return replace(point, samples=point.samples[number * count : (number + 1) * count])

    return replace(data, measurements=tuple(map(alone, data)))


def _errors(data: Dataset) -> dict[str, float]:
    return {one.group: one.mape for one in summaries(hold_against(data))}


def _lines(path: str) -> Iterator[str]:
    data = Dataset.load(path)
    with Pool() as pool:
        every = pool.imap(_errors, [data, *(one_pass(data, number) for number in range(GOES))])
        whole, *alone = every
    for group in GROUPS:
        each = sorted(errors[group] for errors in alone)
        found = f"{each[0]:.1%} to {each[-1]:.1%}, mean {sum(each) / len(each):.1%}"
        yield f"{group}: {whole[group]:.1%} from all passes, from one {found}"


def main() -> None:
    """Print the errors of a recording's groups from all passes, and from one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    for line in _lines(parser.parse_args().file):
        print(line)


if __name__ == "__main__":
    main()
