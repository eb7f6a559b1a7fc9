"""How much the same kernel varies on one GPU: ``python -m tests.truth.kernel_noise TRACE``, a trace of Kineto.

Kernels are the same if name, grid, block and stream are. Those beside a collective are left out, whose time is
shared, and short ones, of which the profiler's clock takes a part.
"""

import gzip
import json
import sys
from bisect import bisect_right
from collections import defaultdict
from statistics import mean, median, pstdev

#: how often a kernel runs at least, and how long it takes [us]
OFTEN, LONG = 8, 20.0


def deviations(events):
    """Standard deviation over the mean [1], by kernel."""
    kernels = [one for one in events if one.get("ph") == "X" and str(one.get("cat")).lower() == "kernel"]
    spans = [(float(one["ts"]), float(one["ts"]) + float(one["dur"]), one) for one in kernels]
    collectives = sorted((begin, end) for begin, end, one in spans if "nccl" in one["name"].lower())
    begins = [begin for begin, _ in collectives]
    ends = []
    for _, end in collectives:
        ends.append(max(end, ends[-1] if ends else end))
    found = defaultdict(list)
    for begin, end, one in spans:
        before = bisect_right(begins, end)
        beside = before and ends[before - 1] > begin
        if not beside and "nccl" not in one["name"].lower():
            about = one.get("args", {})
            found[one["name"], str(about.get("grid")), str(about.get("block")), about.get("stream")].append(end - begin)
    return {key: pstdev(one) / mean(one) for key, one in found.items() if len(one) >= OFTEN and mean(one) >= LONG}


def main(paths):
    """Print the median of each trace."""
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found = deviations(json.load(file)["traceEvents"])
        print(f"{path}: {100 * median(found.values()):.2f} % in the median of {len(found)} kernels")


if __name__ == "__main__":
    main(sys.argv[1:])
