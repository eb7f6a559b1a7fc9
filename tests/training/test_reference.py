"""Spares, shrinking, detection and asynchronous writes against a process that takes one second at a time.

A second implementation with nothing in common but the rules: no stretches, no queue of events, a clock that ticks. All
times are whole seconds, so that both are exact.
"""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simperf.engine.simulation import Simulation
from simperf.training.failures.causes import at_times
from simperf.training.failures.checkpoint import Checkpoint
from simperf.training.failures.goodput import run_job
from simperf.training.failures.recovery import FailingRun, Recovery
from simperf.training.jitter import Constant


def ticking(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one loop, which shares nothing with what it checks
    nodes, work, interval, pause, write, timeout, restart, spares, warm, shrink, reassign, repair, trace
):
    """Wall time and useful work of the job, second by second."""
    state = {node: "active" if node < nodes else "ready" for node in range(nodes + spares)}
    back, strikes, queue = {}, dict(trace), list(range(nodes, nodes + spares))
    done = saved = 0.0
    usable = []  # (when, progress) of checkpoints that are being written
    phase, left, since = "train", max(interval, write), 0
    for now in range(10_000):
        for node, time in sorted(back.items()):
            if time == now:
                state[node] = "ready"
                queue = [other for other in queue if other != node] + [node]
                del back[node]
        for entry in [entry for entry in usable if entry[0] <= now]:
            saved = entry[1]
            usable.remove(entry)
        if done >= work - 1e-9 and phase == "train":
            return now
        for first in (True, False):  # what ends now has ended when a failure strikes now
            while True:  # phases that are over, and those that take no time
                active = sum(what == "active" for what in state.values())
                missing = nodes - active
                ready = [node for node in queue if state[node] == "ready"]
                if phase == "detect" and left == 0:
                    phase = "replace"
                elif phase == "replace":
                    if missing and ready:
                        for node in ready[:missing]:
                            state[node] = "active"
                        phase, left = "warm", warm
                    elif missing and shrink and active >= 1:
                        phase, left = "spread", reassign
                    elif missing:
                        break
                    else:
                        phase, left = "restart", restart
                elif phase == "warm" and left == 0:
                    phase = "replace"
                elif phase == "spread" and left == 0:
                    phase, left = "restart", restart
                elif phase in ("restart", "join") and left == 0:
                    phase, left = "train", max(interval, write)
                elif phase == "train" and left == 0:
                    phase, left, since = "pause", pause, done
                    if pause == 0:
                        continue
                elif phase == "pause" and left == 0:
                    usable.append((now + write, since))
                    if write == 0:
                        saved, usable = since, []
                    phase, left = "train", max(interval, write)
                    if missing and ready:
                        for node in ready[:missing]:
                            state[node] = "active"
                        phase, left = "join", reassign
                else:
                    break
            if not first:
                break
            if done >= work - 1e-9 and phase == "train":
                return now
            victim = strikes.get(now)
            if victim is not None and victim in state and state[victim] != "broken":
                struck = state[victim] == "active"
                state[victim] = "broken"
                back[victim] = now + repair
                if struck:
                    done, usable = saved, []
                    phase, left = "detect", timeout
        if phase == "train":
            done += sum(what == "active" for what in state.values()) / nodes
        left -= 1
    raise AssertionError("never done")


@given(
    st.integers(1, 3),
    st.integers(5, 40),
    st.integers(0, 6),
    st.integers(0, 10),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 2),
    st.integers(0, 5),
    st.booleans(),
    st.integers(0, 5),
    st.integers(1, 120),
    st.dictionaries(st.integers(1, 300), st.integers(0, 4), max_size=8),
)
@example(2, 5, 0, 0, 0, 0, 0, 0, True, 1, 1, {1: 0, 123: 0})  # the work ends when a node would come back
@settings(max_examples=300, deadline=None)
def test_events_give_the_times_of_a_clock_that_ticks(  # noqa: PLR0913, PLR0917 - hypothesis draws each by name
    nodes, interval, pause, write, timeout, restart, spares, warm, shrink, reassign, repair, trace
):
    # work that ends on a whole second on any number of nodes
    work, spares = 60.0 * nodes, min(spares, nodes)
    copy = {"asynchronous": True, "nbytes": float(write), "bandwidth": 1.0} if write else {}
    checkpoint = Checkpoint(float(interval), latency=float(pause), load_bandwidth=1e30, **copy)
    recovery = Recovery(
        timeout=float(timeout),
        restart=float(restart),
        spares=spares,
        spare_time=float(warm),
        without_spare="shrink" if shrink else "wait",
        reassign=float(reassign),
        repair=Constant(float(repair)),
    )
    known = [(float(time), node) for time, node in sorted(trace.items()) if node < nodes + spares]
    expected = ticking(
        nodes, work, interval, pause, write, timeout, restart, spares, warm, shrink, reassign, repair, trace
    )
    run = run_job(FailingRun(nodes, checkpoint, (), recovery, work=work), Simulation().random, trace=at_times(known))
    assert math.ceil(run.wall - 1e-6) == expected
    assert math.fsum(run.parts.values()) == pytest.approx(run.wall, rel=1e-9)
