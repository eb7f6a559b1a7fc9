"""The earliest ends of passes in the order of a plan: closed forms of the schedules' papers, and messages."""

import pytest

from simperf.schedules import make_schedule
from simperf.study.layouts.pass_order import PassTimes, ends_of_passes
from simperf.training.pipelined.work import StepWork

FORWARD, BACKWARD = 1.0, 2.0


def ends(name, stages, microbatches, *, chunks=1, message=0.0, received=0.0, ahead=False, begun=None):
    plan = make_schedule(name, stages=stages, microbatches=microbatches, **({"chunks": chunks} if chunks > 1 else {}))
    work = StepWork(plan, ((),) * len(plan.path), 0.0, ())
    parts = [{"F": FORWARD / chunks, "B": BACKWARD / chunks, "W": 0.0}] * len(plan.path)
    messages = {edge: message for edge, _, _ in work.edges()}
    return ends_of_passes(work, PassTimes(parts, messages, received, ahead), begun or [0.0] * stages)


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_a_pipeline_has_its_bubble(name):
    """Narayanan et al., SC 2021, section 2.2.1: (p - 1) (f + b) beside m (f + b)."""
    found = ends(name, 4, 8)
    assert max(found) == found[0] == (8 + 3) * (FORWARD + BACKWARD)
    assert found[3] == 3 * FORWARD + 8 * (FORWARD + BACKWARD)


@pytest.mark.parametrize("chunks", [2, 4])
def test_chunks_divide_the_bubble(chunks):
    """Narayanan et al., SC 2021, section 2.2.2."""
    found = ends("interleaved", 4, 8, chunks=chunks)
    assert max(found) == pytest.approx((8 + 3 / chunks) * (FORWARD + BACKWARD))


def test_a_micro_batch_waits_for_each_message_and_for_what_is_done_with_it():
    found = ends("1f1b", 3, 1, message=0.5, received=0.25, begun=[4.0, 0.0, 0.0])
    there, whole = 4.0 + 3 * FORWARD + 2 * 0.75, 3 * (FORWARD + BACKWARD) + 4 * 0.75
    assert found == [4.0 + whole, there + 2 * BACKWARD + 0.75, there + BACKWARD]


def test_messages_beside_passes_hide_behind_them():
    waited, hidden = (ends("1f1b", 4, 16, message=0.5, ahead=ahead) for ahead in (False, True))
    none = ends("1f1b", 4, 16)
    assert max(none) < max(hidden) < max(waited)
    # each stage waits for both messages of each micro-batch, where none is received during a pass
    assert waited[1] - none[1] >= 16 * 2 * 0.5
