"""Jobs among failures: exact histories by hand, and an independent process with real interrupts."""

import math

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError
from simperf.training.failures.causes import Cause, at_times
from simperf.training.failures.checkpoint import Checkpoint
from simperf.training.failures.goodput import goodput, run_job
from simperf.training.failures.job_events import PARTS
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Constant, Exponential, Weibull


def play(job, *trace, cause=None):
    return run_job(job, Simulation().random, trace=at_times(trace, cause))


def spent(run):
    return {part: time for part, time in run.parts.items() if time}


SYNC = Checkpoint(100.0, nbytes=10.0, bandwidth=1.0)


def test_without_failures_only_checkpoints_cost():
    run = play(FailingRun(4, SYNC, work=1000.0))
    assert run.wall == 1090.0, "no checkpoint after the last step"
    assert spent(run) == {"useful": 1000.0, "checkpoint": 90.0}
    assert run.checkpoints == 9


def test_one_failure_at_a_known_time():
    """Checkpoints end at 110 and 220; at 250 the node dies, silent for 27 s since its heartbeat at 240."""
    recovery = Recovery(heartbeat=20.0, timeout=30.0, restart=5.0, spares=1, spare_time=3.0)
    run = play(FailingRun(2, SYNC, recovery=recovery, work=400.0), (250.0, 0))
    assert spent(run) == {
        "useful": 400.0,
        "checkpoint": 30.0,
        "redone": 30.0,
        "detection": 20.0,
        "restart": 3.0 + 5.0 + 10.0,
    }
    assert run.wall == 498.0
    assert run.goodput == 400.0 / 498.0
    assert run.interruptions == {"given": 1}


def test_a_failure_during_a_checkpoint_loses_the_checkpoint():
    run = play(FailingRun(1, SYNC, work=200.0), (105.0, -1))
    assert spent(run) == {"useful": 200.0, "checkpoint": 5.0 + 10.0, "redone": 100.0, "restart": 10.0}


def test_a_checkpoint_that_ends_as_the_failure_comes_counts():
    assert spent(play(FailingRun(1, SYNC, work=200.0), (110.0, -1))) == {
        "useful": 200.0,
        "checkpoint": 10.0,
        "restart": 10.0,
    }


def test_an_asynchronous_checkpoint_stops_for_the_copy_and_counts_when_written():
    checkpoint = Checkpoint(100.0, nbytes=60.0, bandwidth=1.0, asynchronous=True, host_bandwidth=30.0, latency=1.0)
    job = FailingRun(2, checkpoint, work=300.0)  # pause 1 + 60 / (2 * 30), written 60 s later
    assert spent(play(job)) == {"useful": 300.0, "checkpoint": 4.0}
    early = play(job, (161.0, -1))
    assert early.parts["redone"] == 100.0 + 59.0, "the write would have ended at 162"
    late = play(job, (163.0, -1))
    assert late.parts["redone"] == 61.0
    assert late.parts["restart"] == 60.0


def test_writes_do_not_overtake_each_other():
    slow = Checkpoint(10.0, nbytes=60.0, bandwidth=1.0, asynchronous=True, host_bandwidth=60.0)
    assert slow.spacing(1) == 60.0
    assert play(FailingRun(1, slow, work=120.0)).checkpoints == 1


def test_a_store_of_its_own_for_each_node():
    assert Checkpoint(1.0, nbytes=80.0, bandwidth=2.0, per_node=True).pause(4) == 10.0
    assert Checkpoint(1.0, nbytes=80.0, bandwidth=2.0).pause(4) == 40.0


def test_spares_run_out_and_the_job_waits_for_repair():
    """Node 0 dies at 50 and comes back at 550; node 1 dies at 100, when no spare is left."""
    recovery = Recovery(spares=1, restart=1.0, repair=Constant(500.0))
    run = play(FailingRun(2, Checkpoint(1000.0), recovery=recovery, work=1000.0), (50.0, 0), (100.0, 1))
    assert spent(run) == {"useful": 1000.0, "redone": 50.0 + 49.0, "restart": 2.0, "repair": 450.0}
    warm = Recovery(spares=1, spare_time=7.0, restart=1.0, repair=Constant(500.0))
    slower = play(FailingRun(2, Checkpoint(1000.0), recovery=warm, work=1000.0), (50.0, 0), (100.0, 1))
    assert slower.parts["restart"] == 2 * (7.0 + 1.0)


def test_the_job_shrinks_and_grows_again_at_a_checkpoint():
    """At 50 one of four goes; three train from 52 to 152, when the node of 140 is there again."""
    recovery = Recovery(without_spare="shrink", reassign=2.0, repair=Constant(90.0))
    run = play(FailingRun(4, Checkpoint(100.0), recovery=recovery, work=200.0), (50.0, 2))
    assert spent(run) == {"useful": 200.0, "fewer nodes": 25.0, "redone": 50.0, "reassignment": 2.0 + 2.0}
    assert run.wall == 50.0 + 2.0 + 100.0 + 2.0 + 125.0


def test_a_job_does_not_shrink_below_its_least():
    recovery = Recovery(without_spare="shrink", least=2, repair=Constant(90.0))
    run = play(FailingRun(2, Checkpoint(100.0), recovery=recovery, work=200.0), (50.0, 1))
    assert spent(run) == {"useful": 200.0, "redone": 50.0, "repair": 90.0}


def test_a_failure_while_the_job_comes_back_begins_the_recovery_anew():
    run = play(FailingRun(1, SYNC, recovery=Recovery(timeout=30.0, restart=40.0), work=200.0), (50.0, -1), (100.0, -1))
    assert spent(run) == {
        "useful": 200.0,
        "checkpoint": 10.0,
        "redone": 50.0,
        "detection": 60.0,
        "restart": 20.0 + 50.0,
    }


def test_spares_die_too_and_nodes_under_repair_die_unnoticed():
    recovery = Recovery(spares=1, repair=Constant(500.0))
    run = play(FailingRun(1, Checkpoint(100.0), recovery=recovery, work=100.0), (10.0, 1), (20.0, 1), (30.0, 0))
    assert spent(run) == {"useful": 100.0, "redone": 30.0, "repair": 480.0}
    assert run.interruptions == {"given": 1}


def test_planned_maintenance_loses_nothing_but_the_restart():
    cause = Cause("maintenance", Constant(1.0), "cluster", loses_node=False, planned=True)
    recovery = Recovery(timeout=60.0, restart=5.0)
    run = play(FailingRun(1, SYNC, recovery=recovery, work=200.0), (50.0, -1), (52.0, -1), (64.0, -1), cause=cause)
    assert spent(run) == {"useful": 200.0, "checkpoint": 10.0 + 10.0, "restart": 15.0}, "down: not notified"


def test_an_observation_ends_when_its_time_is_up():
    run = play(FailingRun(1, SYNC, recovery=Recovery(timeout=100.0), horizon=300.0), (250.0, -1))
    assert run.wall == 300.0
    assert spent(run) == {"useful": 200.0, "checkpoint": 20.0, "redone": 30.0, "detection": 50.0}


# An independent reference ---------------------------------------------------------------


def reference(work, interval, pause, restart, times):
    """One process that trains, interrupted by another that kills it; synchronous checkpoints, no nodes."""
    env, book = simpy.Environment(), {"saved": 0.0}

    def train():
        while True:
            try:
                if book.get("failed"):
                    yield env.timeout(restart + pause)
                    book["failed"] = False
                done = book["saved"]
                while work - done > interval * (1 + 1e-9):  # no checkpoint before a rest that is rounding
                    yield env.timeout(interval)
                    yield env.timeout(pause)
                    done += interval
                    book["saved"] = done
                yield env.timeout(work - done)
                return
            except simpy.Interrupt:
                book["failed"] = True

    job = env.process(train())

    def kill():
        for time in times:
            yield env.timeout(time - env.now)
            if job.is_alive:
                job.interrupt()

    env.process(kill())
    env.run(job)
    return env.now


def apart(numbers):
    """Failures at odd times, so that none strikes at the very end of a checkpoint, where both are right."""
    return [time + math.sqrt(2) * 1e-3 * index**2 for index, time in enumerate(sorted(numbers), start=1)]


times = st.lists(st.floats(0.01, 500.0), max_size=12, unique=True).map(apart)


@given(times, st.floats(5.0, 90.0), st.floats(0.5, 20.0), st.floats(0.0, 30.0))
@settings(max_examples=150, deadline=None)
def test_jumping_from_event_to_event_gives_the_times_of_a_process(failures, interval, pause, restart):
    job = FailingRun(
        1, Checkpoint(interval, nbytes=pause, bandwidth=1.0), recovery=Recovery(restart=restart), work=300.0
    )
    run = play(job, *((time, -1) for time in failures))
    assert run.wall == pytest.approx(reference(300.0, interval, pause, restart, failures), rel=1e-9)


recoveries = st.builds(
    Recovery,
    heartbeat=st.floats(0.0, 5.0),
    timeout=st.floats(5.0, 20.0),
    restart=st.floats(0.0, 20.0),
    spares=st.integers(0, 3),
    spare_time=st.floats(0.0, 5.0),
    without_spare=st.sampled_from(["wait", "shrink"]),
    reassign=st.floats(0.0, 5.0),
    least=st.integers(1, 3),
    repair=st.builds(Exponential, st.floats(1.0, 2000.0)),
)
checkpoints = st.builds(
    Checkpoint,
    st.floats(5.0, 100.0),
    nbytes=st.floats(0.0, 50.0),
    bandwidth=st.floats(1.0, 10.0),
    per_node=st.booleans(),
    asynchronous=st.booleans(),
    host_bandwidth=st.floats(1.0, 100.0),
)
CAUSES = (
    Cause("gpu", Weibull(9000.0, 0.7)),
    Cause("nic", Exponential(7000.0)),
    Cause("software", Exponential(1500.0), "cluster", loses_node=False, silent=False),
    Cause("switch", Exponential(5000.0), "cluster"),
    Cause("firmware", Exponential(1800.0), "cluster", loses_node=False, planned=True),
)


@given(recoveries, checkpoints, st.integers(0, 2**31), st.booleans())
@settings(max_examples=100, deadline=None)
def test_useful_and_lost_time_add_up_to_the_wall_time(recovery, checkpoint, seed, observed):
    end = {"horizon": 3000.0} if observed else {"work": 600.0}
    job = FailingRun(4, checkpoint, CAUSES, recovery, **end)
    run = run_job(job, Simulation(seed=seed).random)
    assert tuple(run.parts) == PARTS
    assert math.fsum(run.parts.values()) == pytest.approx(run.wall, rel=1e-9)
    assert min(run.parts.values()) >= -1e-9 * run.wall
    assert run.wall == pytest.approx(3000.0, rel=1e-12) if observed else run.parts["useful"] == pytest.approx(600.0)


# Many runs ------------------------------------------------------------------------------


def test_goodput_agrees_with_the_expectation_for_failures_without_memory():
    """Daly 2006, equation 20: T/W = M e^(R/M) (e^((t + d)/M) - 1) / t; restarts that fail included."""
    mtbf, interval, pause, restart = 1000.0, 200.0, 20.0, 80.0
    cause = Cause("any", Exponential(mtbf), "cluster", loses_node=False)
    job = FailingRun(1, Checkpoint(interval, pause, 1.0), (cause,), Recovery(restart=restart - pause), horizon=2e6)
    found = goodput(job, Simulation(seed=3).random, runs=5)
    expected = interval / (mtbf * math.exp(restart / mtbf) * (math.exp((interval + pause) / mtbf) - 1))
    assert found.mean == pytest.approx(expected, rel=0.01)
    assert sum(found.parts().values()) == pytest.approx(1.0, rel=1e-9)
    assert found.quantile(0.0) <= found.mean <= found.quantile(1.0)
    assert 0 < found.deviation < 0.02


def test_the_same_seed_gives_the_same_histories():
    job = FailingRun(8, SYNC, CAUSES, Recovery(spares=1, timeout=5.0), horizon=1e4)
    first, again, other = (goodput(job, Simulation(seed=s).random, runs=3).runs for s in (5, 5, 6))
    assert first == again != other


def test_a_job_that_never_gets_ahead_is_told():
    with pytest.raises(ProgramError, match="does not get ahead"):
        play(FailingRun(1, SYNC, work=1000.0), *((10.0 * n, -1) for n in range(1, 20_000)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FailingRun(0, SYNC, work=1e3), "nodes: 1 node or more"),
        (lambda: FailingRun(1, SYNC), "either its work or the time"),
        (lambda: FailingRun(1, SYNC, work=50.0), "ends before its first checkpoint"),
        (
            lambda: FailingRun(2, SYNC, (Cause("gpu", Exponential(1.0)),), horizon=1e6),
            "2e\\+06 interruptions in the run",
        ),
        (lambda: FailingRun(2, SYNC, recovery=Recovery(spares=3), work=1e3), "more spares than the 2 nodes"),
        (lambda: FailingRun(2, SYNC, recovery=Recovery(least=3), work=1e3), "least"),
        (lambda: Recovery(heartbeat=10.0, timeout=5.0), "shorter than the time between heartbeats"),
        (lambda: Recovery(restart=-1.0, spares=-1), r"restart.*\n.*spares|spares.*\n.*restart"),
        (lambda: Recovery(without_spare="pray"), "wait or shrink"),
        (lambda: Checkpoint(0.0, nbytes=-1.0, bandwidth=0.0), r"(?s)interval.*nbytes.*bandwidth"),
        (lambda: Cause("gpu", Constant(0.0)), "causes.gpu"),
        (lambda: Cause("gpu", Constant(1.0), "rack"), "node or cluster"),
        (lambda: goodput(FailingRun(1, SYNC, work=1e3), Simulation().random, runs=0), "1 run or more"),
        (lambda: at_times([(2.0, 0), (1.0, 0)]), "times in order"),
    ],
)
def test_what_has_no_meaning_is_told(make, words):
    with pytest.raises(InputError, match=words):
        make()
