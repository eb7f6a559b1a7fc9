"""Speed of the executors, beside a plain SimPy ring with a process a rank."""

import subprocess
import sys
import tracemalloc

import pytest
import simpy

from simperf.collectives import execute, make_plan
from simperf.hardware import build_cluster, build_topology

S = 104_857_600


def plain_ring(n, nbytes, bandwidth, latency):
    """What one writes first: a process a rank, a store for each neighbour to put into."""
    env = simpy.Environment()
    inboxes = [simpy.Store(env) for _ in range(n)]

    def send(dst, delay):
        yield env.timeout(delay)
        yield inboxes[dst].put(None)

    def rank(me):
        for _ in range(2 * (n - 1)):
            sent = env.process(send((me + 1) % n, latency + nbytes / n / bandwidth))
            yield inboxes[me].get() & sent

    for me in range(n):
        env.process(rank(me))
    env.run()
    return env.now


def ring(n, **options):
    return build_topology("ring", n, bandwidth=50e9, latency=500e-9, **options)


def fat_tree(servers):
    """Servers of eight GPUs, 32 below a leaf switch, whose links to the spine carry half of theirs."""
    options = {"link": "infiniband-ndr", "servers_per_leaf": 32, "oversubscription": 2.0}
    return build_cluster("dgx-h100", servers, fabric="fat-tree", **options)


def run(n, machine, algorithm="ring", entry=None, exact=False, **options):
    plan = make_plan("all-reduce", algorithm, nranks=n, **options)
    return execute(plan, machine, nbytes=S, entry_times=entry, exact=exact)


def late(n):
    return [1e-3 if rank == n // 2 else 0.0 for rank in range(n)]


@pytest.mark.parametrize(
    ("case", "limit", "expected"),
    [
        (lambda: run(1024, ring(1024)), 0.05, 5213.208e-6),
        (lambda: run(16_384, ring(16_384)), 1.0, 20577.048e-6),
        (lambda: run(1024, ring(1024, changed={"r7>r8": 12.5e9})), 3.0, None),
        (lambda: run(1024, ring(1024), entry=late(1024)), 3.0, 6213.208e-6),
        (lambda: run(16_384, build_topology("star", 16_384, 50e9, 250e-9), "hierarchical", group=8), 2.0, None),
        (lambda: run(16_384, fat_tree(2048), "hierarchical", group=8), 2.0, None),
        (lambda: run(256, ring(256), exact=True), 2.0, 4432.920e-6),
        (lambda: run(16_384, build_topology("star", 16_384, 50e9, 250e-9), "sharded"), 1.0, 4195.048e-6),
    ],
    ids=[
        "ring-1024",
        "ring-16384",
        "slow-link-1024",
        "late-rank-1024",
        "hierarchical-2048x8",
        "hierarchical-2048x8-fat-tree",
        "step-exact-256",
        "sharded-16384",
    ],
)
def test_executors(benchmark, shown, case, limit, expected):
    if not benchmark.disabled:
        case()  # imports and caches
    taken, result = shown(case)
    if expected is not None:
        assert result.time == pytest.approx(expected, rel=1e-9)
    # Twice the aim, because a test machine may be busy.
    assert benchmark.disabled or taken < 2 * limit


def test_the_fast_executor_beats_a_process_a_rank(benchmark, shown, seconds):
    plain, answer = seconds(lambda: plain_ring(128, S, 50e9, 500e-9))
    taken, result = shown(lambda: run(128, ring(128)))
    assert result.time == pytest.approx(answer, rel=1e-9)
    benchmark.extra_info["plain"] = plain
    assert benchmark.disabled or taken < plain / 20


def test_the_step_exact_executor_is_no_slower_than_a_process_a_rank(benchmark, shown, seconds):
    plain, answer = seconds(lambda: plain_ring(64, S, 50e9, 500e-9))
    taken, result = shown(lambda: run(64, ring(64), exact=True))
    assert result.time == pytest.approx(answer, rel=1e-9)
    benchmark.extra_info["plain"] = plain
    assert benchmark.disabled or taken < 3 * plain


def test_cost_grows_no_faster_than_the_number_of_ranks(benchmark, shown, seconds):
    small, _ = seconds(lambda: run(4096, ring(4096)))
    large, _ = shown(lambda: run(65_536, ring(65_536)))
    benchmark.extra_info["small"] = small
    assert benchmark.disabled or large < 16 * 4 * small


def test_a_whole_command_over_1024_ranks(benchmark, shown):
    start = "import sys; from simperf.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", start, "collective", "all-reduce", "--topology", "ring", "--ranks", "1024"]

    def call():
        return subprocess.run([*words, "-b", "100M", "-e", "100M"], check=True, capture_output=True, text=True).stdout

    if not benchmark.disabled:
        call()
    taken, out = shown(call)
    assert "5213.21" in out
    assert benchmark.disabled or taken < 2.0


def test_memory_of_16384_ranks(benchmark):
    tracemalloc.start()
    benchmark.pedantic(lambda: run(16_384, ring(16_384)), rounds=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6
