"""A recorded boxed cluster: constants from sends between two hosts at one rate, everything else played by `run`."""

import functools
import statistics
from pathlib import Path

import pytest

from simperf.calibrate.cluster.accuracy import hold_against
from simperf.calibrate.cluster.fitting import fit_constants
from simperf.calibrate.cluster.scenarios import DRAWS, compute_of, predict, scenario
from simperf.calibrate.dataset import Dataset
from simperf.report.cluster import cluster_markdown, cluster_text
from simperf.run import run
from simperf.scenario import make_scenario

pytest.importorskip("scipy")

pytestmark = pytest.mark.long  # an interval of each point is drawn many times: a minute

FOLDER = Path(__file__).parents[2] / "calibration"
#: median error that a group of points of a calm recording may have
GOALS = {
    "gloo": 0.05,
    "ring": 0.05,
    "central": 0.05,
    "binomial-tree": 0.05,
    "sharded": 0.10,
    "gloo, one slow host": 0.05,
    "ring, one slow host": 0.05,
    "central, one slow host": 0.05,
    "sharded, one slow host": 0.05,
    "binomial-tree, one slow host": 0.05,
    "ddp": 0.10,
    "server/asynchronous": 0.10,
    "server/synchronous": 0.10,
}


@functools.cache
def recorded(name):
    middle = "" if name == "main" else f"-{name}"
    return Dataset.load(FOLDER / f"boxed-cluster-zen5-2c{middle}.json.gz")


@pytest.fixture(scope="module")
def rows():
    """The twelfth recording, whose every point was taken in several passes, beside what `run` says of each point."""
    return hold_against(recorded("twelfth"))


def test_the_constants_are_physical():
    stack = fit_constants(recorded("twelfth")).stack
    assert 10e-6 < stack["wake"] < 500e-6
    assert 0.1e9 < stack["byte_rate"] < stack["bulk_rate"] < 10e9
    assert 1e-6 < stack["message"] < stack["call"] < 100e-6


def test_only_sends_at_one_rate_were_fitted(rows):
    fitted = [row for row in rows if row.fitted]
    assert {row.point.at["rate"] for row in fitted} == {25e6}
    assert {row.point.series for row in fitted} == {"send", "round-trip", "send-train"}


@pytest.mark.parametrize("group", GOALS)
def test_median_errors(rows, group):
    assert statistics.median(abs(row.error) for row in rows if row.group == group) <= GOALS[group]


def test_ring_and_central_cross_where_they_do(rows):
    """The prediction says which one is faster, but where both take the same within a tenth."""
    pairs = {}
    for row in rows:
        at = row.point.at
        if row.point.series in ("all-reduce/ring", "all-reduce/central") and "rate_of_1" not in at:
            pairs.setdefault((at["rate"], at["ranks"], at["nbytes"]), {})[row.point.series] = row
    both = [(pair["all-reduce/ring"], pair["all-reduce/central"]) for pair in pairs.values() if len(pair) == 2]
    assert len(both) > 50
    for ring, central in both:
        if abs(ring.point.median / central.point.median - 1) > 0.1:
            assert (ring.predicted < central.predicted) == (ring.point.median < central.point.median), ring.point.at


def test_the_tables(rows):
    text = cluster_text(fit_constants(recorded("twelfth")), rows, points=True)
    assert "prediction meets reality" in text
    assert "ranks=8" in text
    page = cluster_markdown(rows)
    assert page.splitlines()[0].startswith("| boxed cluster | points |")
    assert "| gloo |" in page


def test_kinds_at_ordinary_priority_on_another_machine_are_within_a_tenth_in_the_median_but_trains_of_messages():
    data = Dataset.load(FOLDER / "boxed-cluster-xeon-2c-ordinary.json.gz")
    errors = {}
    for row in hold_against(data):
        errors.setdefault(row.point.series, []).append(abs(row.error))
    assert data.made["priority"] == "ordinary"
    assert {kind for kind, found in errors.items() if statistics.median(found) > 0.10} == {"send-train"}


def test_workers_that_fall_out_of_step_are_told_by_the_median_of_several_seeds():
    data = recorded("tenth")
    point = next(one for one in data.select("server/asynchronous", ranks=2))
    tables = scenario(point, {}, compute_of(data))
    times = [run(make_scenario({**tables, "run": {"seed": seed}}), record=False).time for seed in range(DRAWS)]
    assert len(set(times)) > DRAWS // 2
    updates = point.at["ranks"] * point.at["steps"]
    assert predict(point, {}, compute_of(data)).value == pytest.approx(updates / statistics.median(times))
