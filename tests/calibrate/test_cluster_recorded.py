"""The recorded boxed cluster: constants from sends between two hosts at one rate, everything else predicted."""

import functools
import math
import statistics
from pathlib import Path

import pytest

from simperf.calibrate.cluster.accuracy import calm, hold_against, summaries
from simperf.calibrate.cluster.fitting import fit_constants
from simperf.calibrate.cluster.scatter import disturbance, with_others
from simperf.calibrate.dataset import Dataset
from simperf.report.cluster import cluster_markdown, cluster_text
from tests.calibrate.goes import GOES, one_go

pytest.importorskip("lmfit")

FOLDER = Path(__file__).parents[2] / "calibration"
#: the seventh was opened when this version of the model was final, the others had been seen
NAMES = ("main", "later", "earlier", "fourth", "fifth", "sixth", "seventh")
#: opened when this version of the model was final, in calm hours; from the eleventh on points are taken in several goes
CALM = ("tenth", "eleventh", "twelfth")
#: what the mean error of a group may be; the cores are saturated from three quarters of their time on
GOALS = {
    "gloo": 0.05,
    "ring": 0.05,
    "central": 0.05,
    "binomial-tree": 0.05,
    "sharded": 0.10,
    "gloo, cores saturated": 0.10,
    "ring, cores saturated": 0.10,
    "sharded, cores saturated": 0.10,
    "gloo, one slow host": 0.05,
    "ring, one slow host": 0.05,
    "central, one slow host": 0.05,
    "sharded, one slow host": 0.05,
    "binomial-tree, one slow host": 0.05,
    "ddp": 0.08,
    "server/asynchronous": 0.10,
    "server/synchronous": 0.10,
}
#: goals that a recording misses, and by how much it may; why is told in docs/how-to/boxed-cluster.md
MISSED = {
    ("earlier", "sharded, cores saturated"): 0.13,
    ("fourth", "gloo, cores saturated"): 0.12,
    ("fifth", "server/asynchronous"): 0.12,
    ("ninth", "gloo, cores saturated"): 0.14,
    ("ninth", "sharded, cores saturated"): 0.15,
    ("tenth", "sharded, cores saturated"): 0.13,
}


@functools.cache
def recorded(name):
    middle = "" if name == "main" else f"-{name}"
    return Dataset.load(FOLDER / f"boxed-cluster-zen5-2c{middle}.json.gz")


@functools.cache
def held(name):
    """A recording's points, each beside what is predicted from the recording's own sends."""
    return hold_against(recorded(name))


@pytest.fixture(scope="module")
def box():
    return fit_constants(recorded("main"))


@pytest.fixture(scope="module")
def rows():
    return held("main")


def error(rows, group):
    found = {one.group: one for one in summaries(rows)}
    return found[group].mape


def test_the_constants_are_physical(box):
    one = box.constants
    assert one.efficiency == pytest.approx(1448 / 1514, rel=0.01)  # Ethernet, IP and TCP with time stamps
    assert one.burst == pytest.approx(32768, rel=0.15)  # as it was set
    assert 10e-6 < one.latency < 500e-6
    assert 0.3e-9 < one.byte < 10e-9
    assert 1.5 < one.cores <= 2.0


def test_only_sends_at_one_rate_were_fitted(rows):
    fitted = [row for row in rows if row.fitted]
    assert {row.point.at["rate"] for row in fitted} == {25e6}
    assert {row.point.series for row in fitted} == {"send", "round-trip", "send-train"}


@pytest.mark.parametrize("name", [*NAMES, "ninth", *CALM])
@pytest.mark.parametrize("group", GOALS)
def test_mean_errors(name, group):
    assert error(held(name), group) <= MISSED.get((name, group), GOALS[group])


def test_what_is_said_to_be_missed_is():
    for (name, group), limit in MISSED.items():
        assert limit - 0.02 < error(held(name), group) <= limit, (name, group)
        assert limit > GOALS[group]


@pytest.mark.parametrize("name", [*NAMES, "eleventh", "twelfth"])
def test_what_small_messages_cost_is_known(name):
    """Rings of messages that no link holds back: they are all CPU time and waiting."""
    assert error(held(name), "ring, below 256 KiB") <= 0.12


def rivals(rows):
    """Ring and central of the same setting, on links that are all alike."""
    pairs = {}
    for row in rows:
        at = row.point.at
        if row.point.series in ("all-reduce/ring", "all-reduce/central") and "rate_of_1" not in at:
            pairs.setdefault((at["rate"], at["ranks"], at["nbytes"]), {})[row.point.series] = row
    both = [pair for pair in pairs.values() if len(pair) == 2]
    return [(pair["all-reduce/ring"], pair["all-reduce/central"]) for pair in both]


def wrong_side(ring, central):
    return (ring.predicted < central.predicted) != (ring.point.median < central.point.median)


def test_ring_and_central_cross_where_they_do(rows):
    """The prediction says which one is faster, in every setting."""
    found = rivals(rows)
    assert len(found) == 71
    assert not [ring.point.at for ring, central in found if wrong_side(ring, central)]
    sizes = {ring.point.at["nbytes"] for ring, _ in found}
    assert min(sizes) < 16384 < max(sizes)  # on both sides of the crossing


@pytest.mark.parametrize("name", [*NAMES, *CALM])
def test_ring_and_central_are_confused_only_where_they_take_the_same(name):
    wrong = [(ring.point, central.point) for ring, central in rivals(held(name)) if wrong_side(ring, central)]
    assert len(wrong) <= 1
    assert all(abs(ring.median / central.median - 1) < 0.03 for ring, central in wrong)
    assert not wrong or name not in CALM


def buckets(rows):
    """Steps of DistributedDataParallel that differ in nothing but the size of their buckets."""
    steps = {}
    for row in rows:
        if row.point.series == "ddp":
            steps.setdefault((row.point.at["rate"], row.point.at["ranks"]), []).append(row)
    return list(steps.values())


def chosen(group):
    return min(group, key=lambda row: (row.predicted, row.point.at["bucket"]))


def test_the_best_bucket_size_is_predicted(rows):
    """What is predicted to be best is, as measured, the best within the readings' scatter of 4 %; so is the worst."""
    steps = buckets(rows)
    assert len(steps) == 6
    for group in steps:
        best = min(row.point.median for row in group)
        assert chosen(group).point.median <= 1.04 * best
        assert max(group, key=lambda row: row.predicted) is max(group, key=lambda row: row.point.median)


def naive(point):
    """Hockney's formula: the latency of a send, and bytes over the rate that was set."""
    ranks, wire, latency = point.at["ranks"], point.at["nbytes"] / point.at["rate"], 0.24e-3
    return {
        "gloo": 2 * (ranks - 1) * (latency + wire / ranks),
        "ring": 2 * (ranks - 1) * (latency + wire / ranks),
        "sharded": 2 * latency + 2 * (ranks - 1) / ranks * wire,
        "central": 2 * (latency + ranks * wire),
        "binomial-tree": 2 * (ranks - 1).bit_length() * (latency + wire),
    }[point.series.removeprefix("all-reduce/")]


def test_the_naive_formula_is_further_off(rows):
    """From 256 KiB up, on links that are all alike."""
    formula, simulated = [], []
    for row in rows:
        at = row.point.at
        if row.point.series.startswith("all-reduce/") and at["nbytes"] >= 262144 and "rate_of_1" not in at:
            formula.append(abs(naive(row.point) / row.point.median - 1))
            simulated.append(abs(row.error))
    assert sum(simulated) < 0.6 * sum(formula)
    assert max(formula) > 0.4


def test_the_tables(box, rows):
    text = cluster_text(box, rows, points=True)
    assert "prediction meets reality" in text
    assert "ranks=8" in text
    page = cluster_markdown(rows)
    assert page.splitlines()[0].startswith("| boxed cluster | points |")
    assert "| gloo |" in page


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("later", 1.06),
        ("earlier", 1.08),
        ("fourth", 1.05),
        ("fifth", 1.09),
        ("sixth", 1.09),
        ("seventh", 1.08),
        ("ninth", 1.08),
        ("tenth", 1.08),
        ("eleventh", 1.13),
        ("twelfth", 1.09),
    ],
)
def test_the_best_bucket_size_of_other_recordings(name, most):
    for group in buckets(held(name)):
        assert chosen(group).point.median <= most * min(row.point.median for row in group)


@pytest.mark.parametrize("name", ["fourth", "fifth", "sixth"])
def test_intervals_of_three_recordings_hold_the_points_of_later_ones(name):
    found = with_others(held(name), [held(other) for other in ("main", "earlier", "later")])
    free = [row for row in found if not row.fitted]
    assert 0.88 <= sum(row.covered for row in free) / len(free) <= 0.97


def free(name, others, rows=None):
    """Points of a recording that were not fitted, with the intervals that others make."""
    found = with_others(rows or held(name), [held(other) for other in others if other != name])
    return [row for row in found if not row.fitted]


def share(rows):
    return sum(row.covered for row in rows) / len(rows)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_hold_nine_of_ten_points_of_each_recording_that_the_other_six_know_nothing_of(name):
    """The seventh too, which is less steady; half of the points of the others have intervals of 3.3 % or less."""
    found = free(name, NAMES)
    assert 0.85 <= share(found) <= 0.95
    half = statistics.median(map(reach, found))
    assert 0.02 < half < (0.06 if name == "seventh" else 0.035)


def test_a_less_steady_recording_is_known_by_its_own_sends():
    """Central is off by 1.6 % there, in the others by 0.2 to 0.5 %; without a look at the sends 72 % would be held."""
    assert disturbance(held("seventh")) > 3 * max(disturbance(held(name)) for name in NAMES[:-1])
    assert min(error(held("seventh"), "central") / error(held(name), "central") for name in NAMES[:-1]) > 3
    blind = free("seventh", NAMES, [row for row in held("seventh") if not row.fitted])
    assert 0.65 <= share(blind) <= 0.80
    found = free("seventh", NAMES)
    full = [row for row in found if "saturated" in row.group or row.group in ("ddp", "server/asynchronous")]
    assert 0.88 <= share(full) <= 0.97
    same = {row.point.key: reach(row) for row in blind}
    busy = [reach(row) / same[row.point.key] for row in found if "saturated" in row.group]
    idle = [reach(row) / same[row.point.key] for row in found if row.group == "central"]
    assert statistics.median(busy) < 1.2
    assert statistics.median(idle) > 2


def test_intervals_hold_nine_of_ten_points_of_a_recording_that_they_do_not_know():
    """Each recording in turn, with the misses of the other two; intervals of half the width hold far fewer."""
    every = tuple(held(name) for name in ("main", "earlier", "later"))
    for index, one in enumerate(every):
        found = with_others(one, every[:index] + every[index + 1 :])
        free = [row for row in found if not row.fitted]
        assert 0.86 <= sum(row.covered for row in free) / len(free) <= 0.95
        half = [abs(math.log(row.point.median / row.predicted) - middle(row)) <= reach(row) / 2 for row in free]
        assert sum(half) / len(half) < 0.8


def test_a_recording_whose_machine_was_taken_away_is_measured_again_as_far_as_can_be():
    """The ninth, blind: the eighth, whose disturbed points were kept, is off by more than five times as much."""
    ninth, eighth = held("ninth"), held("eighth")
    assert len(ninth) - len(calm(ninth)) == 6
    assert not calm(eighth)  # its recorder did not know
    for group in ("gloo", "ring", "sharded"):
        assert error(eighth, group) > 5 * error(ninth, group)
    assert error(ninth, "ring, below 256 KiB") > 0.3  # slow small sends at its beginning, see the page


@pytest.mark.parametrize("name", CALM)
def test_intervals_hold_nine_of_ten_points_of_recordings_that_they_were_not_chosen_by(name):
    found = free(name, NAMES)
    assert 0.90 <= share(found) <= 0.98
    assert statistics.median(map(reach, found)) < 0.035


def test_small_sends_of_one_moment_are_not_those_of_the_session():
    """Why they are taken in several goes: of 15 repeats within a tenth of a second all are high, or all are low."""
    whole = recorded("twelfth")
    levels = []
    for number in range(GOES):
        (first, *_) = one_go(whole, number).select("send", rate=25e6, nbytes=4)
        levels.append(first.median)
    joined = whole.select("send", rate=25e6, nbytes=4)[0].median
    assert min(levels) < 0.85 * joined < 1.15 * joined < max(levels)


def test_intervals_of_a_disturbed_recording_hold_too_few():
    assert 0.80 <= share(free("ninth", NAMES)) <= 0.86


def middle(row):
    return math.log(row.interval[0] * row.interval[1] / row.predicted**2) / 2


def reach(row):
    return math.log(row.interval[1] / row.interval[0]) / 2


def test_the_standard_error_of_the_latency_can_be_believed(box):
    """Eight points that the model misses by 15 % do not tell a latency to picoseconds."""
    latency = next(found for found in box.fits if "latency" in found.constants).constants["latency"]
    assert 0.1 < latency.stderr / latency.value < 3.0
    assert latency.low < 0.9 * latency.value < 1.1 * latency.value < latency.high
