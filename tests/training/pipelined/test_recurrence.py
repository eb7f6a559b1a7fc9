"""Pipelines of unequal stages against a recurrence of its own, which knows passes, messages and nothing else.

A pass begins when the one before it on its stage is over and its message is there. A message begins when the pass that
makes it is over, the receiver has come to it, and the message before it on the same way is over. The orders of passes
are written down again from their papers, but for those with gradients of weights apart.
"""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.schedules import make_schedule
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.work import StepEnd, StepWork
from tests.training.pipelined.small import layer, played

MACHINE = "dgx-a100-x4"
#: of a message [B]: so small that messages do not slow each other on a link
SMALL = 1e3


def one_f_one_b(stages, turns, chunks):
    """Order of passes of 1F1B (one chunk) and of interleaved 1F1B, after Megatron-LM's schedules.py."""
    orders = []
    for stage in range(stages):
        total = turns * chunks
        warm = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
        warm = total if chunks > 1 and turns == stages else min(warm, total)

        def turn(index, kind):
            group, rest = divmod(index, stages * chunks)
            chunk, inside = divmod(rest, stages)
            return (kind, group * stages + inside, chunk if kind == "F" else chunks - 1 - chunk)

        def plain(index, kind):
            return (kind, index, 0)

        make = turn if chunks > 1 else plain
        order = [make(index, "F") for index in range(warm)]
        for index in range(total - warm):
            order += [make(warm + index, "F"), make(index, "B")]
        orders.append(order + [make(index, "B") for index in range(total - warm, total)])
    return orders


def ends_of(orders, path, times, message, ahead):
    """Time at which each stage is through with its passes, by the recurrence."""
    parts = {place: part for part, place in enumerate(path)}
    over, at, last = {}, [0] * len(orders), {}
    while any(at[stage] < len(order) for stage, order in enumerate(orders)):
        moved = False
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                index = at[stage]
                kind, turn, chunk = order[index]
                part = parts[stage, chunk]
                source = {"F": part - 1, "B": part + 1}.get(kind, -1)
                before = over[stage, index - 1] if index else 0.0
                ready = before
                if 0 <= source < len(path):
                    if (kind, turn, source) not in over:
                        break
                    ready = over[kind, turn, source]
                    if path[source][0] != stage:
                        asked = over.get((stage, index - 2), 0.0) if ahead else before
                        edge = (kind, part)
                        last[edge] = max(ready, asked, last.get(edge, 0.0)) + message
                        ready = last[edge]
                over[kind, turn, part] = over[stage, index] = max(before, ready) + times[part][kind]
                at[stage], moved = index + 1, True
        assert moved, "passes wait for each other"
    return [over[stage, len(order) - 1] for stage, order in enumerate(orders)]


def simulated(schedule, stages, turns, given, ahead, **options):
    """Time at which each stage is through in simperf, the plan, and times of its passes."""
    plan = make_schedule(schedule, stages=stages, microbatches=turns, **options)
    parts = tuple((layer(time=given[part], nbytes=0.0),) for part in range(len(plan.path)))
    work = StepWork(plan, parts, SMALL, (StepEnd(),) * stages, 0.0)
    m, processes = played(MACHINE, work, pp=stages, steps=1, pacing=Pacing(messages=ahead))
    device = processes[0].device

    def time(items):
        return sum(m.kernel(item, device).time for item in items)

    times = []
    for (own,) in parts:
        whole = own.input_gradients if plan.split else own.backward
        times.append({"F": time(own.forward), "B": time(whole), "W": time(own.weight_gradients)})
    ends = {one.stage: one.spent.readings[-1].time for one in processes}
    return [ends[stage] for stage in range(stages)], plan, times


@cache
def message_time():
    """Time of a message alone: two stages, one micro-batch."""
    (_, last), _, times = simulated("1f1b", 2, 1, (1e-4, 1e-4), False)
    return last - sum(one["F"] for one in times) - times[1]["B"]


@settings(max_examples=25, deadline=None)
@given(
    schedule=st.sampled_from(["1f1b", "interleaved", "gpipe", "zb-h1", "zb-v", "v-half", "v-min"]),
    stages=st.integers(2, 4),
    groups=st.integers(1, 3),
    scale=st.lists(st.floats(0.2, 5.0), min_size=8, max_size=8),
    ahead=st.booleans(),
)
def test_a_run_is_its_recurrence(schedule, stages, groups, scale, ahead):
    turns = 2 * stages * groups // (1 if schedule == "interleaved" else 2)
    options = {"chunks": 2} if schedule == "interleaved" else {}
    times = tuple(20e-6 * one for one in scale)
    ends, plan, passes = simulated(schedule, stages, turns, times, ahead, **options)
    if schedule in ("1f1b", "interleaved"):
        orders = one_f_one_b(stages, turns, options.get("chunks", 1))
    else:
        orders = [[(one.kind, one.microbatch, one.chunk) for one in order] for order in plan.stages]
    assert ends_of(orders, plan.path, passes, message_time(), ahead) == pytest.approx(ends, rel=1e-3)


def test_messages_are_a_part_of_these_steps():
    assert 2e-6 < message_time() < 50e-6
