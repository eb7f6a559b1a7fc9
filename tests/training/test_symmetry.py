"""Ranks taken together give the times of ranks simulated one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.hardware import build_cluster
from simperf.training.strategies import has_option
from tests.training.strategies import CATALOG, MIB, layers, metric, run, star

ALGORITHMS = [
    "ring",
    "sharded",
    "halving-doubling",
    "naive",
    "binomial-tree",
    "bidirectional-ring",
    "recursive-doubling",
]


@st.composite
def runs(draw):
    n = draw(st.integers(2, 6))
    count = draw(st.integers(1, 6))
    speeds = draw(st.lists(st.sampled_from([0.5, 0.9, 1.0, 1.0, 1.7]), max_size=n))
    options = {
        "algorithm": draw(st.sampled_from(ALGORITHMS)),
        "bucket": draw(st.sampled_from([0.0, 5.0, 20.0, 1000.0])) * MIB,
        "slowdown": draw(st.sampled_from([1.0, 1.2, 2.0])),
        "accumulate": draw(st.sampled_from([1, 2])),
        "overlap": draw(st.booleans()),
        "steps": draw(st.integers(1, 2)),
        "broadcast": draw(st.booleans()),
        "speeds": tuple(speeds),
    }
    strategy = draw(st.sampled_from(["ddp", "ddp", "local-sgd"]))
    work = layers(count, forward=draw(st.sampled_from([0.0, 1e-3])), update=1e-4)
    options = {key: value for key, value in options.items() if key in {"steps", "speeds"} or has_option(strategy, key)}
    return n, work, options | {"strategy": strategy, "batch": 2 * n * options["accumulate"]}


@settings(max_examples=40, deadline=None)
@given(runs())
def test_collapsed_is_exact(case):
    n, work, options = case
    machine = star(n)
    collapsed = run(machine, work, exact=False, **options)
    if any("before the last one" in note for note in collapsed.notes):
        return  # ranks end collectives at different times, and a note says so
    exact = run(machine, work, exact=True, **options)
    assert collapsed.now == pytest.approx(exact.now, rel=1e-9)
    for name in (
        "time per step",
        "exposed communication",
        "exposed communication, min over ranks",
        "communication per step",
    ):
        assert metric(collapsed, name) == pytest.approx(metric(exact, name), rel=1e-9, abs=1e-12)
    moved, reference = collapsed.simulation.network.moved, exact.simulation.network.moved
    for name, nbytes in reference.items():
        assert moved.get(name, 0.0) == pytest.approx(nbytes, rel=1e-9, abs=1.0), name


@pytest.mark.parametrize("server", ["dgx-1v", "dgx-a100", "p3-16xlarge", "pcie-4gpu"])
@pytest.mark.parametrize("algorithm", ["ring", "nccl"])
def test_servers_of_the_catalogue_with_copies_of_the_batch(server, algorithm):
    machine, work = CATALOG.machine(server), layers(nbytes_input=1e6)
    options = {"algorithm": algorithm, "bucket": 20 * MIB, "steps": 2, "batch": 8 * len(machine.gpus)}
    collapsed = run(machine, work, **options)
    exact = run(machine, work, exact=True, **options)
    assert collapsed.now == pytest.approx(exact.now, rel=1e-9)


def test_several_servers():
    machine = build_cluster("dgx-a100", 2, link="infiniband-hdr")
    options = {"algorithm": "hierarchical", "bucket": 20 * MIB, "steps": 2, "batch": 32}
    collapsed = run(machine, layers(), **options)
    exact = run(machine, layers(), exact=True, **options)
    assert collapsed.now == pytest.approx(exact.now, rel=1e-9)
    assert len(collapsed.simulation.devices) < len(exact.simulation.devices) == 16
    copying = run(machine, layers(nbytes_input=1e6), **options)
    assert "every rank is simulated: copies from the host share links with their collectives" in copying.notes
    assert copying.now == pytest.approx(run(machine, layers(nbytes_input=1e6), exact=True, **options).now, rel=1e-9)


@pytest.mark.parametrize("algorithm", ["halving-doubling", "binomial-tree"])
def test_ranks_that_end_at_different_times_are_simulated_one_by_one(algorithm):
    options = {"algorithm": algorithm, "steps": 2}
    m = run(star(6), layers(), **options)
    assert "end a collective at different times" in m.notes[0]
    assert m.now == run(star(6), layers(), exact=True, **options).now
    together = run(star(6), layers(), exact=False, **options)
    assert "continue with it" in together.notes[-1]
    assert m.now != together.now
    assert len(run(star(6), layers()).simulation.devices) == 1  # a ring ends for all at once


def test_ranks_that_are_kept_while_two_collectives_share_links_are_told():
    options = {"algorithm": "halving-doubling", "bucket": 0.0, "overlap": False, "steps": 1, "batch": 12}
    options |= {"speeds": (0.5,) * 5}
    together = run(star(6), layers(2, update=1e-4), exact=False, **options)
    assert together.now > run(star(6), layers(2, update=1e-4), exact=True, **options).now
    assert "continue with it" in together.notes[-1]


def test_a_straggler_makes_the_others_wait():
    slow = run(star(4), layers(), speeds=(1.0, 0.5), steps=2)
    even = run(star(4), layers(), steps=2)
    assert metric(slow, "time per step") >= metric(even, "time per step") + 5e-3 - 1e-9
    assert metric(slow, "exposed communication") >= metric(slow, "exposed communication, min over ranks") + 5e-3 - 1e-9


def test_more_processes_than_cores_are_simulated_one_by_one():
    machine, work = star(50), layers(1, launch=10e-6)
    m = run(machine, work, steps=1)
    assert len(m.simulation.devices) == 50
    assert "share the 24 cores" in m.notes[0]
    with pytest.raises(InputError, match="cannot be taken together"):
        run(machine, work, steps=1, exact=False)


def test_copies_that_share_a_link_unevenly_are_simulated_one_by_one():
    machine = CATALOG.machine("dgx-1v")
    m = run(machine, layers(nbytes_input=1e6), n=3, batch=3)
    assert "share a link that others do not" in m.notes[0]


def test_servers_whose_copies_share_links_with_more_others_are_simulated_one_by_one():
    """One GPU of the first server has its switch to itself, those of the second share one with a neighbour each."""
    machine = build_cluster("dgx-1v", 2, link="infiniband-edr")
    nodes = (machine.gpus[0], *machine.gpus[8:16])
    work = layers(nbytes_input=10e6)
    m = run(machine, work, nodes=nodes, batch=9 * 8, steps=2)
    assert "in some servers than in others" in m.notes[0]
    assert m.now == run(machine, work, nodes=nodes, batch=9 * 8, steps=2, exact=True).now
