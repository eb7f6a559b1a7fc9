"""Order of published layouts: ``python -m tests.truth.layout_pairs``.

Pairs of cases that differ in their layout alone, beside the ratio of their steps as it was measured. How much larger
the predicted ratio is in nine of ten pairs, each source counted alike, is how far apart two layouts have to be for
their order to be known (`simperf.study.layouts.ties`). Predictions are those of the stored table.
"""

import math
from collections import Counter, defaultdict
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_table import stored_grades
from tests.truth.collectives import truth_folder

#: share of pairs that are missed by less [1]
SHARE = 0.9


class Pair(NamedTuple):
    """Two layouts: the predicted ratio of their steps, 1 or more, and the measured one, as logarithms."""

    family: str
    predicted: float
    measured: float

    @property
    def excess(self) -> float:
        """How much larger the predicted ratio is."""
        return self.predicted - self.measured


def pairs(folder):
    """Pairs of layouts of one model, batch, precision and program on as many GPUs of one kind."""
    cases = {(one.family, one.name): one for one in read_large_cases(folder / "llm")[0]}
    jobs = defaultdict(list)
    for row in stored_grades():
        case = cases.get((row.family, row.case))
        if case is None or case.time is None or row.quantity != "time" or math.isnan(row.predicted):
            continue
        how = case.layout
        job = case.family, case.model, case.machine.gpu.name, case.gpus, how.batch, how.precision, how.products
        layout = how.layout, how.microbatch, how.chunks, how.schedule, how.recompute
        jobs[*job, how.framework, how.software].append((layout, case.time, row.predicted))
    for (family, *_), several in jobs.items():
        for (one, time, step), (other, longer, slower) in combinations(several, 2):
            if one != other:
                predicted, measured = math.log(slower / step), math.log(longer / time)
                yield Pair(family, abs(predicted), measured if predicted >= 0 else -measured)


def largest_excess(found, share=SHARE):
    """Excess that a share of pairs stays below, each source counted alike."""
    counts = Counter(one.family for one in found)
    ordered = sorted(found, key=lambda one: one.excess)
    weights = np.cumsum([1 / counts[one.family] for one in ordered])
    return ordered[int(np.searchsorted(weights, share * weights[-1]))].excess


def main():
    """Print how often the order was right, by how far apart layouts were predicted to be, and the excess."""
    found = list(pairs(truth_folder()))
    for family, own in Counter(one.family for one in found).items():
        print(f"{family}: {own} pairs")
    edges = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, math.inf)
    for low, high in pairwise(edges):
        near = [one for one in found if low <= math.expm1(one.predicted) < high]
        right = sum(one.measured > 0 for one in near) / len(near)
        print(f"predicted {low:.0%} to {high:.0%} apart: {len(near)} pairs, {right:.0%} in the predicted order")
    print(f"excess of the predicted ratio in {SHARE:.0%} of pairs, each source alike: {largest_excess(found):.3f}")


if __name__ == "__main__":
    main()
