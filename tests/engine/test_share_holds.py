"""What holds a part of a device leaves the rest to kernels of the kind that draws on this part."""

import pytest
import simpy

from simperf.engine.share import Share, ShareUser


def run(kind, demand=1.0, work=4.0, holds=(), users=1):
    """Ends of kernels of one kind that begin at once, beside what holds (kind, part, from, to)."""
    env = simpy.Environment()
    share, ends = Share(env, 1.0), []
    for _ in range(users):
        user = ShareUser(share, lambda event: ends.append(env.now))
        user.kind = kind
        user.begin(work, demand)

    def holder(amounts, since, until):
        yield env.timeout(since)
        share.hold(amounts, amounts)
        yield env.timeout(until - since)
        share.drop(amounts)

    for amounts, since, until in holds:
        env.process(holder(_Key(amounts), since, until))
    env.run()
    return ends, share


class _Key(dict):
    """A holder that is what it holds."""

    __hash__ = object.__hash__


def test_a_kernel_has_the_part_of_its_kind_that_is_left_and_only_meanwhile():
    """Half of the multiprocessors from 1 s to 3 s cost a kernel of 4 s that fills them 1 s."""
    holds = [({"compute": 0.5, "memory": 0.25}, 1.0, 3.0)]
    ends, share = run("compute", holds=holds)
    assert ends == [pytest.approx(5.0)]
    assert share.lost == pytest.approx(1.0)
    ends, share = run("memory", holds=holds)
    assert ends == [pytest.approx(4.5)]
    assert share.lost == pytest.approx(0.5)
    assert share.left == {}


@pytest.mark.parametrize("kind", ["compute", "memory"])
def test_a_kernel_without_anything_held_and_one_that_fits_into_the_rest_take_as_long_as_alone(kind):
    assert run(kind)[0] == [4.0]
    assert run(kind, holds=[({"compute": 0.0, "memory": 0.0}, 0.0, 9.0)])[0] == [4.0]
    ends, share = run(kind, demand=0.5, holds=[({"compute": 0.5, "memory": 0.5}, 0.0, 9.0)])
    assert ends == [4.0]
    assert share.lost == 0.0


def test_several_holders_add_up_and_leave_something():
    one, other = ({"compute": 0.25}, 0.0, 100.0), ({"compute": 0.5}, 0.0, 100.0)
    assert run("compute", holds=[one, other])[0] == [pytest.approx(16.0)]
    all_of_it = run("compute", work=1e-3, holds=[one, other, other])[0]
    assert all_of_it == [pytest.approx(1.0)]


def test_kernels_side_by_side_share_what_is_left():
    """Two kernels that want 0.5 each of 0.6 get 0.3 each: the work done is what is left, all the time."""
    ends, share = run("compute", demand=0.5, holds=[({"compute": 0.4}, 0.0, 100.0)], users=2)
    assert ends == [pytest.approx(4.0 * 0.5 / 0.3)] * 2
    assert share.work == pytest.approx(0.6 * ends[0])
