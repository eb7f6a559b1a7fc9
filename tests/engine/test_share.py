"""Tasks that share a capacity by demand, against hand-computed and brute-force times."""

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.host import Host
from simperf.engine.share import Share, ShareUser


def finish_times(capacity, jobs):
    """End of each (start, work, demand) on a share."""
    env = simpy.Environment()
    share, ends = Share(env, capacity), {}

    def job(index, start, work, demand):
        yield env.timeout(start)
        done = simpy.Event(env)
        ShareUser(share, lambda _: done.succeed()).begin(work, demand)
        yield done
        ends[index] = env.now

    for index, one in enumerate(jobs):
        env.process(job(index, *one))
    env.run()
    return [ends[i] for i in range(len(jobs))], share


def reference(capacity, jobs):
    """Brute force: at each instant the max-min grants, then straight on to the next start or end."""
    left = {i: work for i, (_, work, _) in enumerate(jobs)}
    ends, now = [0.0] * len(jobs), 0.0
    while left:
        active = [i for i in left if jobs[i][0] <= now + 1e-15]
        coming = [jobs[i][0] for i in left if jobs[i][0] > now + 1e-15]
        rates, rest = {}, capacity
        for position, i in enumerate(sorted(active, key=lambda i: jobs[i][2])):
            grant = min(jobs[i][2], rest / (len(active) - position))
            rates[i], rest = grant / jobs[i][2], rest - grant
        step = min([left[i] / rates[i] for i in active] + [c - now for c in coming])
        now += step
        for i in active:
            left[i] -= rates[i] * step
            if left[i] <= 1e-12 * jobs[i][1]:
                ends[i] = now
                del left[i]
    return ends


@pytest.mark.parametrize(
    ("demands", "expected"),
    [((1.0, 1.0), [2.0, 2.0]), ((0.5, 0.5), [1.0, 1.0]), ((0.2, 1.0), [1.0, 1.2]), ((0.6, 0.6), [1.2, 1.2])],
)
def test_two_kernels_share_the_device_by_demand(demands, expected):
    assert finish_times(1.0, [(0.0, 1.0, d) for d in demands])[0] == pytest.approx(expected)


def test_a_late_comer_slows_the_first_from_then_on():
    assert finish_times(1.0, [(0.0, 1.0, 1.0), (0.5, 1.0, 1.0)])[0] == pytest.approx([1.5, 2.0])


job = st.tuples(st.floats(0, 5), st.floats(0.01, 5), st.floats(0.05, 1.0))


@settings(max_examples=150, deadline=None)
@given(st.lists(job, min_size=1, max_size=12), st.sampled_from([1.0, 2.0, 3.5]))
def test_any_jobs_end_when_brute_force_says(jobs, capacity):
    ends, share = finish_times(capacity, jobs)
    assert ends == pytest.approx(reference(capacity, jobs), rel=1e-9, abs=1e-9)
    assert max(ends) >= share.floor() * (1 - 1e-9)
    assert share.load == 0.0
    assert not share.running


def test_host_work_stretches_when_cores_are_few():
    env = simpy.Environment()
    host = Host(env, "cpu0", 2)
    env.run(env.all_of([host.work(1.0) for _ in range(3)]))
    assert env.now == pytest.approx(1.5)


def test_what_is_reserved_slows_the_tasks_and_only_meanwhile():
    """Half of the capacity is taken away from 1 s to 3 s: a task of 4 s that fills it ends after 5 s."""
    env = simpy.Environment()
    share = Share(env, 1.0)
    ends = []
    ShareUser(share, lambda event: ends.append(env.now)).begin(4.0, 1.0)

    def holder():
        yield env.timeout(1.0)
        share.reserve(0.5)
        yield env.timeout(2.0)
        share.reserve(-0.5)

    env.process(holder())
    env.run()
    assert ends == [pytest.approx(5.0)]
    assert share.floor() == pytest.approx(4.0)


def test_a_task_that_fits_beside_what_is_reserved_does_not_notice():
    env = simpy.Environment()
    share = Share(env, 1.0)
    share.reserve(0.5)
    ends = []
    ShareUser(share, lambda event: ends.append(env.now)).begin(4.0, 0.5)
    env.run()
    assert ends == [pytest.approx(4.0)]
