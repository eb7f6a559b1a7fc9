"""The frontend and its queue against the book's formulas and an independent recurrence."""

import itertools
import math

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import ProgramError
from simperf.execution import FREE, MODES, Frontend, compute, item, launch, synchronize
from simperf.execution.session import Session

N = 10_000


def play(times, *, mode="eager", depth=1024, recorder=None):
    """Run one kernel per (t1, t2, t3), then synchronise; returns the session and its time."""
    session = Session(Simulation(depth=depth, recorder=recorder), mode=MODES[mode])

    def program(m):
        for i, (t1, t2, t3) in enumerate(times):
            yield launch(Kernel(f"op{i}", t2, launch=t1, result=t3), m.gpu())
        if mode != "synchronous":
            yield synchronize(m.gpu())

    return session, session.play(program(session))


def recurrence(times, depth):
    """L: end of issuing, E: end on the backend; an operation is issued when the depth-th before it has ended."""
    issued, ended = 0.0, []
    for i, (t1, t2, _) in enumerate(times):
        issued += t1
        if i >= depth:
            issued = max(issued, ended[i - depth])
        ended.append(max(issued, ended[-1] if ended else 0.0) + t2)
    return max(issued, ended[-1]) + times[-1][2]


# Times that binary floats hold exactly, so that sums are exact too.
SHORT, LONG, RESULT = 2.0**-20, 2.0**-19, 2.0**-18


def test_backend_slower_t1_plus_n_t2_plus_t3():
    assert play([(SHORT, LONG, RESULT)] * N)[1] == SHORT + N * LONG + RESULT


def test_frontend_slower_n_t1_plus_t2_plus_t3():
    assert play([(LONG, SHORT, RESULT)] * N)[1] == N * LONG + SHORT + RESULT


def test_synchronous_n_times_the_sum():
    assert play([(SHORT, LONG, RESULT)] * N, mode="synchronous")[1] == N * (SHORT + LONG + RESULT)


@pytest.mark.parametrize("depth", [1, 2, 7, 1024, math.inf])
def test_the_depth_of_the_queue_does_not_change_a_steady_backend(depth):
    assert play([(SHORT, LONG, RESULT)] * 500, depth=depth)[1] == pytest.approx(SHORT + 500 * LONG + RESULT, rel=1e-12)


duration = st.floats(1e-7, 1e-4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(duration, duration, duration), min_size=1, max_size=60), st.sampled_from([1, 2, 3, 8, 1024]))
def test_any_mix_of_times_follows_the_recurrence(times, depth):
    session, time = play(times, depth=depth)
    assert time == pytest.approx(recurrence(times, depth), rel=1e-12)
    assert session.simulation.path <= time * (1 + 1e-12), "the critical path is a lower bound"
    _, synchronous = play(times, mode="synchronous", depth=depth)
    assert synchronous == pytest.approx(math.fsum(sum(t) for t in times), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(duration, duration, duration), min_size=1, max_size=30))
def test_watching_changes_nothing(times):
    recorder = Recorder()
    assert play(times, recorder=recorder)[1] == play(times)[1]
    kernels = [span for span in recorder.spans if span.track == "gpu0/stream0"]
    assert len(kernels) == len(times)
    assert all(a.end <= b.start for a, b in itertools.pairwise(kernels)), "a stream runs in order"


def test_a_full_queue_blocks_where_cuda_blocks():
    """4-5 us a launch until about 1,000 are outstanding, then the kernel's pace (async-launch-queue-1024)."""
    session, stamps = Session(Simulation()), []

    def program(m):
        kernel = Kernel("k", 190e-6, launch=4.5e-6, result=0.0)
        for _ in range(3000):
            yield launch(kernel, m.gpu())
            stamps.append(m.now)

    session.play(program(session))
    steps = [b - a for a, b in itertools.pairwise(stamps)]
    assert steps[500] == pytest.approx(4.5e-6)
    assert steps[2000] == pytest.approx(190e-6)
    blocked = next(i for i, step in enumerate(steps) if step > 1e-5)
    assert 1000 < blocked < 1100


def test_item_waits_for_its_stream_only():
    session = Session(Simulation())
    seen = {}

    def program(m):
        gpu = m.gpu()
        yield launch(Kernel("short", 10e-6, demand=0.1), gpu.stream(0))
        yield launch(Kernel("long", 1e-3, demand=0.1), gpu.stream(1))
        yield item(gpu)
        seen["item"] = m.now
        yield synchronize(gpu)
        seen["synchronize"] = m.now

    session.play(program(session))
    assert seen == pytest.approx({"item": 10e-6, "synchronize": 1e-3})


def test_sub_programs_return_values_and_errors_reach_the_program():
    session = Session(Simulation())
    log = []

    def inner(m):
        yield compute(1e-3)
        return "inner's value"

    def program(m):
        log.append((yield inner(m)))
        failing = simpy.Event(m.simulation.env)
        failing.fail(ValueError("lost"))
        try:
            yield failing
        except ValueError as error:
            log.append(str(error))
        yield compute(1e-3)

    assert session.play(program(session)) == pytest.approx(2e-3)
    assert log == ["inner's value", "lost"]


def test_what_is_no_verb_is_told():
    session = Session(Simulation())

    def program(m):
        yield 42

    with pytest.raises(ProgramError, match="yields 42, which is no verb"):
        session.play(program(session))
    with pytest.raises(ProgramError, match="a program is a generator"):
        Frontend(session.simulation, [1, 2], host=session.simulation.host(), profile=FREE)  # type: ignore[arg-type]


def test_waiting_for_ever_is_an_error_not_a_hang():
    session = Session(Simulation())

    def program(m):
        yield simpy.Event(m.simulation.env)

    with pytest.raises(ProgramError, match="never comes"):
        session.play(program(session))


def test_threads_share_the_cores_of_their_host():
    """Four threads of 1 ms on two cores take 2 ms."""
    simulation = Simulation()
    simulation.hosts["cpu0"] = type(simulation.host())(simulation.env, "cpu0", 2)
    session = Session(simulation)

    def work():
        yield compute(1e-3)

    def main(m):
        threads = [m.spawn(work(), f"t{i}") for i in range(4)]
        yield simulation.env.all_of([t.done for t in threads])

    simulation.run(Frontend(simulation, main(session), host=simulation.host("other")).done)
    assert session.now == pytest.approx(2e-3)
    assert simulation.floors()["host"] == pytest.approx(2e-3)
