"""Streams of failures: rates, independence of each other, order; and the nodes they meet."""

import itertools
import math

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.training.failures.causes import Cause, failures, job_rate
from simperf.training.failures.checkpoint import Checkpoint
from simperf.training.failures.fleet import Fleet
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Constant, Exponential, Weibull

GPU, SWITCH = Cause("gpu", Exponential(1000.0)), Cause("switch", Exponential(50.0), "cluster")


def first(causes, pool, n, seed=0):
    return list(itertools.islice(failures(causes, pool, Simulation(seed=seed).random), n))


def test_failures_come_in_order_at_the_rate_of_all_nodes():
    found = first((GPU, SWITCH), 100, 4000)
    times = [one.time for one in found]
    assert times == sorted(times)
    assert job_rate((GPU, SWITCH), 100) == pytest.approx(0.12)
    assert len(found) / times[-1] == pytest.approx(0.12, rel=0.05)
    share = sum(one.cause is GPU for one in found) / len(found)
    assert share == pytest.approx(0.1 / 0.12, rel=0.03)


def test_every_node_fails_as_often_as_any_other():
    counts = [0] * 10
    for one in first((GPU,), 10, 5000):
        counts[one.node] += 1
    assert min(counts) > 500 - 5 * math.sqrt(500)
    assert max(counts) < 500 + 5 * math.sqrt(500)


@pytest.mark.parametrize("law", [Exponential(1000.0), Weibull(1000.0, 1.0)])
def test_one_clock_for_all_is_as_good_as_one_for_each(law):
    """A Weibull clock of shape 1 is exponential, and is played node by node."""
    found = first((Cause("gpu", law),), 20, 4000, seed=4)
    assert len(found) / found[-1].time == pytest.approx(20 / 1000.0, rel=0.05)
    gaps = [b.time - a.time for a, b in itertools.pairwise(found)]
    assert sum(gap > 50.0 for gap in gaps) / len(gaps) == pytest.approx(math.exp(-1), rel=0.08)


def test_bunched_failures_come_early():
    early = [one for one in first((Cause("gpu", Weibull(1000.0, 0.5)),), 500, 2000) if one.time < 100.0]
    steady = [one for one in first((GPU,), 500, 2000) if one.time < 100.0]
    assert len(early) > 3 * len(steady)


def test_a_cause_that_is_left_out_does_not_move_the_others():
    both = [one for one in first((GPU, SWITCH), 10, 400) if one.cause is GPU]
    alone = first((GPU,), 10, len(both))
    assert both == alone


def test_mean_time_between_failures_of_a_job():
    planned = Cause("firmware", Constant(10.0), "cluster", planned=True)
    job = FailingRun(100, Checkpoint(1.0), (GPU, SWITCH, planned), work=10.0)
    assert job.mtbf == pytest.approx(1 / 0.12)
    assert FailingRun(1, Checkpoint(1.0), work=10.0).mtbf == math.inf


def test_a_heartbeat_that_was_just_sent_costs_the_whole_timeout():
    recovery = Recovery(heartbeat=10.0, timeout=30.0)
    assert recovery.detection(40.0) == 30.0
    assert recovery.detection(49.0) == 21.0
    assert Recovery(timeout=30.0).detection(49.0) == 30.0


def test_a_fleet_keeps_its_nodes():
    fleet = Fleet(3, 1, iter([5.0, 9.0]))
    fleet.lose(1, 10.0)
    assert (fleet.active, fleet.missing, fleet.ready, fleet.next_repair) == (2, 1, 1, 15.0)
    assert fleet.fill() == 1
    assert fleet.works(3)
    assert not fleet.works(1)
    fleet.lose(1, 11.0)  # it is in repair already
    fleet.lose(0, 12.0)
    assert fleet.fill() == 0
    fleet.advance(14.0)
    assert fleet.ready == 0
    fleet.advance(15.0)
    assert fleet.fill() == 1
    assert [fleet.pick(share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 2, 3, 3]
    assert fleet.next_repair == 21.0


def test_what_cannot_be():
    with pytest.raises(InputError, match="one node or more"):
        failures((GPU,), 0, Simulation().random)
    with pytest.raises(InputError, match="one name"):
        failures((GPU, GPU), 1, Simulation().random)
