"""Kernels beside collectives: these hold multiprocessors and memory bandwidth of the device."""

import pytest

from simperf.training.pipelined import groups
from simperf.training.pipelined.communicators import Payload
from simperf.training.pipelined.pacing import Pacing
from tests.training.pipelined.small import clipped, played, sharded, work

OVERLAPPING = Pacing(gradients=True, weights=True, sharded=True)


def several(**more):
    """Two stages, whose gradients and weights travel beside their layers."""
    return work(2, 4, blocks=6, weights=60_000_000, end=clipped(), **more)


def run(of, monkeypatch=None, *, dp=2, **options):
    if monkeypatch is not None:
        monkeypatch.setattr(groups.ClassGroup, "footprint", lambda *given: {})
    return played("dgx-a100-x4", of, dp=dp, pacing=options.pop("pacing", OVERLAPPING), steps=3, **options)


def test_without_multiprocessors_held_kernels_take_as_long_as_alone(monkeypatch):
    options = {"tp": 8, "pp": 2}
    one, slowed = run(several(), **options)
    other, free = run(several(), monkeypatch, **options)
    assert one.now > other.now
    assert all(each.spent.readings[-1].slowed > 0.0 for each in slowed)
    assert all(each.spent.readings[-1].slowed == 0.0 for each in free)
    least = free[0].spent.readings[-1].kernels
    assert slowed[0].spent.readings[-1].kernels == pytest.approx(least, rel=1e-12), "what they take alone"


def test_without_overlap_nothing_is_slowed(monkeypatch):
    pacing = Pacing(sharded=True)
    one, slowed = run(several(), tp=8, pp=2, pacing=pacing)
    other, _ = run(several(), monkeypatch, tp=8, pp=2, pacing=pacing)
    assert one.now == other.now
    assert all(each.spent.readings[-1].slowed == 0.0 for each in slowed)


def test_kernels_lose_what_the_collectives_hold_of_the_device_while_they_run():
    """One stage without messages: a collective that holds a part b slows kernels to 1 - b, for as long as it runs."""
    _, (one, *_) = run(several(), tp=8, pp=2)
    part = one.device.part
    group = one.groups["dp"]
    (bucket, *_) = one.buckets
    held = group.footprint(Payload("reduce-scatter", bucket.weights * 4.0), one.device)["compute"]
    assert held == pytest.approx(group.placed("reduce-scatter", bucket.weights * 4.0).blocks / part.sms)
    last = one.spent.readings[-1]
    assert 0.0 < last.slowed < held / (1.0 - held) * last.kernels
    assert last.slowed <= held * last.moving["dp"] * (1 + 1e-9)


@pytest.mark.parametrize("fully", [False, True], ids=["zero-1", "zero-3"])
@pytest.mark.parametrize(("tp", "pp", "dp"), [(8, 2, 2), (4, 2, 4), (2, 1, 8), (1, 2, 8)])
def test_classes_and_closed_layers_give_what_every_kernel_on_every_rank_gives(tp, pp, dp, fully):
    def of():
        made = work(pp, 2, blocks=2, weights=60_000_000, end=clipped())
        return sharded(made) if fully else made

    runs = [
        run(of(), tp=tp, pp=pp, dp=dp, launch=5e-6, exact=exact, reuse=reuse)
        for exact, reuse in ((False, True), (False, False), (True, False))
    ]
    (one, few), (two, each), (three, every) = runs
    assert one.now == pytest.approx(two.now, rel=1e-9)
    assert one.now == pytest.approx(three.now, rel=1e-9)
    all_of = {process.rank: process.spent.readings for process in every}
    for mine, other in zip(few, each, strict=True):
        for reading, second, third in zip(mine.spent.readings, other.spent.readings, all_of[mine.rank], strict=True):
            assert reading.slowed == pytest.approx(second.slowed, rel=1e-9, abs=1e-12)
            assert reading.slowed == pytest.approx(third.slowed, rel=1e-9, abs=1e-12)
    assert few[0].spent.readings[-1].slowed > 0.0
