"""Closed layers: played once and used again, they give what playing every kernel gives."""

from itertools import pairwise

import numpy as np
import pytest

from simperf import Layout, ModelParallel, Transformer, train
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.stage import never_closed
from tests.training.pipelined.small import clipped, played, work


def both(machine="dgx-a100-x4", *, of, **options):
    """With closed layers, and kernel by kernel."""
    return [played(machine, of(), reuse=reuse, **options) for reuse in (True, False)]


def same(one, other):
    assert one[0].now == pytest.approx(other[0].now, rel=1e-9)
    for mine, others in zip(one[1], other[1], strict=True):
        for reading, every in zip(mine.spent.readings, others.spent.readings, strict=True):
            assert (reading.time, reading.kernels, reading.waiting, reading.slowed) == pytest.approx(
                (every.time, every.kernels, every.waiting, every.slowed), rel=1e-9, abs=1e-12
            )
            assert reading.exposed == pytest.approx(every.exposed, rel=1e-9, abs=1e-12)
            assert reading.moving == pytest.approx(every.moving, rel=1e-9, abs=1e-12)
    moved, all_moved = (each[0].simulation.network.moved for each in (one, other))
    for name, nbytes in all_moved.items():
        if ":" not in name:
            assert moved[name] == pytest.approx(nbytes, rel=1e-9, abs=1.0), name


def closed(processes):
    return [one.close is not never_closed for one in processes]


@pytest.mark.parametrize("launch", [0.0, 20e-6], ids=["no host", "host"])
@pytest.mark.parametrize("overlaps", [False, True], ids=["waits", "overlaps"])
@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb-h1"])
def test_closed_layers_give_what_every_kernel_gives(launch, overlaps, schedule):
    def of():
        return work(2, 6, schedule, blocks=3, end=clipped(), overlaps=overlaps)

    pacing = Pacing(gradients=True, weights=True, sharded=True)
    one, other = both(of=of, tp=8, pp=2, dp=2, pacing=pacing, launch=launch, steps=3)
    assert closed(one[1]) == [True, True]
    assert closed(other[1]) == [False, False]
    same(one, other)


def test_a_full_queue_changes_nothing():
    def of():
        return work(2, 16, blocks=8, nbytes=1e6, end=clipped())

    one, other = both(of=of, tp=8, pp=2, launch=20e-6, depth=256)
    assert closed(one[1]) == [True, True]
    same(one, other)


def test_layers_that_fill_a_short_queue_are_open():
    def of():
        return work(2, 4, blocks=6, nbytes=1e6, end=clipped())

    for depth, whether in ((16, False), (64, True)):
        one, other = both(of=of, tp=8, pp=2, launch=20e-6, depth=depth)
        assert closed(one[1]) == [whether, whether]
        same(one, other)


def test_layers_are_open_where_something_shares_their_links_or_their_launches_take_longer():
    def of():
        return work(2, 4)

    assert closed(both(of=of, tp=4, pp=2)[0][1]) == [False, False]  # messages between stages go over NVLink, too
    assert closed(both(of=of, tp=8, pp=2, launch=1e-3)[0][1]) == [False, False]
    assert closed(both(of=of, pp=2)[0][1]) == [True, True]


def test_a_timeline_has_every_kernel_of_closed_layers():
    model = Transformer(layers=4, hidden=4096, heads=32, vocabulary=32000, sequence=2048, norm="layer")

    def run(**more):
        return train(
            model,
            on="dgx-a100-x4",
            layout=Layout(tp=8, pp=2),
            strategy=ModelParallel(),
            precision="bf16-master",
            batch=4,
            set={"program.steps": 2, **more},
        )

    one, every = run(), run(**{"program.exact": "yes"})
    names = [
        sorted((span.name, round(span.end - span.start, 9)) for span in each.spans if span.track == "n0/gpu0/stream0")
        for each in (one, every)
    ]
    kernels = [[name for name in each if not name[0].startswith("wait")] for each in names]
    assert kernels[0] == kernels[1]
    streams = [sorted(span for span in each.spans if span.track == "n0/gpu0/tensor") for each in (one, every)]
    moving = [[(span.start, span.end) for span in each if span.category == "communication"] for each in streams]
    assert np.array(moving[0]) == pytest.approx(np.array(moving[1]), rel=1e-9)
    in_order = sorted(streams[0], key=lambda span: (span.start, span.end))
    for before, behind in pairwise(in_order):  # a stream does one thing at a time
        assert behind.start >= before.end * (1 - 1e-12)
    assert one.metrics["time per step"].value == pytest.approx(every.metrics["time per step"].value, rel=1e-9)


@pytest.mark.parametrize("tp", [2, 4])
@pytest.mark.parametrize("pacing", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_layers_are_closed_as_long_as_gradients_and_weights_over_their_links_do_not_travel(tp, pacing):
    gradients, weights = pacing
    flags = Pacing(gradients=gradients, weights=weights, sharded=True)

    def of():
        return work(2, 5, blocks=3, end=clipped())

    one, other = both(of=of, tp=tp, pp=2, dp=16 // tp, pacing=flags, launch=20e-6, steps=3)
    assert all(closed(one[1]))
    assert all(process.in_turn for process in one[1])
    assert not any(closed(other[1]))
    same(one, other)
