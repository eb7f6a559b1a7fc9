"""The fast executor against the step-exact one, on random cases."""

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simperf.collectives import Transport, Wiring, algorithms, execute, make_plan, options_of
from simperf.collectives.machine_plans import plan_for
from simperf.errors import InputError
from simperf.hardware import build_cluster

ALL = [
    f"{name}/{algorithm}"
    for name in ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "gather", "scatter", "all-to-all")
    for algorithm in algorithms(name)
]


@st.composite
def cases(draw):
    name = draw(st.sampled_from(ALL))
    kind = draw(st.sampled_from(["star", "ring", "fully-connected"]))
    n = draw(st.integers(1, 13))
    options = {}
    accepted = options_of(*name.split("/"))
    if "chunks" in accepted:
        options["chunks"] = draw(st.integers(1, 9))
    if "group" in accepted:
        options["group"] = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    if "inner" in accepted:
        options["inner"] = draw(st.sampled_from(["ring", "sharded", "binomial-tree", "pipelined-tree"]))
        options["outer"] = draw(st.sampled_from(["ring", "double-binary-tree", "recursive-doubling"]))
    if "root" in accepted:
        options["root"] = draw(st.integers(0, n - 1))
    return name, kind, n, options


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), data=st.data())
def test_collapsed_equals_step_exact(case, data):
    name, kind, n, options = case
    try:
        plan = make_plan(*name.split("/"), nranks=n, **options)
    except InputError:
        return
    kind = "star" if plan.nservers else kind
    machine = Wiring(kind, n, bandwidth=10e9, latency=1e-6, nservers=plan.nservers)
    links = list(machine.resources)
    if links and data.draw(st.booleans(), label="slow link"):
        machine.changed[data.draw(st.sampled_from(links))] = data.draw(st.sampled_from([1e9, 2.5e9, 9.9e9]))
    entry = None
    if data.draw(st.booleans(), label="late"):
        entry = data.draw(st.lists(st.sampled_from([0.0, 0.0, 1e-5, 3e-4]), min_size=n, max_size=n))
    background = []
    if n > 1 and data.draw(st.integers(0, 3), label="traffic") == 0:
        background = [("r0", f"r{data.draw(st.integers(1, n - 1))}", data.draw(st.sampled_from([1e9, 20e9])))]
    transport = Transport(
        step_latency=data.draw(st.sampled_from([0.0, 5e-6])),
        efficiency=data.draw(st.sampled_from([1.0, 0.5])),
        cap=data.draw(st.sampled_from([float("inf"), 3e9])),
        reduce_rate=data.draw(st.sampled_from([float("inf"), float("inf"), 40e9])),
        unit=data.draw(st.sampled_from([0.0, 0.0, 1.0, 4.0])),
        start=data.draw(st.sampled_from([0.0, 2e-6])),
        caps=data.draw(st.sampled_from([(), (1e9,), (2e9, 0.5e9), (4e9, 4e9)])),
    )
    nbytes = data.draw(st.sampled_from([0.0, 3.0, 100.0, 1e5, 1 << 20, 12345678.0]))
    kwargs = {"nbytes": nbytes, "entry_times": entry, "transport": transport, "background": background}
    fast = execute(plan, machine, **kwargs)
    reference = execute(plan, machine, exact=True, **kwargs)
    assert reference.method == "step-exact"
    assert fast.time == pytest.approx(reference.time, rel=1e-9, abs=1e-18)
    assert fast.finish == pytest.approx(reference.finish, rel=1e-9, abs=1e-18)
    if not background:
        used = {key: value for key, value in fast.moved.items() if value}
        assert used == pytest.approx({key: value for key, value in reference.moved.items() if value}, rel=1e-9)


#: hybrid meshes of NVLinks, with PCIe switches and sockets that ranks share where no NVLink joins them
MESHES = ("dgx-1v", "p3dn-24xlarge", "p3-16xlarge")

#: collectives whose chunks follow each other
PIPELINED = ("all-reduce/double-binary-tree", "all-reduce/pipelined-tree", "all-reduce/server-trees", "broadcast/ring")


@cache
def mesh(server, count):
    return build_cluster(server, count, link="ethernet-25g-jumbo")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    machine=st.builds(mesh, st.sampled_from(MESHES), st.integers(1, 2)),
    name=st.sampled_from(PIPELINED),
    chunks=st.sampled_from([1, 2, 3, 8]),
    nbytes=st.floats(1e3, 3e8),
    step_latency=st.sampled_from([0.0, 5e-6, 2e-5]),
    reduce_rate=st.sampled_from([float("inf"), float("inf"), 50e9]),
    data=st.data(),
)
def test_pipelines_on_hybrid_meshes(machine, name, chunks, nbytes, step_latency, reduce_rate, data):
    """Where sends of a tree share links, the fast executor is exact or leaves it to the step-exact one."""
    ranks = machine.gpus
    if data.draw(st.booleans(), label="some ranks"):
        ranks = data.draw(st.permutations(ranks), label="order")[: data.draw(st.integers(2, 8), label="ranks")]
    options = {"chunks": chunks} | ({"degree": data.draw(st.integers(1, 3))} if "pipelined" in name else {})
    transport = Transport(step_latency=step_latency, reduce_rate=reduce_rate)
    given = {"ranks": ranks, "nbytes": nbytes, "transport": transport}
    try:
        plan = plan_for(machine, *name.split("/"), **given, **options)
    except InputError:
        return
    late = st.lists(st.sampled_from([0.0, 0.0, 1e-5, 3e-5]), min_size=len(ranks), max_size=len(ranks))
    entry = data.draw(st.none() | late, label="late")
    fast = execute(plan, machine, entry_times=entry, **given)
    reference = execute(plan, machine, entry_times=entry, exact=True, **given)
    assert fast.time == pytest.approx(reference.time, rel=1e-9)
    assert fast.finish == pytest.approx(reference.finish, rel=1e-9)


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
    star = Wiring("star", n, bandwidth=10e9, latency=1e-6)
    time = execute(plan, star, nbytes=1e6).time
    names = list(star.gpus)
    seed.shuffle(names)
    assert execute(plan, star, nbytes=1e6, ranks=names).time == pytest.approx(time, rel=1e-9)
    scaled = Wiring("star", n, bandwidth=10e9 * factor, latency=1e-6)
    assert execute(plan, scaled, nbytes=1e6 * factor).time == pytest.approx(time, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(algorithms("all-reduce")), n=st.integers(2, 12), nbytes=st.sampled_from([1e3, 1e7]))
def test_no_faster_than_the_ports_allow(name, n, nbytes):
    """2(n-1) payloads must leave the ports of those who take part (Patarasuk and Yuan, 2009)."""
    options = {"group": 1} if name in ("hierarchical", "server-trees") else {}
    plan = make_plan("all-reduce", name, nranks=n, **options)
    machine = Wiring("star", n, bandwidth=10e9, latency=1e-6, nservers=plan.nservers)
    floor = 2 * (n - 1) * nbytes / ((n + plan.nservers) * 10e9)
    assert execute(plan, machine, nbytes=nbytes).time >= floor
