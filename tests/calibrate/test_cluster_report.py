"""What is told of a boxed cluster whose machine was taken away from time to time."""

import pytest

from simperf.calibrate.cluster.accuracy import PredictedPoint, calm
from simperf.calibrate.dataset import Measurement
from simperf.report.cluster import cluster_markdown


def row(off, stolen=0.0):
    at = {"rate": 25e6, "nbytes": 2.0**20, "burst": 1.0, "queue": 1.0, "ranks": round(100 * off)}
    return PredictedPoint(Measurement("all-reduce/ring", at, (1.0,), stolen=stolen), 1.0 + off, 0.1, fitted=False)


def test_disturbed_points_are_told_with_all_others_and_left_out_of_a_second_table():
    rows = [row(0.01), row(0.03), row(1.0, stolen=0.3)]
    text = cluster_markdown(rows)
    assert "| ring | 3 | 34.7% | +34.7% | +100.0% |" in text
    assert "During 1 of 3 points the host" in text
    assert "| ring | 2 | 2.0% | +2.0% | +3.0% |" in text
    assert text.count("all-reduce/ring") == 3


@pytest.mark.parametrize("share", [0.0, 0.02, None])
def test_a_calm_machine_or_one_that_does_not_tell_has_one_table(share):
    rows = [row(0.01, share), row(0.03, share)]
    assert calm(rows) == ()
    assert "During" not in cluster_markdown(rows)
