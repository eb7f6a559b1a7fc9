"""Which of two measured set-ups is faster is predicted right, in every measured file about training.

All pairs of figures of one kind in a file are compared, and pairs of files that measured two ways of doing the same.
Equal figures say nothing. What comes out wrong is named here and in docs/explanation/training.md, and nothing else may.
"""

from itertools import combinations

import pytest

from simperf.run import run_variants
from simperf.scenario import load_scenario, shipped_scenarios
from simperf.units import parse

TRAINING = ("train", "parameter-server")
FILES = [
    name
    for name in shipped_scenarios()
    if name.startswith("measured/") and load_scenario(name).data["program"].get("use") in TRAINING
]
#: file: pairs of variants in the order that was measured, faster first, and that is predicted the other way round
WRONG = {
    "ddp-resnet50": {("2 GPUs", "8 GPUs"), ("4 GPUs", "8 GPUs")},
    "ddp-resnet50-small-buckets": {("2 GPUs", "4 GPUs"), ("2 GPUs", "8 GPUs")},
    "ddp-resnext50": {("2 GPUs", "8 GPUs"), ("2 GPUs", "16 GPUs"), ("4 GPUs", "8 GPUs")},
    "ddp-resnext50-small-buckets": {("2 GPUs", "8 GPUs")},
}
#: the faster of two files that measure two ways of doing the same, the slower one
FASTER = [
    ("mxnet-kv-device-8gpu", "mxnet-kv-local-8gpu"),
    ("mxnet-kv-device-2gpu", "mxnet-kv-device-8gpu"),
    ("optcast-servers", "optcast-ring"),
]


def figures(name):
    """By metric: measured and predicted value of each variant, larger for faster; one device is as it was fitted."""
    found = {}
    for attempt in run_variants(load_scenario(name), record=False):
        for one in attempt.scenario.measurements:
            if one.value is None:
                continue
            metric = None if one.key == "time" else attempt.result.metrics[one.key.removeprefix("metrics.")]
            unit, predicted = (metric.unit, metric.value) if metric else ("s", attempt.result.time)
            sign = -1.0 if unit == "s" else 1.0
            row = (attempt.name, sign * parse(one.value, unit), sign * predicted)
            rows = found.setdefault(one.key, [])
            alone = attempt.scenario.parameters.get("alone", 0.0)
            if alone and unit == "1/s" and not rows:
                rows.append(("alone", alone, alone))
            rows.append(row)
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_faster_of_two_variants_is_predicted_to_be_faster(name):
    wrong = set()
    for rows in figures(name).values():
        for pair in combinations(rows, 2):
            (slow, low, less), (fast, high, more) = sorted(pair, key=lambda row: row[1])
            if low < high and not less < more:
                wrong.add((fast, slow))
    assert wrong == WRONG.get(name.removeprefix("measured/"), set())


@pytest.mark.parametrize(("fast", "slow"), FASTER)
def test_the_faster_of_two_ways_is_predicted_to_be_faster(fast, slow):
    ((_, high, more),), ((_, low, less),) = (figures(f"measured/{name}")["time"] for name in (fast, slow))
    assert high > low
    assert more > less


def test_every_file_with_a_wrong_order_is_there():
    assert {f"measured/{name}" for name in WRONG} <= set(FILES)
