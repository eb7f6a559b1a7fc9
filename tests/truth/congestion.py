"""Published scaling over several servers with a share of the network: ``python -m tests.truth.congestion [SHARE...]``.

Congestion, from other jobs or from a cloud that divides its links, leaves a job less than its ports have. If that were
what is missed, one share would make the predictions of several publishers right. Every link of Ethernet and InfiniBand
is given each share of its rate, and the figures of several servers are predicted anew; nothing else changes.
"""

import argparse
import sys
from dataclasses import replace
from unittest.mock import patch

from simperf.accuracy.scaling_points import scaling_points
from simperf.hardware import Catalog

#: scenarios whose GPUs are in several servers
SCENARIOS = (
    "tf-ps-64-k80-inception3",
    "tf-ps-64-k80-resnet50",
    "horovod-16-p100-resnet101",
    "horovod-512-p100",
    "byteps-bert-large-256",
    "ddp-resnet50",
)


def narrowed(share):
    """The catalogue's method that reads a part, with a share of the rate of every link of a network."""
    read = Catalog.part

    def part(self, kind, name, *more, **given):
        found = read(self, kind, name, *more, **given)
        if kind == "link" and found.technology in ("ethernet", "infiniband"):
            return replace(found, rate=share * found.rate)
        return found

    return patch.object(Catalog, "part", part)


def figures(share):
    """Measured and predicted efficiency of each figure of several servers, by case, quantity and GPUs."""
    with narrowed(share):
        points = list(scaling_points(f"measured/{name}" for name in SCENARIOS))
    return {
        (one.row.case, one.model, one.row.quantity, one.workers): one for one in points if one.interconnect == "network"
    }


def lines(shares):
    """A line a figure: measured efficiency, and the error of the predicted one with each share."""
    found = [figures(share) for share in shares]
    yield f"| figure | GPUs | measured | {' | '.join(f'{share:.0%}' for share in shares)} |"
    yield "|---|--:|--:|" + "--:|" * len(shares)
    for key, one in found[0].items():
        errors = [f"{each[key].predicted / one.measured - 1:+.1%}" for each in found]
        yield f"| {key[0]}, {key[1]}, {key[2]} | {one.workers} | {one.measured:.1%} | {' | '.join(errors)} |"


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.congestion", description=__doc__)
    parser.add_argument("shares", nargs="*", type=float, default=[1.0, 0.7, 0.5, 0.3], help="of the rate of each link")
    for line in lines(parser.parse_args(arguments).shares):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
