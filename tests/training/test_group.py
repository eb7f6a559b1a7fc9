"""Process groups: the n-th collective of a rank is the n-th of all."""

import pytest

from simperf.collectives import execute, make_plan
from simperf.collectives.nccl import Tuner
from simperf.collectives.settings import NcclSettings
from simperf.errors import InputError
from simperf.execution import launch, synchronize
from simperf.hardware import build_cluster
from simperf.training.data.group import Group
from simperf.training.data.symmetry import make_replicas
from tests.training.strategies import CATALOG, layers, metric, run, session, star


def group(n=2, **options):
    m = session(star(n))
    step = layers().step(m, None, 1)
    replicas, exact = make_replicas(m, m.machine.gpus, [step] * n, exact=True)
    return m, replicas, Group(m, m.machine.gpus, replicas, exact=exact, **{"algorithm": "ring", **options})


def play(m, *programs):
    def main():
        for thread in [m.spawn(program, f"rank{number}") for number, program in enumerate(programs)]:
            yield thread.done

    m.play(main())


def one(work, device):
    yield launch(work, device)
    yield synchronize(device)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("all_reduce", 2 * 0.5), ("broadcast", 1.0), ("reduce", 1.0)],
    ids=["all-reduce", "chain", "up"],
)
def test_two_ranks_on_one_link(name, seconds):
    m, replicas, ranks = group()
    nbytes = 50e9
    play(m, *(one(getattr(ranks, name)(replica, nbytes), replica.device) for replica in replicas))
    assert m.now == pytest.approx(seconds, rel=2e-3)


def test_nothing_starts_before_the_last_rank_has_come():
    m, replicas, ranks = group()

    def late(replica):
        yield from one(ranks.all_reduce(replica, 1e6), replica.device)

    def main(replica):
        yield m.simulation.env.timeout(1.0)
        yield from late(replica)

    play(m, late(replicas[0]), main(replicas[1]))
    assert m.now == pytest.approx(1.0 + 2 * (0.5e6 / 50e9 + 500e-9), rel=1e-9)
    assert replicas[0].exposed > 1.0
    assert replicas[1].exposed < 0.01


@pytest.mark.parametrize("algorithm", ["naive", "binomial-tree", "halving-doubling", "ring"])
@pytest.mark.parametrize("late", [0, 3])
def test_every_rank_goes_on_at_its_own_end(algorithm, late):
    n, nbytes = 6, 12e6
    m, replicas, ranks = group(n, algorithm=algorithm)
    entry = [0.4e-3 if rank == late else 0.0 for rank in range(n)]
    ends = {}

    def program(replica):
        yield m.simulation.env.timeout(entry[replica.rank])
        yield from one(ranks.all_reduce(replica, nbytes), replica.device)
        ends[replica.rank] = m.now

    play(m, *(program(replica) for replica in replicas))
    plan = make_plan("all-reduce", algorithm, nranks=n)
    alone = execute(plan, m.machine, nbytes=nbytes, entry_times=entry, exact=True)
    assert [ends[rank] for rank in range(n)] == pytest.approx(alone.finish, rel=1e-9)
    together = max(ends.values()) == pytest.approx(min(ends.values()))
    assert together == (algorithm in ("naive", "ring"))
    assert ranks.busy == pytest.approx(alone.time - 0.4e-3, rel=1e-9)


def test_a_rank_that_is_done_starts_the_next_collective_while_others_are_at_the_first():
    m, replicas, ranks = group(4)

    def program(replica):
        works = [ranks.broadcast(replica, 50e6), ranks.broadcast(replica, 50e6)]
        for work in works:
            yield launch(work, replica.device)
        yield synchronize(replica.device)

    play(m, *map(program, replicas))
    twice = m.now
    m, replicas, ranks = group(4)
    play(m, *(one(ranks.broadcast(replica, 50e6), replica.device) for replica in replicas))
    # 50 MB at 50 GB/s follow 50 MB: only the first ones have to fill the pipeline
    assert twice == pytest.approx(m.now + 1e-3, rel=1e-3)
    assert twice < 2 * m.now - 2e-5


def test_only_rings_of_nccl():
    """Large sums go by trees where one connection does not fill the adapter; before NCCL 2.4 there were none."""
    machine = build_cluster("v100-8gpu-20g", 4, catalog=CATALOG, bandwidth="20 Gbit/s")
    model = layers(1, backward=1e-6, nbytes=256e6)
    times = {
        algorithm: metric(run(machine, model, algorithm=algorithm, bucket=1e9, first_bucket=1e9), "time per step")
        for algorithm in ("nccl", "nccl-ring")
    }
    assert times["nccl-ring"] > 1.02 * times["nccl"]
    alone = Tuner(machine, machine.gpus, settings=NcclSettings(only=("ring",))).best(256e6).run.time
    assert times["nccl-ring"] == pytest.approx(alone, rel=0.05)


def test_ranks_that_do_not_agree_are_told():
    m, (first, second), ranks = group()
    with pytest.raises(InputError, match="rank 1 starts broadcast of 1e\\+06 B while others do all-reduce"):
        play(m, one(ranks.all_reduce(first, 1e6), first.device), one(ranks.broadcast(second, 1e6), second.device))


def test_replicas_must_stand_for_every_rank():
    m, replicas, _ = group(3)
    with pytest.raises(InputError, match="every rank once"):
        Group(m, m.machine.gpus, replicas[:2])
