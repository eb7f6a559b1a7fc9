"""The key-value store as a program uses it: push, pull, order, priorities, rules."""

import math

import pytest

from simperf.cost import CostSettings
from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError
from simperf.execution import launch, record, wait
from simperf.execution.session import Session
from simperf.training.servers.kvstore import KVStore, KVWorker
from simperf.training.servers.shard_server import ServerWork
from tests.training.strategies import store_options

FREE = ServerWork(0.0, 0.0)


def store(machine, sizes, *, servers=("cpu0",), **options):
    session = Session(Simulation(machine), cost=CostSettings(sharp=True))
    made = store_options(work=FREE, **options)
    return session, KVStore(session, sizes, gpus=machine.gpus, servers=servers, options=made)


def test_it_reads_as_the_framework_does(star):
    """Two workers push and pull three keys of 50 MB; the server's port carries six each way."""
    session, kept = store(star(2, latency="0 s"), [50e6] * 3)

    def train(kv):
        for i in range(3):
            kv.push(i)
            kv.pull(i)
        yield kv.wait()

    def main(m):
        for thread in [m.spawn(train(kv)) for kv in kept.workers]:
            yield wait(thread.done)

    assert session.play(main(session)) == pytest.approx(2 * 6 * 50e6 / 50e9, rel=1e-9)
    assert [table.version for table in kept.tables] == [1, 1, 1]


def test_a_gradient_is_pushed_when_its_kernel_is_done(star):
    session, kept = store(star(1, latency="0 s"), [50e6])
    kv, gpu = kept.workers[0], session.gpu(0)

    def train():
        yield launch(Kernel("backward", 7e-3), gpu)
        kv.push(0, (yield record(gpu)))
        yield wait(kv.pull(0))

    assert session.play(train()) == pytest.approx(7e-3 + 2e-3, rel=1e-9)


def test_pushes_of_a_key_commute(star):
    """Whoever comes last, the answer comes at the same time."""
    ends = []
    for order in ((0, 1, 2), (2, 0, 1)):
        session, kept = store(star(3), [50e6])

        def late(kv, delay, session=session):
            yield session.simulation.env.timeout(delay)
            kv.push(0)
            yield wait(kv.pull(0))

        def main(m, order=order, kept=kept, late=late):
            threads = [m.spawn(late(kept.workers[w], rank * 5e-3)) for rank, w in enumerate(order)]
            for thread in threads:
                yield wait(thread.done)

        ends.append(session.play(main(session)))
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


@pytest.mark.parametrize("priority", [False, True])
def test_the_first_layer_overtakes_what_waits(star, priority):
    """Pushed last layer first, one at a time: with priorities key 0 is second, without it is last."""
    session, kept = store(star(1, latency="0 s"), [50e6] * 8, window=1, priority=priority)
    kv = kept.workers[0]

    def train():
        for key in reversed(range(8)):
            kv.push(key)
        weight = kv.pull(0)
        yield wait(weight)
        kept.came = session.now
        yield kv.wait()

    total = session.play(train())
    assert kept.came == pytest.approx((3 if priority else 9) * 1e-3, rel=1e-9)
    assert total == pytest.approx(9e-3, rel=1e-9), "the order changes, the work does not"


def test_slices_of_a_large_key_share_the_servers_and_come_back_as_one(star):
    whole, _ = store(star(1, 4), [100e6], servers=("cpu0",))
    times = []
    for options in ({"servers": ("cpu0",)}, {"servers": tuple(f"cpu{i}" for i in range(4)), "slice_size": 25e6}):
        session, kept = store(star(2, 4, latency="0 s"), [100e6], **options)

        def train(kv):
            kv.push(0)
            yield wait(kv.pull(0))

        def main(m, kept=kept, train=train):
            for thread in [m.spawn(train(kv)) for kv in kept.workers]:
                yield wait(thread.done)

        times.append(session.play(main(session)))
    assert times == pytest.approx([2 * 2 * 100e6 / 50e9, 2 * 100e6 / 50e9], rel=1e-9)
    assert whole.now == 0.0


def test_misuse_is_named(star):
    _, kept = store(star(1), [1.0])
    kv = kept.workers[0]
    assert isinstance(kv, KVWorker)
    with pytest.raises(ProgramError, match="no key 1"):
        kv.push(1)
    with pytest.raises(ProgramError, match="before its gradient"):
        kv.pull(0)
    kv.push(0)
    with pytest.raises(ProgramError, match="twice in one step"):
        kv.push(0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"priority": True}, "needs a window"),
        ({"window": -1}, "0 or more"),
        ({"accepts": -2}, "0 or more"),
        ({"connections": -1}, "0 or more"),
        ({"copiers": -1}, "0 or more"),
        ({"take": -1.0}, "0 or more"),
    ],
)
def test_options_without_meaning(options, words):
    with pytest.raises(InputError, match=words):
        store_options(**options)


def test_nobody_to_train(star):
    session = Session(Simulation(star(1)))
    with pytest.raises(InputError, match="at least one worker"):
        KVStore(session, [1.0], gpus=(), servers=("cpu0",))


def layers(**more):
    return {"steps": 6, "layers": 8, "forward": 8e-3, "backward": 16e-3, "weights": 400e6, **more}


def test_priorities_pay_where_the_next_forward_pass_overlaps(star, with_servers):
    """The weights that the first layer needs come first; the sum of the bytes is the same."""
    plan = layers(slice_size=5e6, window=2)
    barrier = with_servers(star(4), **plan).metrics["time per step"][0]
    free = with_servers(star(4), barrier=False, **plan).metrics["time per step"][0]
    first = with_servers(star(4), barrier=False, priority=True, **plan).metrics["time per step"][0]
    assert free == pytest.approx(barrier), "first come first served brings the first layer last"
    assert first < 0.9 * free
    assert first >= max(24e-3, 4 * 400e6 / 50e9)


def test_bounded_staleness_lies_between_the_barrier_and_none(star, with_servers):
    """Bound 0 is synchronous, an infinite bound asynchronous, exactly; between them, time falls."""
    plan = {"steps": 30, "layers": 2, "forward": 10e-3, "backward": 20e-3, "weights": 1e6, "jitter": 0.5}
    together = with_servers(star(6), mode="synchronous", **plan).now
    plan["uneven"] = 0.0
    apart = with_servers(star(6), mode="asynchronous", **plan).now
    bounded = [with_servers(star(6), mode="bounded", bound=bound, **plan).now for bound in (0, 1, 3, 10**9)]
    assert bounded[0] == pytest.approx(together, rel=1e-9)
    assert bounded[3] == apart
    assert together > bounded[1] > bounded[2] > apart


def test_nobody_is_further_ahead_than_the_bound(star, with_servers):
    session = with_servers(
        star(4), steps=20, layers=1, backward=1e-2, weights=1e5, mode="bounded", bound=2, stragglers=1, slowdown=5.0
    )
    assert session.metrics["staleness highest"][0] <= 2 * 3 * 3
    free = with_servers(
        star(4), steps=20, layers=1, backward=1e-2, weights=1e5, mode="asynchronous", stragglers=1, slowdown=5.0
    )
    assert session.now > 1.5 * free.now, "the straggler holds the others back again"


def test_backup_workers_hide_a_straggler(star, with_servers):
    """One of four is ten times slower: the three others make the update."""
    plan = {"steps": 10, "layers": 4, "backward": 10e-3, "weights": 1e6, "stragglers": 1, "slowdown": 10.0}
    waits = with_servers(star(4), **plan)
    drops = with_servers(star(4), mode="backup", backup=1, **plan)
    steady = with_servers(star(4), **{**plan, "stragglers": 0, "slowdown": 1.0})
    assert waits.now > 10 * 100e-3
    assert drops.now == pytest.approx(steady.now, rel=0.02)
    assert drops.metrics["gradients dropped"][0] > 0
    assert math.isfinite(drops.metrics["samples per second"][0])
