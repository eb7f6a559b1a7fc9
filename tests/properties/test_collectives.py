"""Symmetries and bounds of collectives' times, on random cases."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.collectives import algorithms, execute, make_plan
from simperf.hardware import build_topology


@settings(max_examples=60, deadline=None)
@given(
    algorithm=st.sampled_from(["ring", "sharded", "recursive-doubling", "halving-doubling", "double-binary-tree"]),
    n=st.integers(2, 12),
    factor=st.sampled_from([0.25, 3.0, 1000.0]),
    seed=st.randoms(use_true_random=False),
)
def test_symmetries(algorithm, n, factor, seed):
    """Renaming ranks on a symmetric wiring changes nothing, nor does more of bytes and bandwidth together."""
    plan = make_plan("all-reduce", algorithm, nranks=n)
    star = build_topology("star", n, bandwidth=10e9, latency=1e-6)
    time = execute(plan, star, nbytes=1e6).time
    names = list(star.gpus)
    seed.shuffle(names)
    assert execute(plan, star, nbytes=1e6, ranks=names).time == pytest.approx(time, rel=1e-9)
    scaled = build_topology("star", n, bandwidth=10e9 * factor, latency=1e-6)
    assert execute(plan, scaled, nbytes=1e6 * factor).time == pytest.approx(time, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(algorithms("all-reduce")), n=st.integers(2, 12), nbytes=st.sampled_from([1e3, 1e7]))
def test_no_faster_than_the_ports_allow(name, n, nbytes):
    """2(n-1) payloads must leave the ports of those who take part (Patarasuk and Yuan, 2009)."""
    options = {"group": 1} if name in ("hierarchical", "server-trees") else {}
    plan = make_plan("all-reduce", name, nranks=n, **options)
    machine = build_topology("star", n, bandwidth=10e9, latency=1e-6, nservers=plan.nservers)
    floor = 2 * (n - 1) * nbytes / ((n + plan.nservers) * 10e9)
    assert execute(plan, machine, nbytes=nbytes).time >= floor
