"""Collectives that are computed as a whole see what else is on their links, as if every send were played."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.simulation import Simulation
from simperf.execution import launch, synchronize
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_cluster, build_machine
from simperf.training.data.group import Group
from simperf.training.data.symmetry import make_replicas
from tests.training.strategies import layers, star

CATALOG = Catalog.load()
#: two servers of two GPUs that share a card, and one server of GPUs on a hub
CLUSTER = build_cluster("p3-8xlarge", 2, link="ethernet-10g-jumbo", catalog=CATALOG)
UNEVEN = build_machine(
    {
        "node": [
            {"id": "gpu{0..5}", "gpu": "v100-sxm2-16gb"},
            {"id": "hub", "kind": "switch"},
            {"id": "cpu0", "cpu": "xeon-8168"},
        ],
        "link": [
            {"a": "gpu{0..3}", "b": "hub", "bandwidth": "50 GB/s", "latency": "250 ns"},
            {"a": "gpu{4..5}", "b": "hub", "bandwidth": "20 GB/s", "latency": "1 us"},
            {"a": "cpu0", "b": "hub", "bandwidth": "16 GB/s", "latency": "250 ns"},
        ],
    },
    CATALOG,
)
MACHINES = {"star": star(6), "uneven": UNEVEN, "cluster": CLUSTER}


def ends(machine, groups, traffic, *, exact):
    """When each collective of each group ended, and what the links moved.

    `groups` are (nodes, algorithm, [(payload, time from the one before it)]); `traffic` are (from, to, bytes, start).
    """
    m = Session(Simulation(machine))
    found, threads, made = {}, [], []

    def rank(number, group, replica, works):
        for index, (nbytes, wait) in enumerate(works):
            if wait:
                yield m.simulation.env.timeout(wait)
            yield launch(group.all_reduce(replica, nbytes), replica.device.stream(f"g{number}"))
            yield synchronize(replica.device)
            found[number, replica.rank, index] = m.now

    def other(src, dst, nbytes, start):
        yield m.simulation.env.timeout(start)
        route = machine.route(src, dst)
        yield m.simulation.network.transfer(route.resources, nbytes, latency=route.latency)

    for number, (nodes, algorithm, works) in enumerate(groups):
        step = layers().step(m, None, 1)
        replicas, _ = make_replicas(m, nodes, [step] * len(nodes), exact=True)
        group = Group(m, nodes, replicas, algorithm=algorithm, exact=exact)
        made.append(group)
        threads += [m.spawn(rank(number, group, one, works), f"{number}/{one.rank}") for one in replicas]
    for flow in traffic:
        m.simulation.env.process(other(*flow))

    def main():
        for thread in threads:
            yield thread.done

    m.play(main())
    m.simulation.run()
    for group in made:
        group.settle()
    assert m.simulation.path <= m.now * (1 + 1e-9), "no chain of dependent work is longer than the run"
    return found, {name: nbytes for name, nbytes in m.simulation.network.moved.items() if nbytes > 1.0}


@st.composite
def cases(draw):
    name = draw(st.sampled_from(sorted(MACHINES)))
    machine = MACHINES[name]
    gpus = list(machine.gpus)
    groups = []
    rest = draw(st.permutations(gpus))
    for _ in range(draw(st.integers(1, 2))):
        count = draw(st.integers(2, max(2, len(rest) - 2)))
        if count > len(rest):
            break
        nodes, rest = sorted(rest[:count], key=gpus.index), rest[count:]
        algorithm = draw(st.sampled_from(["ring", "naive", "nccl", "nccl-ring"]))
        size, wait = st.sampled_from([1e3, 1e6, 20e6]), st.sampled_from([0.0, 30e-6, 1e-3])
        groups.append((nodes, algorithm, draw(st.lists(st.tuples(size, wait), min_size=1, max_size=3))))
    pair = st.lists(st.sampled_from([*gpus, machine.cpus[0]]), min_size=2, max_size=2, unique=True)
    flows = st.tuples(pair, st.sampled_from([1e4, 5e6, 50e6]), st.sampled_from([0.0, 20e-6, 0.4e-3, 3e-3]))
    traffic = [(src, dst, nbytes, start) for (src, dst), nbytes, start in draw(st.lists(flows, max_size=3))]
    return machine, groups, traffic


@settings(max_examples=100, deadline=None)
@given(cases())
def test_as_a_whole_is_what_send_by_send_is(case):
    machine, groups, traffic = case
    whole, moved = ends(machine, groups, traffic, exact=False)
    every, expected = ends(machine, groups, traffic, exact=True)
    assert whole == pytest.approx(every, rel=1e-9)
    assert moved == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("algorithm", ["ring", "nccl"])
def test_two_groups_that_share_a_card_take_longer_than_one(algorithm):
    one = (CLUSTER.gpus[0], CLUSTER.gpus[4]), algorithm, [(20e6, 0.0)]
    two = (CLUSTER.gpus[1], CLUSTER.gpus[5]), algorithm, [(20e6, 0.0)]
    alone, _ = ends(CLUSTER, [one], [], exact=False)
    both, _ = ends(CLUSTER, [one, two], [], exact=False)
    assert max(both.values()) == pytest.approx(2 * max(alone.values()), rel=0.02), "each has half of the card"


def test_a_copy_and_a_collective_see_each_other():
    """A copy that takes half of a link for as long as it lasts, and leaves it to the collective after that."""
    machine = star(2)
    work = [(machine.gpus, "ring", [(100e6, 0.0)])]
    copy = [("gpu0", "gpu1", 20e6, 0.3e-3)]
    (alone, _), (beside, _) = ends(machine, work, [], exact=False), ends(machine, work, copy, exact=False)
    assert max(beside.values()) - max(alone.values()) == pytest.approx(20e6 / 50e9, rel=1e-2)
