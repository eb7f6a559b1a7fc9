"""A pipeline's stages: the bubble, every kernel of a step, what is exposed and hidden, and the bytes on links."""

import pytest

from simperf.schedules import SCHEDULES
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.work import StepEnd
from simperf.workload.op import Op
from tests.training.pipelined.small import clipped, last_step, op, played, work

#: so long that messages take no time beside it [s]
LONG = 1.0


@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(2, 4, 1), (4, 4, 1), (4, 8, 1), (4, 8, 2), (2, 4, 3)])
def test_the_bubble_of_equal_stages_is_that_of_the_paper(stages, microbatches, chunks):
    more = {"schedule": "interleaved", "chunks": chunks} if chunks > 1 else {}
    of = work(stages, microbatches, time=LONG, nbytes=0.0, message=0.0, ends=False, **more)
    _, processes = played("dgx-a100-x4", of, pp=stages)
    for one in processes:
        before, after = last_step(one)
        bubble = (after.waiting - before.waiting) / (after.time - before.time)
        assert bubble == pytest.approx((stages - 1) / (microbatches * chunks + stages - 1), rel=1e-3)


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_every_schedule_does_each_kernel_of_a_step_once(schedule):
    of = work(4, 8, schedule)
    m, processes = played("dgx-a100-x4", of, pp=4)
    backward = "input_gradients" if of.plan.split else "backward"
    kinds = {"F": "forward", "B": backward, "W": "weight_gradients"}
    for one in processes:
        before, after = last_step(one)
        items = [
            item
            for each in of.plan.stages[one.stage]
            for layer in of.layers(one.stage, each.chunk)
            for item in getattr(layer, kinds[each.kind])
        ]
        expected = sum(m.kernel(item, one.device).time for item in items if isinstance(item, Op))
        assert after.kernels - before.kernels == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("pacing", [Pacing(messages=True), Pacing(synchronous=True)], ids=["ahead", "synchronous"])
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_no_schedule_waits_for_ever_whatever_its_processes_wait_for(schedule, pacing):
    _, processes = played("dgx-a100-x4", work(2, 4, schedule), pp=2, pacing=pacing)
    assert all(len(one.spent.readings) == 2 for one in processes)


def test_one_stage_on_one_rank_takes_the_time_of_its_kernels():
    _, (one,) = played("dgx-a100-x4", work(1, 3, nbytes=0.0, end=clipped()))
    assert one.spent.readings[-1].time == pytest.approx(one.spent.readings[-1].kernels, rel=1e-12)
    assert one.spent.waiting == 0.0
    assert not one.spent.exposed


def test_a_step_is_kernels_waits_and_exposed_communication():
    _, processes = played(
        "dgx-a100-x4",
        work(2, 4, end=clipped(), tied=6e6),
        tp=2,
        pp=2,
        dp=2,
        pacing=Pacing(sharded=True, gradients=True),
    )
    for one in processes:
        before, after = last_step(one)
        parts = [after.kernels - before.kernels, after.waiting - before.waiting, after.slowed - before.slowed]
        parts += [after.exposed[key] - before.exposed[key] for key in after.exposed]
        assert sum(parts) == pytest.approx(after.time - before.time, rel=1e-9)  # the host takes no time here
        for key, moving in after.moving.items():
            assert after.exposed[key] <= moving * (1 + 1e-9)


def test_gradients_that_overlap_are_hidden():
    def exposed(**pacing):
        of = work(1, 2, blocks=6, nbytes=0.0)
        return last_step(played("dgx-a100-x4", of, dp=4, pacing=Pacing(**pacing))[1][0])[1]

    beside, behind = exposed(gradients=True), exposed()
    assert beside.exposed["dp"] < behind.exposed["dp"]
    assert behind.exposed["dp"] == pytest.approx(behind.moving["dp"])
    assert beside.time < behind.time


def test_weights_that_are_gathered_beside_the_next_step_are_hidden():
    def step(**pacing):
        of = work(1, 2, blocks=6, nbytes=0.0, end=StepEnd(update=(op("adam", 1e-3),)))
        one = played("dgx-a100-x4", of, dp=4, pacing=Pacing(gradients=True, sharded=True, **pacing), steps=3)[1][0]
        before, after = last_step(one)
        return after.time - before.time

    assert step(weights=True) < step()


def test_messages_that_are_received_ahead_are_hidden():
    def step(**pacing):
        of = work(2, 8, "interleaved", message=40e6, nbytes=0.0)
        before, after = last_step(played("dgx-a100-x4", of, pp=2, pacing=Pacing(**pacing))[1][0])
        return after.time - before.time

    assert step(messages=True) < step()


def test_bytes_on_links_are_those_of_the_messages():
    of, microbatches, steps = work(2, 4, nbytes=0.0, message=5e6), 4, 2
    m, _ = played("dgx-a100-x4", of, pp=2, steps=steps)
    out = [nbytes for name, nbytes in m.simulation.network.moved.items() if name.startswith("n0/gpu0>")]
    assert sum(out) == pytest.approx(steps * microbatches * 5e6, rel=0.2)  # and what a protocol adds
    assert sum(out) >= steps * microbatches * 5e6
