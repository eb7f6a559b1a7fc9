"""How far the ratio of two batches' times on one GPU is off: ``python -m tests.truth.batches``.

Published passes of one model on one GPU that differ in the batch alone. What both are missed by alike, the GPU's speed,
is not in the ratio.
"""

import itertools
import math
from collections import defaultdict

from simperf.accuracy.cases import read_cases
from simperf.accuracy.timed_passes import pass_scenario, timed_runs
from simperf.run import run
from tests.truth.collectives import truth_folder


def batch_pairs(folder):
    """Pairs of batches next to each other, each with the logarithm of measured over predicted ratio of times."""
    alike = defaultdict(list)
    for case in read_cases(folder):
        for one in timed_runs(case):
            if not one.why_not:
                time = sum(run(pass_scenario(one, part), record=False).time for part in one.parts)
                alike[one.gpu, one.model, one.parts, one.sequence].append((one.batch, one.measured / time))
    found = {}
    for key, rows in alike.items():
        for (small, error), (large, other) in itertools.pairwise(sorted(rows)):
            found[*key, small, large] = math.log(other / error)
    return found


def main():
    for (gpu, model, parts, sequence, small, large), error in batch_pairs(truth_folder()).items():
        print(f"{gpu:20} {model:12} {'+'.join(parts):18} {sequence:5} {small:3} -> {large:3}  {error:+.3f}")


if __name__ == "__main__":
    main()
