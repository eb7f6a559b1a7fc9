"""Published scaling beside predictions: ``python -m tests.truth.scaling [--rows] [SCENARIO...]``.

Of all measured figures of several GPUs: errors beside both baselines, the share of lost throughput that is explained,
and which of two servers scales better. The same is told by source, model, server, interconnect, number of GPUs and
stack, and with each of them left out, so that no single one makes the whole. No constant is chosen here: what was read
off figures is listed in simperf/accuracy/data/fitted.toml, and a figure behind it is fitted and not counted.
``--rows`` adds every figure.
"""

import argparse
import math
import sys
from collections import defaultdict
from statistics import median

from simperf.accuracy.scaling_points import scaling_points, server_pairs, summarize_losses
from simperf.accuracy.summary import percentile_90

#: what a user knows of a point beforehand
GROUPS = ("source", "model", "server", "interconnect", "workers", "stack")
METHODS = ("predicted", "ring")
HEAD = "| figures | n | median | 90th | bias | ring: median | 90th | nearer | linear: nearer |"
LOSSES = "| figures | over 10 % | explained | ring | under 5 % | bias | ring | pairs | right | ring |"


def errors(points, method="predicted"):
    """Signed errors of the throughput; above 0 where it is too fast."""
    return [getattr(one, method) / one.measured - 1 for one in points]


def nearer(points, other):
    """Share of the points at which the prediction is nearer than another efficiency."""
    there = [one for one in points if not math.isnan(other(one))]
    if not there:
        return math.nan
    return sum(abs(one.predicted - one.measured) < abs(other(one) - one.measured) for one in there) / len(there)


def percent(value):
    """A share in per cent; a dash for none."""
    return "-" if math.isnan(value) else f"{100 * value:.1f} %"


def error_row(name, points):
    """A line of errors of figures that need a prediction."""
    own, both = errors(points), [one for one in points if not math.isnan(one.ring)]
    sizes, ring = [abs(one) for one in own], [abs(one) for one in errors(both, "ring")]
    beside = [median(ring), percentile_90(sorted(ring))] if ring else [math.nan, math.nan]
    shares = [nearer(points, lambda one: one.ring), nearer(points, lambda one: 1.0)]
    cells = [median(sizes), percentile_90(sorted(sizes)), median(own), *beside, *shares]
    return f"| {name} | {len(points)} | " + " | ".join(map(percent, cells)) + " |"


def loss_row(name, points):
    """A line of lost throughput and of pairs of servers."""
    own, ring = (summarize_losses(points, method) for method in METHODS)
    pairs = [one for one in server_pairs(points) if not (math.isnan(one.first.ring) or math.isnan(one.second.ring))]
    right = [sum(one.right(method) for one in pairs) for method in METHODS]
    cells = [own.much, percent(own.explained), percent(ring.explained)]
    cells += [own.little, percent(own.bias), percent(ring.bias), len(pairs), *right]
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def grouped(points, group):
    """Points by a group's names, and all others by the same."""
    found = defaultdict(list)
    for one in points:
        found[str(getattr(one, group))].append(one)
    for name, own in sorted(found.items()):
        yield name, own, [one for one in points if str(getattr(one, group)) != name]


def lines(points):
    """Lines of both tables."""
    needed = [one for one in points if one.row.kind == "predicted"]
    for head, row, among in ((HEAD, error_row, needed), (LOSSES, loss_row, points)):
        yield head
        yield "|" + "---|" * (head.count("|") - 1)
        yield row("all", among)
        for group in GROUPS:
            for name, own, others in grouped(among, group):
                yield row(f"{group}: {name}", own)
                if others:
                    yield row(f"without {group}: {name}", others)
        yield ""


def rows(points):
    """A line a figure: efficiency measured, predicted and by a ring, and what several GPUs add to a step."""
    yield "| case | server | GPUs | model | class | step | measured | predicted | ring | added | predicted | error |"
    yield "|---|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for one in points:
        added = [f"{1e3 * one.step * (1 / value - 1):.1f} ms" for value in (one.measured, one.predicted)]
        shares = [percent(value) for value in (one.measured, one.predicted, one.ring)]
        told = [one.row.case, one.server, str(one.workers), f"{one.model} {one.precision}".strip(), one.row.kind]
        told += [f"{1e3 * one.step:.1f} ms", *shares, *added, percent(errors([one])[0])]
        yield f"| {' | '.join(told)} |"
    yield ""


def main(arguments=None):
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.scaling", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="measured scenarios; all by default")
    parser.add_argument("--rows", action="store_true", help="every figure, too")
    given = parser.parse_args(arguments)
    points = list(scaling_points(given.scenarios))
    for text in (*(rows(points) if given.rows else ()), *lines(points)):
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
