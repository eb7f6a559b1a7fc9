"""Long runs: an epoch by continuation, jobs among failures, 256 workers with jitter.

pytest tests/benchmarks/test_long_runs.py --benchmark-enable --benchmark-columns=median,ops
"""

import time
from itertools import repeat

from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.programs import PROGRAMS
from simperf.training.failures.causes import Cause
from simperf.training.failures.checkpoint import Checkpoint
from simperf.training.failures.goodput import goodput
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Exponential
from simperf.training.steady import run_epoch


def epoch(steps):
    m = Session(Simulation())
    m.play(PROGRAMS["epoch"].function(m, samples=256 * steps))
    return m.metrics["epoch time"][0]


def test_an_epoch_of_imagenet(benchmark):
    """5,004 steps of 256 images, of which eight are simulated."""
    assert benchmark(epoch, 5004) > 1751.0


def test_continuing_an_epoch_adds_under_a_tenth_of_a_second():
    """Beyond the eight steps that are simulated in any case."""

    def took(steps):
        started = time.perf_counter()
        epoch(steps)
        return time.perf_counter() - started

    took(8)
    assert min(took(5004) for _ in range(3)) - min(took(8) for _ in range(3)) < 0.1


def test_looking_for_a_period_in_20_000_steps(benchmark):
    """The longest period that is looked for, and times that never repeat until the end."""
    times = [1.0 + 1e-6 * (i % 65) for i in range(20_000)]
    assert benchmark(run_epoch, times, 20_000).period == 0


def test_a_period_is_found_at_once(benchmark):
    assert benchmark(run_epoch, repeat(0.35), 5004).extrapolated == 4996


def test_54_days_of_2048_nodes(benchmark):
    """About 470 failures and 17,000 checkpoints."""
    cause = Cause("node", Exponential(3.09 * 3600 * 2048))
    recovery = Recovery(10.0, 60.0, 600.0, spares=64)
    job = FailingRun(2048, Checkpoint(250.0, 5.67e12, 2e12), (cause,), recovery, horizon=54 * 86400.0)
    assert 0.8 < benchmark(lambda: goodput(job, Simulation(seed=1).random, runs=1).mean) < 1.0


def test_256_workers_with_jitter_for_100_steps(benchmark):
    """All wait for all: 25,600 steps."""

    def play():
        m = Session(Simulation())
        m.play(PROGRAMS["stragglers"].function(m, workers=256, steps=100, jitter="lognormal"))
        return m.now

    assert benchmark(play) > 10.0
