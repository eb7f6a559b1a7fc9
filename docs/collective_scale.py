"""Measure how the cost of simulating a collective grows with its ranks, and draw it.

python docs/collective_scale.py docs/images/collective-scale.svg
"""

import sys
import time

import simpy

from simperf.collectives import execute, make_plan
from simperf.hardware import build_cluster, build_topology
from simperf.report.style import figure, save

S = 104_857_600


def ring(n, exact=False, late=False):
    """All-reduce by a ring over n ranks, with one rank late or not."""
    entry = [1e-3 if rank == n // 2 else 0.0 for rank in range(n)] if late else None
    plan = make_plan("all-reduce", "ring", nranks=n)
    wiring = build_topology("ring", n, bandwidth=50e9, latency=500e-9)
    execute(plan, wiring, nbytes=S, entry_times=entry, exact=exact)


def hierarchical(n):
    """Rings inside and between servers of eight."""
    plan = make_plan("all-reduce", "hierarchical", nranks=n, group=8)
    execute(plan, build_cluster("dgx-a100", n // 8, link="infiniband-hdr"), nbytes=S)


def plain(n):
    """A process a rank and a store a neighbour, as one writes it first."""
    env = simpy.Environment()
    inboxes = [simpy.Store(env) for _ in range(n)]

    def send(dst):
        yield env.timeout(500e-9 + S / n / 50e9)
        yield inboxes[dst].put(None)

    def rank(me):
        for _ in range(2 * (n - 1)):
            sent = env.process(send((me + 1) % n))
            yield inboxes[me].get() & sent

    for me in range(n):
        env.process(rank(me))
    env.run()


CASES = {
    "ring, fast executor": (ring, (64, 256, 1024, 4096, 16384, 65536), "o-", "#0072B2"),
    "ring with a late rank, fast executor": (
        lambda n: ring(n, late=True),
        (64, 256, 1024, 4096, 16384),
        "s-",
        "#56B4E9",
    ),
    "hierarchical on DGX A100, fast executor": (hierarchical, (64, 256, 1024, 4096, 16384), "^-", "#009E73"),
    "ring, step-exact": (lambda n: ring(n, exact=True), (64, 128, 256), "D--", "#E69F00"),
    "plain SimPy, a process a rank": (plain, (64, 128, 256), "v:", "#D55E00"),
}


def main(path):
    """Measure every case and draw the picture."""
    ring(8), hierarchical(16)  # imports and caches
    found = {}
    for name, (run, counts, _, _) in CASES.items():
        for n in counts:
            start = time.perf_counter()
            run(n)
            found.setdefault(name, []).append(time.perf_counter() - start)

    def draw(made):
        axes = made.add_subplot()
        for name, (_, counts, style, color) in CASES.items():
            axes.loglog(counts, found[name], style, color=color, label=name)
        axes.set_xlabel("ranks")
        axes.set_ylabel("time to simulate one all-reduce [s]")
        axes.set_title("Cost follows what differs, not how much there is")
        axes.legend()

    save(figure(draw), path)


if __name__ == "__main__":
    main(sys.argv[1])
