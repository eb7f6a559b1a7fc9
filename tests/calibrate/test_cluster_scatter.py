"""Intervals that are made of what was missed elsewhere: how many points they hold, and what widens them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from simperf.calibrate.cluster.accuracy import Row
from simperf.calibrate.cluster.scatter import Scatter, with_fitted, with_others
from simperf.calibrate.dataset import Measurement
from simperf.cli.calibrate import app
from simperf.report.cluster import cluster_markdown, cluster_text
from tests.calibrate.test_cluster_fitting import synthesise

POINTS = 400


def recording(seed, shift=0.0, scatter=lambda load: 0.005 + 0.1 * load**3):
    """Rows whose points lie off the prediction, the more the busier the cores are, and all of them by a shift."""
    rng = np.random.default_rng(seed)
    rows = []
    for index in range(POINTS):
        load, size = float(rng.uniform()), 2.0 ** rng.integers(14, 24)
        series = ("all-reduce/ring", "all-reduce/gloo", "send")[index % 3]
        off = math.exp(shift + scatter(load) * rng.standard_normal())
        at = {"rate": 25e6, "nbytes": size, "burst": 1.0, "queue": 1.0}
        rows.append(Row(Measurement(series, at, (off,)), 1.0, load, fitted=index % 10 == 0))
    return tuple(rows)


def share(rows):
    return sum(row.covered for row in rows) / len(rows)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nine_of_ten_points_of_a_recording_lie_in_what_others_make(count):
    """A share that is counted in 400 points has a standard deviation of 1.5 points itself."""
    rows = with_others(recording(9), [recording(seed) for seed in range(count)])
    assert 0.86 <= share(rows) <= 0.97
    narrow = [replace(row, interval=tuple(end**0.5 for end in row.interval)) for row in rows]
    assert share(narrow) < 0.75


def test_intervals_are_wider_where_the_cores_are_busy():
    rows = with_others(recording(9), [recording(1), recording(2)])
    idle = [row.interval[1] / row.interval[0] for row in rows if row.load < 0.2]
    busy = [row.interval[1] / row.interval[0] for row in rows if row.load > 0.9]
    assert np.median(busy) > 1.1
    assert np.median(idle) < 1.03


def test_what_recordings_do_not_share_widens_all_intervals():
    """Two recordings that lie 10 % apart say that a third may lie as far off."""
    same = with_others(recording(9), [recording(1), recording(2)])
    apart = with_others(recording(9), [recording(1, shift=0.05), recording(2, shift=-0.05)])
    for one, other in zip(same, apart, strict=True):
        if one.load < 0.5:
            assert other.interval[1] / other.interval[0] > 1.2 > one.interval[1] / one.interval[0]


def test_a_bias_that_all_others_have_is_taken_off():
    rows = with_others(recording(9, shift=0.2), [recording(1, shift=0.2), recording(2, shift=0.2)])
    assert share(rows) > 0.86


def test_nothing_is_known_of_what_was_never_seen():
    server = Row(Measurement("server/synchronous", {"rate": 1.0, "model": "x"}, (1.0,), "updates/s"), 1.0, 0.5, False)
    assert Scatter([recording(1)]).band(server) is None
    assert Scatter([]).band(server) is None
    (row,) = with_others([server], [recording(1)])
    assert row.interval is None


def test_alone_a_recording_has_its_own_fit_to_learn_from():
    rows = [replace(row, interval=(0.999, 1.001)) for row in recording(9)]
    wider = with_fitted(rows)
    assert share(rows) < 0.3
    assert share(wider) > 0.7
    for before, after in zip(rows, wider, strict=True):
        assert after.interval[0] <= before.interval[0] < before.interval[1] <= after.interval[1]
    bare = with_fitted(recording(9))
    assert all(row.interval is None for row in bare)


def test_coverage_is_told():
    class Box:
        def report(self):
            return "constants"

    rows = with_others(recording(9), [recording(1), recording(2)])
    free = [row for row in rows if not row.fitted]
    words = f"90 % intervals hold {share(free):.0%} of the {len(free)} points that were not fitted"
    assert words in " ".join(cluster_text(Box(), rows).split())
    page = cluster_markdown(rows)
    assert words in page
    assert "| worst | in 90 % interval |" in page
    assert "in 90 % interval" not in cluster_markdown(recording(9))


def test_another_recording_on_the_command_line(tmp_path):
    pytest.importorskip("lmfit")
    paths = []
    for seed in (1, 2):
        data = synthesise(noise=0.02, seed=seed)
        few = [point for point in data if not point.series.startswith(("all-reduce/", "ddp"))]
        paths.append(tmp_path / f"{seed}.json.gz")
        replace(data, measurements=tuple(few)).save(paths[-1])
    found = CliRunner().invoke(app, ["cluster", "--replay", str(paths[0]), "--beside", str(paths[1])])
    assert found.exit_code == 0, found.exception
    assert "in 90 % interval" in found.stdout
