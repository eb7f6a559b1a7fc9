"""How sure the constants of a boxed cluster are: readings drawn anew, everything fitted again."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from simperf.calibrate.cluster.accuracy import hold_against, summaries
from simperf.calibrate.cluster.conformal import with_fit_residuals
from simperf.calibrate.cluster.fitting import draws, resampled
from simperf.cli.calibrate import app
from simperf.report.cluster import cluster_text
from tests.calibrate.test_cluster_fitting import TRUTH, synthesise

pytest.importorskip("scipy")

SAMPLES = 5


@pytest.fixture(scope="module")
def data():
    return synthesise(noise=0.02)


@pytest.fixture(scope="module")
def drawn(data):
    return draws(data, SAMPLES)


def test_readings_are_drawn_from_those_of_their_own_point(data):
    anew = resampled(data, np.random.default_rng(1))
    assert [point.key for point in anew] == [point.key for point in data]
    for before, after in zip(data, anew, strict=True):
        assert len(after.samples) == len(before.samples)
        assert set(after.samples) <= set(before.samples)
    assert anew != data


def test_draws_are_repeatable_and_spread_around_what_was_put_in(data, drawn):
    assert draws(data, 2) == drawn[:2]
    assert draws(data, 1, seed=1) != drawn[:1]
    for name in ("byte_rate", "bulk_rate", "call"):
        values = [draw.stack[name] for draw in drawn]
        assert 0.0 < np.std(values) < 0.1 * np.mean(values), name
        assert np.mean(values) == pytest.approx(TRUTH[name], rel=0.06), name
    backward = [draw.compute["mlp-8x512"].backward for draw in drawn]
    assert 0.0 < np.std(backward) < 0.02 * 0.1


def test_intervals_that_know_what_the_fit_missed_hold_more(data):
    """Those of the constants alone are narrower than the readings scatter; a fit misses its own points by less."""
    chosen = [
        point for point in data if not point.series.startswith(("all-reduce/", "ddp")) or point.at.get("ranks") == 2
    ]
    rows = hold_against(replace(data, measurements=tuple(chosen)), samples=SAMPLES)
    told = [row for row in rows if not row.fitted]
    assert len(told) > 10
    for row in told:
        low, high = row.interval
        assert low < high
        assert high / low < 1.1
    wider = [row for row in with_fit_residuals(rows) if not row.fitted]
    assert sum(row.covered for row in told) < 0.3 * len(told)
    assert sum(row.covered for row in wider) >= 0.4 * len(wider)
    assert all(one.coverage is not None for one in summaries(rows))


def test_intervals_are_shown_where_there_are_any(data):
    class Box:
        def report(self):
            return "constants"

    few = replace(data, measurements=tuple(data)[:20] + tuple(p for p in data if p.series in ("add", "cpu/send-flood")))
    rows = hold_against(few, TRUTH)
    assert all(row.interval is None and not row.covered for row in rows)
    assert "90 %" not in cluster_text(Box(), rows, points=True)
    wide = [replace(row, interval=(0.5 * row.predicted, 2.0 * row.predicted)) for row in rows]
    shown = cluster_text(Box(), wide, points=True)
    assert "in 90 %" in shown
    assert "100%" in shown
    assert " to " in shown


def test_intervals_on_the_command_line(data, tmp_path):
    path = tmp_path / "cluster.json.gz"
    few = [point for point in data if not point.series.startswith(("all-reduce/", "ddp"))]
    replace(data, measurements=tuple(few)).save(path)
    found = CliRunner().invoke(app, ["cluster", "--replay", str(path), "--samples", "2"])
    assert found.exit_code == 0, found.exception
    assert "in 90 %" in found.stdout
