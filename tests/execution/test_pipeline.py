"""A pipeline of stages by send and receive, against a small simulator of its own."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf import Kernel, isend, launch, recv, run_ranks, send
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from tests.execution.test_communication import play, star, wire

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ranks-that-communicate.md"


def gpipe_of_the_page():
    (code,) = re.findall(r"^:caption: gpipe.py\n\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    space = {}
    exec(code, space)
    return space["gpipe"]


def gpipe(stages, micro_batches, forward, backward):
    """What each stage does, one after the other: computes for a time, sends to another stage, receives from one."""
    programs = []
    for rank in range(stages):
        before, after = rank - 1, rank + 1
        steps = []
        for _ in range(micro_batches):
            steps += [("receive", before)] if rank else []
            steps.append(("compute", forward[rank]))
            steps += [("send", after)] if after < stages else []
        for _ in range(micro_batches):
            steps += [("receive", after)] if after < stages else []
            steps.append(("compute", backward[rank]))
            steps += [("send", before)] if rank else []
        programs.append(steps)
    return programs


def simulate(programs, message):
    """When each stage is done: a message begins when both sides have come, and holds both until its end."""
    clocks, at = [0.0] * len(programs), [0] * len(programs)
    while any(at[rank] < len(steps) for rank, steps in enumerate(programs)):
        moved = False
        for rank, steps in enumerate(programs):
            if at[rank] == len(steps):
                continue
            kind, what = steps[at[rank]]
            if kind == "compute":
                clocks[rank] += what
                at[rank] += 1
                moved = True
            elif kind == "send" and at[what] < len(programs[what]) and programs[what][at[what]] == ("receive", rank):
                clocks[rank] = clocks[what] = max(clocks[rank], clocks[what]) + message
                at[rank] += 1
                at[what] += 1
                moved = True
        assert moved, "a deadlock"
    return clocks


times = st.sampled_from([0.0, 1e-4, 1e-3, 2.5e-3])


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(), stages=st.integers(1, 5), micro_batches=st.integers(1, 6), nbytes=st.sampled_from([0.0, 1e6, 16e6])
)
def test_gpipe_is_its_own_simulator(data, stages, micro_batches, nbytes):
    forward, backward = (data.draw(st.lists(times, min_size=stages, max_size=stages)) for _ in range(2))
    programs, ends = gpipe(stages, micro_batches, forward, backward), {}

    def stage(m, rank):
        gpu = m.gpu(rank)
        for kind, what in programs[rank]:
            if kind == "compute":
                yield launch(Kernel("stage", what), gpu)
            else:
                yield send(nbytes, to=what) if kind == "send" else recv(nbytes, source=what)

        def note():
            ends[rank] = m.now

        gpu.stream().drained().callbacks.append(lambda event: note())

    m = play(star(stages), stage)
    expected = simulate(programs, wire(nbytes))
    assert [ends[rank] for rank in range(stages)] == pytest.approx(expected, rel=1e-12, abs=1e-18)
    assert m.now == pytest.approx(max(expected), rel=1e-12, abs=1e-18)


def test_the_page_shows_that_pipeline():
    session = Session(Simulation(star(3)))
    program = gpipe_of_the_page()
    session.play(program(session, stages=3, micro_batches=4, forward=2e-3, backward=4e-3, activations=16e6))
    latency = session.machine.route("gpu0", "gpu1").latency
    alone = max(simulate(gpipe(3, 4, [2e-3] * 3, [4e-3] * 3), latency + 16e6 / 10e9))
    assert session.now >= alone, "NCCL adds latencies of its own"
    assert session.now == pytest.approx(alone, rel=0.05)
    ideal = (4 + 3 - 1) * 6e-3
    assert session.now > ideal
    assert session.metrics["bubble"][0] > 2 / 6


@settings(max_examples=30, deadline=None)
@given(stages=st.integers(2, 4), count=st.integers(1, 6), work=times, nbytes=st.sampled_from([1e6, 16e6, 40e6]))
def test_sends_that_nobody_waits_for_travel_beside_the_next_micro_batch(stages, count, work, nbytes):
    """With isend on a stream of its own the device computes on while its activations travel."""

    def program(m, rank):
        gpu = m.gpu(rank)
        for _ in range(count):
            if rank:
                yield recv(nbytes, source=rank - 1)
            yield launch(Kernel("stage", work), gpu)
            if rank < stages - 1:
                yield isend(nbytes, to=rank + 1, stream="send")

    ends = [[0.0] * (count + 1) for _ in range(stages)]  # of each stage's micro-batches
    sent = [[0.0] * (count + 1) for _ in range(stages)]
    for turn in range(1, count + 1):
        for rank in range(stages):
            begin = ends[rank][turn - 1]
            if rank:  # sent when it is there, after the one before it, to a stage that has done the one before it
                begin = max(ends[rank - 1][turn], sent[rank - 1][turn - 1], begin) + wire(nbytes)
                sent[rank - 1][turn] = begin
            ends[rank][turn] = begin + work
    assert play(star(stages), program).now == pytest.approx(ends[-1][-1], rel=1e-12)


def test_a_rank_gives_back_nothing_and_a_program_of_no_ranks_takes_no_time():
    session = Session(Simulation(star(2)))

    def nothing(rank):
        return
        yield

    def main():
        yield from run_ranks(session, nothing)

    assert session.play(main()) == 0.0
