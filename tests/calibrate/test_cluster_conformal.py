"""Intervals that are made of what was missed elsewhere: how many points they hold, and what widens them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from simperf.calibrate.cluster.accuracy import PredictedPoint
from simperf.calibrate.cluster.conformal import ErrorBands, disturbance, with_fit_residuals, with_other_recordings
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
        rows.append(PredictedPoint(Measurement(series, at, (off,)), 1.0, load, fitted=index % 10 == 0))
    return tuple(rows)


def share(rows):
    return sum(row.covered for row in rows) / len(rows)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_nine_of_ten_points_of_a_recording_lie_in_what_others_make(count):
    """A share that is counted in 400 points has a standard deviation of 1.5 points itself."""
    rows = with_other_recordings(recording(9), [recording(seed) for seed in range(count)])
    assert 0.86 <= share(rows) <= 0.97
    narrow = [replace(row, interval=tuple(end**0.5 for end in row.interval)) for row in rows]
    assert share(narrow) < 0.75


def test_intervals_are_wider_where_the_cores_are_busy():
    rows = with_other_recordings(recording(9), [recording(1), recording(2)])
    idle = [row.interval[1] / row.interval[0] for row in rows if row.load < 0.2]
    busy = [row.interval[1] / row.interval[0] for row in rows if row.load > 0.9]
    assert np.median(busy) > 1.1
    assert np.median(idle) < 1.03


def test_what_recordings_do_not_share_widens_all_intervals():
    """Two recordings that lie 10 % apart say that a third may lie as far off."""
    same = with_other_recordings(recording(9), [recording(1), recording(2)])
    apart = with_other_recordings(recording(9), [recording(1, shift=0.05), recording(2, shift=-0.05)])
    for one, other in zip(same, apart, strict=True):
        if one.load < 0.5:
            assert other.interval[1] / other.interval[0] > 1.2 > one.interval[1] / one.interval[0]


def test_a_bias_that_all_others_have_is_taken_off():
    rows = with_other_recordings(recording(9, shift=0.2), [recording(1, shift=0.2), recording(2, shift=0.2)])
    assert share(rows) > 0.86


def sends(disturbed, seed):
    """A recording's own fitted sends: each is off by its disturbance, and its readings scatter as much."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(64):
        off = math.exp(disturbed * rng.standard_normal())
        readings = tuple(off * np.exp(disturbed * rng.standard_normal(9)))
        at = {"rate": 25e6, "nbytes": 2.0**20, "burst": 1.0, "queue": 1.0}
        rows.append(PredictedPoint(Measurement("send", at, readings), 1.0, 0.1, fitted=True))
    return tuple(rows)


def disturbed_one(seed, disturbed):
    """A recording whose points are off by what disturbs it, besides what busy cores cost; its sends tell the former."""
    free = recording(seed, scatter=lambda load: math.hypot(disturbed, 0.1 * load**3))
    return (*(replace(row, fitted=False) for row in free), *sends(disturbed, seed + 100))


def test_how_disturbed_a_recording_is_its_own_sends_tell():
    """Misses and readings both have the standard deviation that was put in, so that the root of two is found."""
    assert disturbance(sends(0.02, 1)) == pytest.approx(0.02 * 2**0.5, rel=0.2)
    assert disturbance(sends(0.02, 1)[:3]) is None
    free = [replace(row, fitted=False) for row in sends(0.02, 1)]
    assert disturbance(free) is None
    small = [replace(row, point=replace(row.point, at={**row.point.at, "nbytes": 1024.0})) for row in sends(0.5, 2)]
    assert disturbance([*small, *sends(0.02, 1)]) == disturbance(sends(0.02, 1))


def test_a_disturbed_recording_gets_wider_intervals_than_those_that_they_are_made_of():
    """Idle points of it are off by 3 %, of the others by 0.5 %; those of busy cores are off by 10 % in all."""
    others = [disturbed_one(seed, 0.005) for seed in (1, 2, 3)]
    own = disturbed_one(9, 0.03)
    told = [row for row in with_other_recordings(own, others) if not row.fitted]
    unknown = with_other_recordings([row for row in own if not row.fitted], others)
    assert share(unknown) < 0.6
    assert 0.86 <= share(told) <= 0.97
    busy = [(one, other) for one, other in zip(told, unknown, strict=True) if one.load > 0.95]
    wider = [
        math.log(one.interval[1] / one.interval[0]) / math.log(other.interval[1] / other.interval[0])
        for one, other in busy
    ]
    assert len(wider) > 10
    assert max(wider) < 1.3


def test_a_quiet_recording_gets_narrower_intervals_than_disturbed_ones_have():
    others = [disturbed_one(seed, 0.03) for seed in (1, 2, 3)]
    told = [row for row in with_other_recordings(disturbed_one(9, 0.005), others) if not row.fitted and row.load < 0.3]
    plain = [ErrorBands(others).band(row) for row in told]
    half = [math.log(row.interval[1] / row.interval[0]) for row in told]
    assert np.median(half) < 0.9 * np.median([high - low for low, high in plain])
    assert share(told) > 0.86


def test_what_is_to_be_held_does_not_tell_how_wide_its_interval_is():
    own, others = disturbed_one(9, 0.03), [disturbed_one(seed, 0.005) for seed in (1, 2)]
    far = [row if row.fitted else replace(row, point=replace(row.point, samples=(7.0, 9.0, 1.0, 5.0))) for row in own]
    for one, other in zip(with_other_recordings(own, others), with_other_recordings(far, others), strict=True):
        assert one.interval == other.interval


def test_nothing_is_known_of_what_was_never_seen():
    server = PredictedPoint(
        Measurement("server/synchronous", {"rate": 1.0, "model": "x"}, (1.0,), "updates/s"), 1.0, 0.5, False
    )
    assert ErrorBands([recording(1)]).band(server) is None
    assert ErrorBands([]).band(server) is None
    (row,) = with_other_recordings([server], [recording(1)])
    assert row.interval is None


def test_alone_a_recording_has_its_own_fit_to_learn_from():
    rows = [replace(row, interval=(0.999, 1.001)) for row in recording(9)]
    wider = with_fit_residuals(rows)
    assert share(rows) < 0.3
    assert share(wider) > 0.7
    for before, after in zip(rows, wider, strict=True):
        assert after.interval[0] <= before.interval[0] < before.interval[1] <= after.interval[1]
    bare = with_fit_residuals(recording(9))
    assert all(row.interval is None for row in bare)


def test_coverage_is_told():
    class Box:
        def report(self):
            return "constants"

    rows = with_other_recordings(recording(9), [recording(1), recording(2)])
    free = [row for row in rows if not row.fitted]
    words = f"90 % intervals hold {share(free):.0%} of the {len(free)} points that were not fitted"
    assert words in " ".join(cluster_text(Box(), rows).split())
    page = cluster_markdown(rows)
    assert words in page
    assert "| worst | in 90 % interval |" in page
    assert "in 90 % interval" not in cluster_markdown(recording(9))


def test_another_recording_on_the_command_line(tmp_path):
    pytest.importorskip("scipy")
    paths = []
    for seed in (1, 2):
        data = synthesise(noise=0.02, seed=seed)
        few = [point for point in data if not point.series.startswith(("all-reduce/", "ddp"))]
        paths.append(tmp_path / f"{seed}.json.gz")
        replace(data, measurements=tuple(few)).save(paths[-1])
    found = CliRunner().invoke(app, ["cluster", "--replay", str(paths[0]), "--beside", str(paths[1])])
    assert found.exit_code == 0, found.exception
    assert "in 90 %" in found.stdout
