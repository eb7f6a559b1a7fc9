"""Which of two measured set-ups is faster is predicted right, in every measured file about training.

All pairs of figures of one kind in a file are compared, and pairs of files that measured two ways of doing the same.
Equal figures say nothing, and neither do two that the source does not tell apart itself: files whose cases list
several runs are compared only where the runs of one all lie below those of the other.
"""

from itertools import combinations

import pytest

from simperf.scenario import load_scenario, shipped_scenarios
from simperf.units import parse
from tests.truth.runs import UNORDERED, attempts

TRAINING = ("train", "parameter-server", "recommender", "servers-or-ring")
FILES = [
    name
    for name in shipped_scenarios()
    if name.startswith("measured/") and load_scenario(name).data["program"].get("use") in TRAINING
]
#: the faster of two files that measure two ways of doing the same, the slower one
FASTER = [
    ("mxnet-kv-device-8gpu", "mxnet-kv-local-8gpu"),
    ("mxnet-kv-device-2gpu", "mxnet-kv-device-8gpu"),
    ("mxnet-kv-device-8gpu", "mxnet-kv-dist-1server"),
    ("optcast-servers", "optcast-ring"),
    ("optcast-servers", "optcast-servers-512k"),
    ("optcast-ring", "optcast-servers-512k"),
]


def figures(name):
    """By metric: measured and predicted value of each variant, larger for faster; one device is as it was fitted."""
    found = {}
    for attempt in attempts(name):
        if (name, attempt.name) in UNORDERED:
            continue
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
    assert not wrong


@pytest.mark.parametrize(("fast", "slow"), FASTER)
def test_the_faster_of_two_ways_is_predicted_to_be_faster(fast, slow):
    ((_, high, more),), ((_, low, less),) = (figures(f"measured/{name}")["time"] for name in (fast, slow))
    assert high > low
    assert more > less


@pytest.mark.parametrize("name", ["byteps-bert-large-256", "byteps-20g", "byteps-100g-pcie"])
def test_servers_of_their_own_are_predicted_to_beat_a_ring(name):
    """They did wherever it was measured, on 20 and 100 Gbit/s, over NVLink and PCIe."""
    for attempt in attempts(f"measured/{name}"):
        assert attempt.result.metrics["speed-up of servers"].value > 0.01, attempt.name


@pytest.mark.truth
def test_two_stores_that_were_measured_alike_are_not_ordered(cases):
    """Five runs through the CPU lie within the five through a socket: 0.290 to 0.294 s in 0.285 to 0.303 s."""
    local, socket = (cases[f"mxnet-kv-{name}"]["measured"]["value"] for name in ("local-8gpu", "dist-1server"))
    assert min(socket) < min(local)
    assert max(local) < max(socket)
    alone, both = (cases[f"mxnet-kv-device-{count}gpu"]["measured"]["value"] for count in (2, 8))
    assert max(alone) < min(both), "the others are distinguished by every run"
    assert max(both) < min(local)


@pytest.mark.truth
def test_a_figure_that_is_not_ordered_is_impossible_beside_the_others(cases):
    """Four GPUs do a third of what one does, and eight in the same server do twelve times what four do."""
    for name, variant in [one for one in UNORDERED if "tacotron2" in one[0]]:
        scenario = load_scenario(name)
        rates = {"1 GPU": scenario.parameters["alone"]}
        for attempt in attempts(name):
            for one in attempt.scenario.measurements:
                rates[attempt.name] = parse(one.value, "1/s")
        column = cases[scenario.case]["measured"]["columns"].index("tacotron2")
        published = [float(row[column]) for row in cases[scenario.case]["measured"]["table"]]
        assert sorted(rates.values()) == sorted(published)
        assert rates[variant] < rates["1 GPU"] < rates["2 GPUs"]
        assert rates["8 GPUs"] > 2 * 2 * rates[variant], "twice the GPUs, four times the rate and more"
