"""A steady state is continued exactly; what is not steady is simulated, or refused."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError
from simperf.execution import compute, launch, synchronize
from simperf.execution.session import Session
from simperf.training.steady import LongRun, Steady, long_run, run_epoch


def test_an_epoch_of_equal_steps():
    run = run_epoch(itertools.repeat(0.1), 5004)
    assert (run.simulated, run.extrapolated, run.period, run.steps) == (8, 4996, 1, 5004)
    assert run.time == pytest.approx(500.4, rel=1e-12)
    assert "period of 1 step repeats" in run.reason


def test_a_transient_then_a_period_of_four():
    cycle = [0.2, 0.1, 0.1, 0.4]
    source = itertools.chain([3.0, 1.0, 0.5], itertools.cycle(cycle))
    run = run_epoch(source, 1000)
    assert run.period == 4
    assert run.simulated < 20
    every = list(itertools.islice(itertools.chain([3.0, 1.0, 0.5], itertools.cycle(cycle)), 1000))
    assert run.time == pytest.approx(math.fsum(every), rel=1e-12)


@given(
    st.lists(st.floats(0.01, 10.0), max_size=20),
    st.lists(st.floats(0.01, 10.0), min_size=1, max_size=8),
    st.integers(1, 500),
)
@settings(max_examples=100, deadline=None)
def test_the_continuation_is_the_sum_of_all_steps(transient, cycle, steps):
    """As long as the transient does not look steady itself."""
    every = list(itertools.islice(itertools.chain(transient, itertools.cycle(cycle)), steps))
    state = [("transient", i) for i in range(len(transient))]
    known = itertools.chain(state, itertools.cycle(range(len(cycle))))
    run = run_epoch(zip(every, known, strict=False), steps)
    assert run.time == pytest.approx(math.fsum(every), rel=1e-9)
    assert run.steps == steps


def test_rounding_of_the_clock_is_no_difference():
    """Steps of 0.1 s, each read off a clock as a difference."""
    clock = list(itertools.accumulate(itertools.repeat(0.1, 50), initial=1e4))
    run = run_epoch((b - a for a, b in itertools.pairwise(clock)), 40)
    assert run.period == 1
    assert run.extrapolated > 0


def test_jitter_is_simulated_to_the_end():
    times = np.random.default_rng(0).lognormal(0.0, 0.1, 300)
    run = run_epoch(times.tolist(), 300)
    assert (run.simulated, run.extrapolated, run.period) == (300, 0, 0)
    assert run.time == pytest.approx(times.sum(), rel=1e-12)
    assert "no period" in run.reason


def test_jitter_is_not_continued():
    times = np.random.default_rng(0).lognormal(0.0, 0.1, 100).tolist()
    with pytest.raises(ProgramError, match="100 of 300 step times are given and no period"):
        run_epoch(times, 300)


def test_a_difference_of_a_millionth_is_a_difference():
    times = [0.1 * (1 + 1e-6 * (i % 97)) for i in range(96)]
    with pytest.raises(ProgramError, match="no period of up to 64"):
        run_epoch(times, 1000)


def test_a_state_that_still_changes_is_not_steady():
    """Ten buffers are used up at the pace of the device; then each step waits for its data."""
    source = [(0.1, 10 - i) for i in range(10)] + [(0.5, 0)] * 90
    told = run_epoch(source, 100)
    assert told.time == pytest.approx(10 * 0.1 + 90 * 0.5)
    misled = run_epoch([time for time, _ in source], 100)
    assert misled.time == pytest.approx(100 * 0.1), "without the state it looks steady too soon"
    assert run_epoch([t for t, _ in source], 100, watch=Steady(settle=20)).time == pytest.approx(46.0)


def test_a_program_is_played_until_it_repeats_and_the_launch_queue_is_watched():
    """The frontend launches 1,024 kernels ahead at its own pace before the device's pace is the step's."""
    m, found = Session(Simulation()), []
    kernel = Kernel("k", 1.0, launch=0.01, result=0.0)

    def step(number):
        yield launch(kernel, m.gpu())

    def program():
        found.append((yield from long_run(m, step, 5000)))
        yield synchronize(m.gpu())

    m.play(program())
    (run,) = found
    assert 1024 < run.simulated < 1100
    # launches 0 to 1034 go at the frontend's pace, as the device takes ten away meanwhile; then one a kernel
    assert run.time == pytest.approx(5000.0 - 1024.0 + 0.01, rel=1e-3)


def test_a_program_that_synchronises_is_steady_at_once():
    m, found = Session(Simulation()), []

    def step(number):
        yield compute(0.1)
        yield launch(Kernel("k", 0.4, launch=0.0, result=0.0), m.gpu())
        yield synchronize(m.gpu())

    def program():
        found.append((yield from long_run(m, step, 1000, state=lambda: 0)))

    assert m.play(program()) == pytest.approx(4.0)
    assert found[0].time == pytest.approx(500.0, rel=1e-12)


def test_what_has_no_meaning():
    with pytest.raises(InputError, match="1 step or more"):
        run_epoch([1.0], 0)
    with pytest.raises(InputError, match=r"(?s)settle.*longest.*times"):
        Steady(settle=-1, longest=0, times=1)
    with pytest.raises(ProgramError, match="step 1 takes nan"):
        run_epoch([1.0, math.nan], 2)
    with pytest.raises(ProgramError, match="nothing can be said"):
        Steady().rest(3)
    assert LongRun(1.0, 2, 3, 1, "").steps == 5
