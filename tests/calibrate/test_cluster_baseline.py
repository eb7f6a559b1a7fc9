"""The model of two constants that stands beside the simulated cluster: textbook counts, by hand."""

import numpy as np
import pytest

from simperf.calibrate.cluster.accuracy import hold_against, summaries
from simperf.calibrate.cluster.baseline import TwoConstants
from simperf.calibrate.cluster.scenarios import Compute
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.report.cluster import cluster_markdown
from tests.calibrate.test_cluster_fitting import synthesise

RATE, MIB = 25e6, float(1 << 20)
SHAPE = {"rate": RATE, "burst": 32768.0, "queue": 524288.0}
TWO = TwoConstants(latency=1e-3, share=0.8)
WIRE = MIB / (0.8 * RATE)
COMPUTE = {"m": Compute(0.1, 0.2, 0.01, layers=4, width=256)}


def says(series, **at):
    return TWO.predict(Measurement(series, {**SHAPE, **at}, (1.0,)), COMPUTE)


def test_the_smallest_and_the_largest_send_tell_both():
    at = [{**SHAPE, "nbytes": size} for size in (65536.0, 4 * MIB, 0.0, MIB)]
    points = [Measurement("send", one, (1e-3 + one["nbytes"] / (0.8 * RATE),)) for one in at]
    found = TwoConstants.of(points)
    assert (found.latency, found.share) == pytest.approx((1e-3, 0.8))
    assert TwoConstants.of(points[:1]) is None
    assert TwoConstants.of(Measurement("round-trip", one, (1.0,)) for one in at) is None


@pytest.mark.parametrize(
    ("series", "ranks", "time"),
    [
        ("send", 2, 1e-3 + WIRE),
        ("round-trip", 2, 2 * (1e-3 + WIRE)),
        ("all-reduce/ring", 4, 6 * (1e-3 + WIRE / 4)),
        ("all-reduce/gloo", 4, 6 * (1e-3 + WIRE / 4)),
        ("all-reduce/binomial-tree", 8, 6 * (1e-3 + WIRE)),
        ("all-reduce/central", 3, 2 * (1e-3 + 3 * WIRE)),
        ("all-reduce/sharded", 4, 2 * (1e-3 + 0.75 * WIRE)),
    ],
)
def test_steps_are_counted_as_in_the_textbook(series, ranks, time):
    assert says(series, ranks=ranks, nbytes=MIB) == pytest.approx(time)


def test_the_slowest_link_of_a_round_counts():
    slow = {"rate_of_1": RATE / 4}
    assert says("all-reduce/ring", ranks=4, nbytes=MIB, **slow) == pytest.approx(6 * (1e-3 + WIRE))
    # the server's own link has four payloads to carry, as much as the slow one with its one
    assert says("all-reduce/central", ranks=4, nbytes=MIB, **slow) == pytest.approx(2 * (1e-3 + 4 * WIRE))


def test_training():
    model = COMPUTE["m"]
    ring = 2 * (1e-3 + model.nbytes / 2 / (0.8 * RATE))
    assert says("ddp", ranks=2, model="m", bucket=10 * MIB) == pytest.approx(0.11 + max(0.2, ring))
    once = 1e-3 + model.nbytes / (0.8 * RATE)
    assert says("server/asynchronous", ranks=1, model="m") == pytest.approx(1 / (0.3 + 2 * once))
    assert says("server/asynchronous", ranks=50, model="m") == pytest.approx(1 / once)
    both = 1e-3 + 2 * model.nbytes / (0.8 * RATE)
    assert says("server/synchronous", ranks=2, model="m") == pytest.approx(2 / (0.3 + 2 * both))
    assert says("something-else", ranks=2, nbytes=4.0) is None


def test_it_stands_beside_every_prediction_and_is_the_worse_one():
    pytest.importorskip("scipy")
    rows = hold_against(synthesise())
    assert all(row.plain is not None for row in rows)
    free = [row for row in rows if not row.fitted]
    assert np.mean([abs(row.error) for row in free]) < 0.5 * np.mean([abs(row.plain_error) for row in free])
    page = cluster_markdown(rows)
    assert "| worst | two constants |" in page
    ring = next(one for one in summaries(rows) if one.group == "ring")
    assert f"| {ring.plain:.1%} |" in page
    rows = [row for row in rows if row.point.series == "all-reduce/ring"]
    assert f"| {rows[-1].plain_error:+.1%} |" in cluster_markdown(rows).splitlines()[-1]


def test_without_sends_there_is_none():
    alone = Dataset("", measurements=(Measurement("send", {**SHAPE, "nbytes": MIB}, (0.05,)),))
    (row,) = hold_against(alone, {})
    assert row.plain is None
    assert "two constants" not in cluster_markdown([row])
