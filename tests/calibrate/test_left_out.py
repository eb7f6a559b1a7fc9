"""What the profile of all other sessions, and their readings alone, say of a session: on a machine that is known."""

import numpy as np
import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure.conditions import amounts
from simperf.cost.processor import processor_time
from simperf.workload.kinds import unary
from tests.calibrate.left_out import OPERATIONS, left_out, lines

pytest.importorskip("scipy")

CONSTANTS = {"overhead": 2e-6, "fork": 4e-6, "serial": 8e10, "cached": 1.4e11, "memory": 6e10, "capacity": 4e7}
SIZES = [round(2e3 * 1.35**i) for i in range(30)]


def session(seed, *, point=0.0, pace=1.0):
    """Readings of relu: `point` is the deviation that each point has in this session, `pace` what all share."""
    rng = np.random.default_rng(seed)
    points = []
    for op in (unary("relu", size) for size in SIZES):
        time = processor_time(op, CONSTANTS) * pace * np.exp(point * rng.standard_normal())
        at = {**amounts(op), "device": "cpu", "cache": "warm"}
        points.append(Measurement("op/elementwise", at, tuple(time * np.exp(0.01 * rng.standard_normal(9)))))
    return Dataset("a machine", {"cpu": "a processor"}, measurements=tuple(points))


def test_a_model_tells_more_of_another_session_than_readings_if_it_averages_over_their_disturbances():
    tables = left_out([session(seed, point=0.1) for seed in range(4)])
    assert len(tables) == 4
    rows = [table[OPERATIONS] for table in tables]
    assert all(row.points == len(SIZES) for row in rows)
    model, readings = (np.mean([getattr(row, key) for row in rows]) for key in ("every", "readings"))
    assert 0.06 < model < readings


def test_what_a_session_has_as_a_whole_no_other_tells():
    tables = left_out([session(0), session(1), session(2, pace=1.3)])
    quiet, loud = tables[0][OPERATIONS], tables[2][OPERATIONS]
    assert loud.readings == pytest.approx(1.0 - 1.0 / 1.3, abs=0.02)
    assert loud.every == pytest.approx(loud.readings, abs=0.03)
    assert quiet.every < 0.05
    assert not np.isnan(quiet.held_out)


def test_the_table_names_every_series_and_session():
    text = "\n".join(lines(left_out([session(0), session(1)])))
    assert text.startswith("| | points |")
    assert "| op/elementwise | 30 |" in text
    assert "session 2, all operations" in text
