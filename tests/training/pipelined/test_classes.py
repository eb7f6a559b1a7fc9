"""One rank of each class is played: the times are those of all ranks, whatever shares their links."""

import random

import pytest

from simperf.training.job import SlowLink
from simperf.training.pipelined.pacing import Pacing
from tests.training.pipelined.small import clipped, last_step, played, work

MACHINES = ("dgx-a100-x4", "p4d-x2", "dgx-1v-x4", "p3-16xlarge-x8")
ORDERS = (None, ("pp", "tp", "cp", "ep", "dp"), ("dp", "tp", "cp", "ep", "pp"))


def cases():
    """Layouts, schedules and options drawn at random, the same every time."""
    draw = random.Random(17)
    for number in range(10):
        tp, pp, dp = draw.choice(
            [(2, 2, 2), (4, 2, 1), (1, 2, 4), (2, 4, 2), (4, 2, 2), (2, 2, 4), (1, 4, 2), (8, 2, 1)]
        )
        schedule = draw.choice(["1f1b", "1f1b", "gpipe", "zb-h1", "zb-v"])
        pacing = Pacing(*(draw.random() < 0.5 for _ in range(4)), sharded=dp > 1 and draw.random() < 0.7)
        order = draw.choice(ORDERS)
        machine = draw.choice(MACHINES)
        yield pytest.param(machine, tp, pp, dp, schedule, pacing, order, draw.random() < 0.3, id=f"{number}-{machine}")


@pytest.mark.parametrize(("machine", "tp", "pp", "dp", "schedule", "pacing", "order", "overlaps"), list(cases()))
def test_one_rank_of_a_class_takes_as_long_as_all_ranks(machine, tp, pp, dp, schedule, pacing, order, overlaps):
    def times(exact):
        of = work(pp, 2 * pp, schedule, tied=6e6, end=clipped(), overlaps=overlaps)
        m, processes = played(machine, of, tp=tp, pp=pp, dp=dp, exact=exact, pacing=pacing, order=order)
        return m, {one.rank: one.spent.readings for one in processes}

    (one, few), (every, all_of) = times(False), times(True)
    assert one.now == pytest.approx(every.now, rel=1e-9)
    assert len(all_of) == tp * pp * dp
    for rank, readings in few.items():
        for mine, other in zip(readings, all_of[rank], strict=True):
            assert (mine.time, mine.waiting, mine.kernels, mine.slowed) == pytest.approx(
                (other.time, other.waiting, other.kernels, other.slowed), rel=1e-9, abs=1e-12
            )
            assert mine.exposed == pytest.approx(other.exposed, rel=1e-9, abs=1e-12)
    few_bytes, all_bytes = one.simulation.network.moved, every.simulation.network.moved
    for name, nbytes in all_bytes.items():
        if nbytes > 64:  # the norm's few bytes go another way round where one rank enters for many
            assert few_bytes[name] == pytest.approx(nbytes, rel=1e-6), name


def test_ranks_that_are_joined_alike_are_one_class():
    of = work(2, 4, end=clipped())
    m, processes = played("dgx-a100-x4", of, tp=8, pp=2, dp=2, pacing=Pacing(sharded=True, gradients=True))
    assert [one.stage for one in processes] == [0, 1]
    assert [len(m.ranks[one.device.name].members) for one in processes] == [16, 16]


def test_a_straggler_splits_its_class_and_nothing_else():
    of = work(2, 4)
    speeds = (*(1.0,) * 5, 0.5, *(1.0,) * 10)
    slow, few = played("dgx-a100-x4", of, tp=4, pp=2, dp=2, speeds=speeds)
    every, all_of = played("dgx-a100-x4", of, tp=4, pp=2, dp=2, speeds=speeds, exact=True)
    assert 2 < len(few) < len(all_of) == 16
    assert slow.now == pytest.approx(every.now, rel=1e-9)
    assert slow.now > played("dgx-a100-x4", of, tp=4, pp=2, dp=2)[0].now


@pytest.mark.parametrize("link", ["n0/nic2>switch0", "n1/gpu1>n1/nvswitch0"])
def test_a_slow_link_splits_the_classes_that_it_touches(link):
    slow = SlowLink(link, share=0.2, start=1e-3, end=8e-3)
    options = {"tp": 8, "pp": 2, "dp": 2, "pacing": Pacing(gradients=True, sharded=True), "slow": slow}
    one, few = played("dgx-a100-x4", work(2, 4), **options)
    every, all_of = played("dgx-a100-x4", work(2, 4), exact=True, **options)
    assert 2 < len(few) < len(all_of) == 32
    assert one.now == pytest.approx(every.now, rel=1e-9)
    assert one.now > played("dgx-a100-x4", work(2, 4), **{**options, "slow": None})[0].now


def test_groups_that_share_a_nic_slow_each_other():
    of = work(1, 2, nbytes=0.0)
    alone = last_step(played("p3-16xlarge-x8", of, dp=2, order=("pp", "tp", "cp", "ep", "dp"))[1][0])
    assert alone[1].exposed["dp"] > 0
    across = ("tp", "dp", "cp", "ep", "pp")
    four = played("p3-16xlarge-x8", of, tp=8, dp=2, order=across)[1][0]
    one = played("p3-16xlarge-x8", of, tp=8, dp=2, order=("dp", "tp", "cp", "ep", "pp"))[1][0]
    assert last_step(four)[1].exposed["dp"] > 3 * last_step(one)[1].exposed["dp"]
